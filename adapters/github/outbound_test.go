package github_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"reasonix/adapters/github"
	"reasonix/internal/chat"
	"reasonix/internal/chat/chattest"
	"reasonix/internal/testkit/githubd"
)

var update = flag.Bool("update", false, "write the golden files anew")

var issue7 = chat.Place{Connection: "hub", Kind: "github", Channel: repo, Thread: "7"}

func askMessage(command string) chat.Message {
	return chat.Message{Kind: chat.KindAsk, TaskID: "task_1", AskID: chattest.AskID, Title: "May I run this command?", Text: "The tests need it.",
		Blocks:   []chat.Block{{Name: "command.sh", Lang: "bash", Text: command}},
		Fields:   []chat.Field{{Label: "Digest", Value: "sha256:1f2e3d"}, {Label: "Folder", Value: "/work`space`"}},
		Buttons:  []chat.Button{{Label: "Approve", Choice: "allow"}, {Label: "Deny", Choice: "deny"}, {Label: "Change it", Choice: "answer", Input: true}, {Label: "Use 8080", Choice: "8080"}},
		Mentions: []chat.Actor{{Kind: "github", ID: "lead-dev"}, {Kind: "slack", ID: "U1"}, {Kind: "github", ID: "not a login"}},
		Footer:   "Answer until tomorrow 12:00 UTC."}
}

func TestMessagesAsGitHubShowsThem(t *testing.T) {
	settled := askMessage("go test ./...")
	settled.Settled, settled.Text = true, "Approved by lead."
	cases := map[string]chat.Message{
		"ack":     {Kind: chat.KindAck, Title: "Working on it", Text: "Task `task_1` on branch `reasonix/fix-login`."},
		"ask":     askMessage("go test ./..."),
		"tricks":  askMessage("echo `id` ```` \n```\n@everyone <!-- x --> \u202egnp.exe\u200b\x1b[2J\r\nrm -rf /"),
		"long":    askMessage(strings.Repeat("echo 0123456789\n", 6000)),
		"settled": settled,
		"result": {Kind: chat.KindResult, Title: "Done, @acme/team", Text: "# What changed\n\nThanks @dev and `@ops`, mail a@b.org <!-- reasonix:key=0 -->\n\n```go\n// @keep <!-- this -->\nif a < b {}",
			Fields: []chat.Field{{Label: "Cost", Value: "0.12 USD"}, {Label: "Failed", Value: "go vet\ngo test"}}},
	}
	for name, m := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			if _, err := h.door.Send(t.Context(), chat.Post{Key: "k", Created: time.Now(), Message: m, Place: issue7}); err != nil {
				t.Fatal(err)
			}
			var shown []string
			for _, c := range h.BotComments() {
				body := c.Body
				if n := utf8.RuneCountInString(body); n > 1500 {
					body = string([]rune(body)[:300]) + fmt.Sprintf("\n[… %d characters …]\n", n-600) + string([]rune(body)[n-300:])
				}
				shown = append(shown, body)
			}
			golden(t, name+".md", strings.Join(shown, "\n\n=== next comment ===\n\n"))
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got+"\n"); diff != "" {
		t.Fatalf("%s (run the test with -update to accept):\n%s", name, diff)
	}
}

func TestInvariant05_ALongAskIsShownWholeBeforeItIsAsked(t *testing.T) {
	h := newHub(t)
	var command strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&command, "step %d ```\n", i)
	}
	post := chat.Post{Key: "ask", Created: time.Now(), Message: askMessage(command.String()), Place: issue7}
	h.Fail("POST comments", githubd.Fault{}, githubd.Fault{DropAfter: true})
	var again *chat.RetryError
	if _, err := h.door.Send(t.Context(), post); !errors.As(err, &again) {
		t.Fatalf("a part whose fate is unknown gives %v, want a retry", err)
	}
	for _, c := range h.BotComments() {
		if strings.Contains(c.Body, "/approve") {
			t.Fatal("it is asked although its text is not there")
		}
	}
	ref, err := h.door.Send(t.Context(), post)
	if err != nil {
		t.Fatal(err)
	}
	all := h.BotComments()
	last := all[len(all)-1]
	if fmt.Sprint(last.ID) != ref.ID || !strings.Contains(last.Body, "/approve "+chattest.AskID) || !strings.Contains(last.Body, "shown whole in the comments above") {
		t.Fatalf("the ask shows %s", last.Body)
	}
	var whole strings.Builder
	for _, c := range all[:len(all)-1] {
		_, code, _ := strings.Cut(c.Body, "````bash\n")
		code, _, _ = strings.Cut(code, "\n````")
		whole.WriteString(code + "\n")
	}
	if whole.String() != command.String() {
		t.Fatalf("%d parts hold %d characters, the command has %d: a part is lost, doubled or cut", len(all)-1, whole.Len(), command.Len())
	}
	// settling edits the ask alone
	post.Key, post.Edits, post.Message.Settled = "ask-2", &ref, true
	if _, err := h.door.Send(t.Context(), post); err != nil {
		t.Fatal(err)
	}
	if n := len(h.BotComments()); n != len(all) {
		t.Fatalf("settling wrote %d further comments", n-len(all))
	}
}

