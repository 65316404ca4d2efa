package github_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/testkit/githubd"
)

// example is one payload of the vendor's package, with the event that it belongs to.
type example struct {
	event   string
	payload json.RawMessage
}

// examples reads GitHub's own payloads; the newest set, and with older ones those of the Enterprise Servers too.
func examples(t *testing.T, older bool) []example {
	t.Helper()
	dir := os.Getenv("REASONIX_WEBHOOK_EXAMPLES")
	if dir == "" {
		dir = filepath.Join("..", "..", ".tools", "webhook-examples")
	}
	sets := []string{"api.github.com"}
	if older {
		sets = append(sets, "ghes-31", "ghes-35")
	}
	var list []example
	for _, set := range sets {
		data, err := os.ReadFile(filepath.Join(dir, "node_modules", "@octokit", "webhooks-examples", set, "index.json"))
		if err != nil {
			t.Skipf("GitHub's example payloads are not here (%v): run scripts/fetch-webhook-examples.sh", err)
		}
		var events []struct {
			Name     string
			Examples []json.RawMessage
		}
		if err := json.Unmarshal(data, &events); err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			for _, x := range e.Examples {
				list = append(list, example{e.Name, x})
			}
		}
	}
	return list
}

func of(list []example, event, action string) []example {
	var out []example
	for _, x := range list {
		var head struct{ Action string }
		if x.event == event && json.Unmarshal(x.payload, &head) == nil && head.Action == action {
			out = append(out, x)
		}
	}
	return out
}