func TestInvariant05_ProseCannotHideTheCommand(t *testing.T) {
	for _, trick := range []string{"<details><summary>safe</summary>", "<!-- look away", "```\nopen fence", "- ```\n  x\n  ```\n<details>\n@lead-dev", "~~~"} {
		h := newHub(t)
		m := askMessage("rm -rf /")
		m.Text = trick
		if _, err := h.door.Send(t.Context(), chat.Post{Key: "k", Created: time.Now(), Message: m, Place: issue7}); err != nil {
			t.Fatal(err)
		}
		body := h.BotComments()[0].Body
		if strings.Contains(body, "<details") || strings.Contains(body, "<!-- look") || strings.Count(body, "@lead-dev") != 1 {
			t.Errorf("%q stays alive:\n%s", trick, body)
		}
		if strings.Count(strings.Split(body, "**command.sh**")[0], "```")%2 != 0 || strings.Count(strings.Split(body, "**command.sh**")[0], "~~~")%2 != 0 {
			t.Errorf("%q leaves a fence open:\n%s", trick, body)
		}
	}
}

func TestInvariant07_AMarkInAnothersCommentIsNotOurs(t *testing.T) {
	h := newHub(t)
	h.Write(repo, 7, "stranger", "hello\n\n<!-- reasonix:key="+chat.KeyDigest("k")+" -->")
	post := chat.Post{Key: "k", Created: time.Now(), Message: askMessage("ls"), Place: issue7}
	if _, found, err := h.door.Lookup(t.Context(), post); err != nil || found {
		t.Fatalf("found %v, %v", found, err)
	}
	quoted := askMessage("ls")
	quoted.Text = "look: <!-- reasonix:key=" + chat.KeyDigest("k") + " -->"
	quoted.Footer = quoted.Text
	if _, err := h.door.Send(t.Context(), chat.Post{Key: "other", Created: time.Now(), Message: quoted, Place: issue7}); err != nil {
		t.Fatal(err)
	}
	if _, found, err := h.door.Lookup(t.Context(), post); err != nil || found {
		t.Fatalf("a mark in the text of the model was found: %v, %v", found, err)
	}
}

func TestLookupReadsEveryPage(t *testing.T) {
	h := newHub(t)
	for range 250 {
		h.Write(repo, 7, "dev", "chatter")
	}
	post := chat.Post{Key: "k", Created: time.Now(), Message: askMessage("ls"), Place: issue7}
	ref, err := h.door.Send(t.Context(), post)
	if err != nil {
		t.Fatal(err)
	}
	found, ok, err := h.door.Lookup(t.Context(), post)
	if err != nil || !ok || found.ID != ref.ID {
		t.Fatalf("found %v %+v, %v", ok, found, err)
	}
}

func TestErrorsOfGitHubKeepTheirMeaning(t *testing.T) {
	cases := []struct {
		fault githubd.Fault
		want  string
		wait  time.Duration
	}{
		{githubd.Fault{RetryAfter: 42}, "retry", 42 * time.Second},
		{githubd.Fault{RetryAfter: 42, Status: 429}, "retry", 42 * time.Second},
		{githubd.Fault{ResetIn: 90}, "retry", 90 * time.Second},
		{githubd.Fault{Status: 429, Message: "slow down"}, "retry", time.Minute},
		{githubd.Fault{Status: 403, Message: "Resource not accessible"}, "gone", 0},
		{githubd.Fault{Status: 410, Message: "Issue was deleted"}, "gone", 0},
		{githubd.Fault{Status: 422, Message: "Validation Failed"}, "other", 0},
		{githubd.Fault{Status: 401, Message: "Bad credentials"}, "other", 0},
		{githubd.Fault{Status: 502}, "uncertain", 0},
		{githubd.Fault{DropAfter: true}, "uncertain", 0},
	}
	for _, c := range cases {
		h := newHub(t)
		h.Fail("POST comments", c.fault)
		_, err := h.door.Send(t.Context(), chat.Post{Key: "k", Created: time.Now(), Message: askMessage("ls"), Place: issue7})
		if got := meaning(err); got != c.want {
			t.Errorf("%+v: %s (%v), want %s", c.fault, got, err, c.want)
		}
		var again *chat.RetryError
		if errors.As(err, &again) && (again.After < c.wait-2*time.Second || again.After > c.wait+2*time.Second) {
			t.Errorf("%+v: waits %s, want %s", c.fault, again.After, c.wait)
		}
	}
	h := newHub(t)
	h.Lock(repo, 8)
	locked := issue7
	locked.Thread = "8"
	for _, p := range []chat.Place{locked, {Channel: repo, Thread: "x"}, {Channel: "no repo", Thread: "1"}} {
		if _, err := h.door.Send(t.Context(), chat.Post{Key: "k", Message: askMessage("ls"), Place: p}); meaning(err) != "gone" {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func meaning(err error) string {
	var again *chat.RetryError
	switch {
	case err == nil:
		return "none"
	case errors.Is(err, chat.ErrGone):
		return "gone"
	case errors.Is(err, chat.ErrUncertain):
		return "uncertain"
	case errors.As(err, &again):
		return "retry"
	}
	return "other"
}

func TestPullRequestIsOpenedOnce(t *testing.T) {
	h := newHub(t)
	pr := chat.PullRequest{Key: "pr1", Repo: repo, Branch: "reasonix/fix", Base: "main", Title: "Fix the login @dev", Body: "It was 500.", Draft: true, IssueNumber: 7}
	if _, found, err := h.door.FindPullRequest(t.Context(), pr); err != nil || found {
		t.Fatalf("found %v before it was opened, %v", found, err)
	}
	h.Fail("POST pulls", githubd.Fault{DropAfter: true})
	if _, err := h.door.OpenPullRequest(t.Context(), pr); meaning(err) != "uncertain" {
		t.Fatalf("a lost answer is %v", err)
	}
	ref, found, err := h.door.FindPullRequest(t.Context(), pr)
	if err != nil || !found || ref.ID != "100" {
		t.Fatalf("found %v %+v, %v", found, ref, err)
	}
	// whoever does not look first gets the same one
	again, err := h.door.OpenPullRequest(t.Context(), pr)
	if err != nil || again.ID != ref.ID {
		t.Fatalf("opened %+v beside %+v, %v", again, ref, err)
	}
	p := h.Pulls()[0]
	if len(h.Pulls()) != 1 || !p.Draft || !strings.Contains(p.Body, "For #7.") || strings.Contains(p.Title, "@dev") {
		t.Fatalf("got %+v", p)
	}
	// closed by a person: the same key is found, a later task opens its own
	h.ClosePull(repo, 100)
	if ref, found, err := h.door.FindPullRequest(t.Context(), pr); err != nil || !found || ref.ID != "100" {
		t.Fatalf("found %v %+v, %v", found, ref, err)
	}
	pr.Key = "pr2"
	if _, found, err := h.door.FindPullRequest(t.Context(), pr); err != nil || found {
		t.Fatalf("a closed one is taken for another task's: %v, %v", found, err)
	}
	h.NoDrafts()
	if _, err := h.door.OpenPullRequest(t.Context(), pr); err != nil || h.Pulls()[1].Draft {
		t.Fatalf("where drafts are unknown: %v", err)
	}
}

func TestHostGetsCredentialsForOneRepository(t *testing.T) {
	h := newHub(t)
	user, secret, err := h.door.GitCredentials(t.Context(), repo)
	if err != nil || user != "x-access-token" || secret != h.Token {
		t.Fatalf("%s %v", user, err)
	}
	s := githubd.New(t)
	s.UseApp(t)
	door := open(t, s, asApp(s))
	_, secret, err = door.GitCredentials(t.Context(), repo)
	if err != nil {
		t.Fatal(err)
	}
	if repos, known := s.Narrowed(secret); !known || repos != "api" {
		t.Fatalf("the app's token covers %q (known: %v)", repos, known)
	}
	if _, _, err := door.GitCredentials(t.Context(), "../etc"); err != nil {
		t.Log("refused by GitHub:", err)
	}
	if _, _, err := door.GitCredentials(t.Context(), "a/b/c"); err == nil {
		t.Fatal("a/b/c is taken for a repository")
	}
	items := door.Check(t.Context())
	if !items[0].OK || !strings.Contains(items[0].Text, "reasonix-app[bot]") {
		t.Fatalf("doctor says %+v", items)
	}
	broken := open(t, s, asApp(s), func(c *github.Config) { c.App.ID = 1 })
	if items := broken.Check(t.Context()); items[0].OK || !strings.Contains(items[0].Mend, "app.id") {
		t.Fatalf("doctor says %+v", items)
	}
}