// changed is a real payload with some fields set; a path is written with dots.
func changed(t *testing.T, x example, set map[string]any) []byte {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(x.payload, &m); err != nil {
		t.Fatal(err)
	}
	for path, v := range set {
		keys := strings.Split(path, ".")
		at := m
		for _, k := range keys[:len(keys)-1] {
			inner, ok := at[k].(map[string]any)
			if !ok {
				t.Fatalf("the payload has no %s", path)
			}
			at = inner
		}
		at[keys[len(keys)-1]] = v
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const realRepo = "Codertocat/Hello-World"

func TestRealCommentsUnchanged(t *testing.T) {
	h := newHub(t)
	all := examples(t, false)
	created := of(all, "issue_comment", "created")
	if len(created) < 5 {
		t.Fatalf("only %d real comments", len(created))
	}
	for _, x := range append(created, append(of(all, "issue_comment", "edited"), of(all, "issue_comment", "deleted")...)...) {
		if s := h.deliver(h.Payload(x.event, []byte(x.payload))); s != 200 {
			t.Errorf("answered %d", s)
		}
	}
	if got := h.ignored(); !strings.Contains(got, fmt.Sprintf("prose: %d", len(created))) || !strings.Contains(got, "edited comment: 2") || !strings.Contains(got, "comment deleted: 2") {
		t.Fatalf("counted: %s", got)
	}
}

func TestRealCommentsWithACommand(t *testing.T) {
	h := newHub(t)
	h.Grant(realRepo, "Codertocat", "admin")
	for i, x := range of(examples(t, false), "issue_comment", "created") {
		h.deliver(h.Payload(x.event, changed(t, x, map[string]any{"comment.body": "/reasonix fix the spelling", "comment.id": 1000 + i})))
		e := h.sink.Last(t)
		if e.Command != "/reasonix fix" || e.Text != "the spelling" || e.Repo != realRepo || e.Actor.ID != "Codertocat" || e.Actor.Access != "admin" || e.Place.Thread != "1" {
			t.Fatalf("got %+v", e)
		}
		if !strings.Contains(e.Context[0].Title, "Spelling error in the README file") {
			t.Fatalf("the issue informs the task as %+v", e.Context)
		}
	}
	if n := len(h.sink.Effects()); n != 5 {
		t.Fatalf("%d requests", n)
	}
}

// The published payloads have holes; one field of a real one is changed for each.
func TestRealPayloadsWithTheirHolesFilled(t *testing.T) {
	all := examples(t, false)
	comment := of(all, "issue_comment", "created")[0]
	review := of(all, "pull_request_review_comment", "created")[0]
	command := "/reasonix fix"
	cases := []struct {
		name  string
		from  example
		set   map[string]any
		check func(h *hub) string
	}{
		{"a comment on a pull request", comment, map[string]any{"issue.pull_request": map[string]any{"url": "x"}}, func(h *hub) string {
			if tg := h.sink.Last(t).Target; !tg.IsPR || tg.HeadSHA != "abc" || !tg.Fork {
				return fmt.Sprintf("%+v", tg)
			}
			return ""
		}},
		{"a bot", comment, map[string]any{"comment.user.type": "Bot", "sender.type": "Bot"}, nothing},
		{"a bot by its suffix alone", comment, map[string]any{"comment.user.login": "x[bot]"}, nothing},
		{"a deleted account", comment, map[string]any{"comment.user": nil}, nothing},
		{"a member", comment, map[string]any{"comment.author_association": "MEMBER"}, access("admin")},
		{"a mannequin", comment, map[string]any{"comment.author_association": "MANNEQUIN"}, access("admin")},
		{"a contributor", comment, map[string]any{"comment.author_association": "CONTRIBUTOR"}, access("admin")},
		{"an owner of another account", comment, map[string]any{"comment.user.login": "elsewhere", "comment.author_association": "OWNER"}, access("none")},
		{"an installation", comment, map[string]any{"installation": map[string]any{"id": 5}}, access("admin")},
		{"a review comment", review, map[string]any{"comment.start_line": 3, "comment.in_reply_to_id": 9}, access("admin")},
		{"a fork", review, map[string]any{"pull_request.head.repo.full_name": "stranger/fork", "pull_request.head.repo.fork": true}, fork},
		{"a deleted fork", review, map[string]any{"pull_request.head.repo": nil}, fork},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := newHub(t)
			h.Grant(realRepo, "Codertocat", "admin")
			h.AddPull(githubd.Pull{Repo: realRepo, Number: 1, HeadSHA: "abc", Base: "main"})
			c.set["comment.body"] = command
			if v, gone := c.set["comment.user"]; gone && v == nil {
				c.set["comment.body"] = command
			}
			if s := h.deliver(h.Payload(c.from.event, changed(t, c.from, c.set))); s != 200 {
				t.Fatalf("answered %d", s)
			}
			if problem := c.check(h); problem != "" {
				t.Fatal(problem)
			}
		})
	}
}

func nothing(h *hub) string {
	if n := len(h.sink.Effects()); n != 0 {
		return fmt.Sprintf("%d effects", n)
	}
	return ""
}

func access(want string) func(*hub) string {
	return func(h *hub) string {
		if all := h.sink.Effects(); len(all) != 1 || all[0].Actor.Access != want {
			return fmt.Sprintf("want access %s, got %+v", want, all)
		}
		return ""
	}
}

func fork(h *hub) string {
	if all := h.sink.Effects(); len(all) != 1 || !all[0].Target.Fork || all[0].Target.HeadSHA == "" {
		return fmt.Sprintf("want a fork, got %+v", all)
	}
	return ""
}

func TestEveryRealPayloadIsAnswered(t *testing.T) {
	h := newHub(t)
	all := examples(t, true)
	if len(all) < 329 {
		t.Fatalf("only %d payloads", len(all))
	}
	for _, x := range all {
		a := h.Deliver(t, h.hook, h.Payload(x.event, []byte(x.payload)))
		refused := a.Status >= 400 && a.Status < 500 && strings.TrimSpace(a.Body) != ""
		if a.Status != 200 && !refused {
			t.Errorf("%s: answered %d %q", x.event, a.Status, a.Body)
		}
		if refused {
			t.Logf("%s refused: %s", x.event, strings.TrimSpace(a.Body))
		}
	}
	t.Log(h.ignored())
}
