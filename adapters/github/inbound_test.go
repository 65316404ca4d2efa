package github_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"reasonix/adapters/github"
	"reasonix/internal/chat"
	"reasonix/internal/chat/chattest"
	"reasonix/internal/testkit/githubd"
)

// hub is a loopback GitHub with the door mounted.
type hub struct {
	*githubd.Server
	t    *testing.T
	door *github.Door
	sink *chattest.Sink
	hook string
}

func newHub(t *testing.T, change ...func(*github.Config)) *hub {
	s := githubd.New(t)
	s.Grant(repo, "dev", "write")
	return mount(t, s, change...)
}

func mount(t *testing.T, s *githubd.Server, change ...func(*github.Config)) *hub {
	h := &hub{Server: s, t: t, door: open(t, s, change...), sink: chattest.NewSink()}
	h.hook = chattest.Serve(t, h.door, h.sink)
	return h
}

func (h *hub) deliver(d githubd.Delivery) int {
	h.t.Helper()
	return h.Deliver(h.t, h.hook, d).Status
}

func (h *hub) ignored() string {
	h.t.Helper()
	items := h.door.Check(h.t.Context())
	return items[len(items)-1].Text
}

func TestCommentBecomesARequest(t *testing.T) {
	h := newHub(t)
	d := h.Comment(repo, 7, "dev", "Thanks!\r\n\r\n/reasonix Fix the login\r\nand its test.\r\n")
	d.Form = true
	if s := h.deliver(d); s != 200 {
		t.Fatalf("answered %d", s)
	}
	e := h.sink.Last(t)
	if e.On != "github.comment" || e.Command != "/reasonix fix" || e.Text != "the login\nand its test." || e.Repo != repo {
		t.Fatalf("got %+v", e)
	}
	if e.Actor.ID != "dev" || e.Actor.Access != "write" || e.Place.Channel != repo || e.Place.Thread != "7" || e.Target == nil || e.Target.Number != 7 || e.Target.IsPR {
		t.Fatalf("got %+v", e)
	}
	if len(e.Context) != 1 || e.Context[0].Author != "reporter" || e.Context[0].Text != "It says 500." || !strings.Contains(e.Context[0].Title, "Login fails") {
		t.Fatalf("the issue informs the task as %+v", e.Context)
	}
	h.WaitReaction(t, fmt.Sprintf("comment %d", h.Comments()[0].ID), "eyes")

	h.deliver(h.Comment(repo, 7, "dev", "@Reasonix-Bot, please look again"))
	if e := h.sink.Last(t); e.Command != "" || e.Text != "please look again" {
		t.Fatalf("got %+v", e)
	}
	h.deliver(h.Comment(repo, 7, "dev", "/reasonix fix"))
	if e := h.sink.Last(t); e.Text != "Work on #7 as it describes." {
		t.Fatalf("got %+v", e)
	}
}

func TestOnlyExplicitCommandsCount(t *testing.T) {
	ask := chattest.AskID
	cases := map[string][]string{ // body → verb and words, in order
		"prose about /reasonix fix":          nil,
		" /reasonix fix":                     nil,
		"> /reasonix fix":                    nil,
		"    /reasonix fix":                  nil,
		"```\n/reasonix fix\n```":            nil,
		"````\n```\n/reasonix fix\n````\nok": nil,
		"~~~ sh\n/reasonix fix":              nil,
		"<!--\n/reasonix fix\n-->":           nil,
		"<!-- hi --> text\n/reasonix fix":    {"work /reasonix fix"},
		"`` `x ``\n/reasonix fix":            {"work /reasonix fix"},
		"/reasonixfix":                       nil,
		"/lgtm":                              nil,
		"yes, approve it":                    nil,
		"/approve":                           {},
		"/approve it please":                 {},
		"/stop the music":                    {},
		"/answer " + ask:                     {},
		"/approve " + ask:                    {"press allow"},
		"/APPROVE " + ask:                    {"press allow"},
		"/approve " + ask + "\n/deny " + ask: {"press allow", "press deny"},
		"/answer " + ask + "\nuse\n8080":     {"press answer use\n8080"},
		"/stop\nthanks":                      {"stop"},
		"/status":                            {"status"},
		"/reasonix help":                     {"help /reasonix"},
		"@reasonix-bot status":               {"status"},
		"@reasonix-bot-two status":           nil,
		"/reasonix posture auto":             {"posture /reasonix"},
		"/reasonix fix a\n```\n/reasonix not\n```\n/status": {"work /reasonix fix", "status"},
		"/reasonix approve " + ask:                          {"press allow"},
		strings.Repeat("/status\n", 50):                     {"status", "status", "status", "status", "status", "status", "status", "status", "status", "status"},
	}
	for body, want := range cases {
		h := newHub(t)
		if s := h.deliver(h.Comment(repo, 7, "dev", body)); s != 200 {
			t.Errorf("%q: answered %d", body, s)
		}
		var got []string
		for _, e := range h.sink.Effects() {
			line := string(e.Verb)
			if line == "" {
				line = "work"
			}
			if e.Press != nil {
				line += " " + e.Press.Choice
				if e.Press.Text != "" {
					line += " " + e.Press.Text
				}
			} else if e.Command != "" {
				line += " " + e.Command
			}
			got = append(got, line)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q gives %q, want %q", body, got, want)
		}
		if want == nil && !strings.Contains(h.ignored(), "prose: 1") {
			t.Errorf("%q is not counted as prose: %s", body, h.ignored())
		}
		if want != nil && len(want) == 0 { // understood as a try: its author sees that it had no effect
			h.WaitReaction(t, fmt.Sprintf("comment %d", h.Comments()[0].ID), "confused")
		}
	}
}

func TestInvariant10_BotsAndOwnTextAreNeverCommands(t *testing.T) {
	h := newHub(t)
	for _, author := range []string{h.Bot, "Reasonix-Bot", "coderabbit[bot]"} {
		h.Grant(repo, author, "admin")
		h.deliver(h.Comment(repo, 7, author, "To start, write:\n/reasonix fix\n@reasonix-bot go"))
	}
	if n := len(h.sink.Effects()); n != 0 {
		t.Fatalf("%d effects", n)
	}
	if got := h.ignored(); !strings.Contains(got, "own text: 2") || !strings.Contains(got, "text by a bot: 1") {
		t.Fatalf("counted: %s", got)
	}
}

func TestInvariant10_EditsHaveNoEffectAndShowIt(t *testing.T) {
	h := newHub(t)
	c := h.Write(repo, 7, "dev", "/reasonix fix")
	prose := h.Write(repo, 7, "dev", "typo mended")
	h.deliver(h.CommentEvent("edited", c))
	h.deliver(h.CommentEvent("edited", prose))
	h.deliver(h.CommentEvent("deleted", c))
	if n := len(h.sink.Effects()); n != 0 {
		t.Fatalf("%d effects", n)
	}
	h.WaitReaction(t, fmt.Sprintf("comment %d", c.ID), "confused")
	if r := h.Reactions(fmt.Sprintf("comment %d", prose.ID)); len(r) != 0 {
		t.Fatalf("an edit of prose got %v", r)
	}
	if got := h.ignored(); !strings.Contains(got, "edited command: 1") || !strings.Contains(got, "comment deleted: 1") {
		t.Fatalf("counted: %s", got)
	}
}

func TestGitHubItselfSaysWhatAPersonMayDo(t *testing.T) {
	h := newHub(t)
	for user, role := range map[string]string{"boss": "admin", "keeper": "maintain", "sorter": "triage", "guest": "read"} {
		h.Grant(repo, user, role)
	}
	// every payload says CONTRIBUTOR
	for user, want := range map[string]string{"boss": "admin", "keeper": "maintain", "dev": "write", "sorter": "read", "guest": "read", "stranger": "none"} {
		h.deliver(h.Comment(repo, 7, user, "/reasonix fix"))
		if e := h.sink.Last(t); e.Actor.ID != user || e.Actor.Access != want {
			t.Errorf("%s is %q, want %q", e.Actor.ID, e.Actor.Access, want)
		}
	}
}

func TestUnknownAccessFailsClosedAndPassingFaultsAreRedelivered(t *testing.T) {
	h := newHub(t)
	for _, f := range []githubd.Fault{{Status: 502}, {RetryAfter: 60}, {RetryAfter: 60, Status: 429}, {ResetIn: 60}} {
		h := newHub(t)
		h.Fail("GET permission", f)
		d := h.Comment(repo, 7, "dev", "/reasonix fix")
		if s := h.deliver(d); s != 500 {
			t.Fatalf("%+v: answered %d", f, s)
		}
		again := mount(t, h.Server) // the redelivery comes after the wait
		if s := again.deliver(d); s != 200 || again.sink.Last(t).Actor.Access != "write" {
			t.Fatalf("%+v: the redelivery was answered %d", f, s)
		}
	}
	h.Fail("GET permission", githubd.Fault{Status: 403, Message: "Resource not accessible by integration"})
	if s := h.deliver(h.Comment(repo, 7, "dev", "/reasonix fix")); s != 200 {
		t.Fatalf("answered %d", s)
	}
	if e := h.sink.Last(t); e.Actor.Access != "" {
		t.Fatalf("access is %q although it could not be read", e.Actor.Access)
	}
	if !strings.Contains(h.ignored(), "permission unreadable: 1") {
		t.Fatalf("counted: %s", h.ignored())
	}
}

func TestPullRequestsArePinned(t *testing.T) {
	h := newHub(t)
	h.AddPull(githubd.Pull{Repo: repo, Number: 20, HeadSHA: "abc123", Branch: "topic", Base: "main", HeadRepo: repo})
	h.AddPull(githubd.Pull{Repo: repo, Number: 21, HeadSHA: "def456", Branch: "topic", Base: "main", HeadRepo: "stranger/api"})
	h.AddPull(githubd.Pull{Repo: repo, Number: 22, HeadSHA: "fed654", Branch: "topic", Base: "main"})
	for number, want := range map[int]chat.Target{
		20: {Number: 20, IsPR: true, HeadSHA: "abc123", BaseRef: "main"},
		21: {Number: 21, IsPR: true, HeadSHA: "def456", BaseRef: "main", Fork: true},
		22: {Number: 22, IsPR: true, HeadSHA: "fed654", BaseRef: "main", Fork: true},
	} {
		h.deliver(h.Comment(repo, number, "dev", "/reasonix fix"))
		if e := h.sink.Last(t); *e.Target != want {
			t.Errorf("comment: got %+v, want %+v", *e.Target, want)
		}
		h.deliver(h.ReviewComment(h.Pulls()[number-20], "dev", "/reasonix fix\nthis line"))
		e := h.sink.Last(t)
		if *e.Target != want || e.Text != "this line" {
			t.Errorf("review: got %+v", e)
		}
		if len(e.Context) != 2 || !strings.Contains(e.Context[1].Title, "login.go:7") || !strings.Contains(e.Context[1].Text, "+new") {
			t.Errorf("review: the lines inform the task as %+v", e.Context)
		}
	}
	h.Fail("GET pull", githubd.Fault{Status: 500})
	d := h.Comment(repo, 20, "dev", "/reasonix fix")
	if s := h.deliver(d); s != 500 {
		t.Fatalf("answered %d without knowing the head", s)
	}
	if s := h.deliver(d); s != 200 {
		t.Fatalf("the redelivery was answered %d", s)
	}
}

func TestIssuesAndLabels(t *testing.T) {
	h := newHub(t, func(c *github.Config) { c.Labels = []string{"ai-fix"} })
	h.deliver(h.Opened(repo, 9, "dev", "/reasonix drop the database", "It is slow.\n\n/reasonix fix the speed"))
	e := h.sink.Last(t)
	if e.On != "github.comment" || e.Command != "/reasonix fix" || e.Text != "the speed" || e.Place.Thread != "9" {
		t.Fatalf("got %+v", e)
	}
	h.deliver(h.Opened(repo, 10, "dev", "/reasonix fix", "A title is never a command."))
	h.deliver(h.Labeled(repo, 9, "dev", "bug"))
	h.deliver(h.Labeled(repo, 9, "stale[bot]", "reasonix"))
	if n := len(h.sink.Effects()); n != 1 {
		t.Fatalf("%d effects", n)
	}
	for _, label := range []string{"reasonix", "Reasonix:fix", "ai-fix"} {
		h.deliver(h.Labeled(repo, 9, "dev", label))
		e := h.sink.Last(t)
		if e.On != "github.label" || e.Command != label || e.Actor.ID != "dev" || e.Text != "Work on #9 as it describes." || len(e.Context) != 1 {
			t.Fatalf("got %+v", e)
		}
	}
}

func TestDoorRefusesAnUnsafeConfiguration(t *testing.T) {
	env := map[string]string{"TOKEN": "t", "SECRET": "s"}
	cases := map[string]github.Config{
		"webhook_secret_env is missing":   {TokenEnv: "TOKEN"},
		"NOTHING, which is empty":         {TokenEnv: "TOKEN", WebhookSecretEnv: "NOTHING"},
		"NO_TOKEN, which is empty":        {TokenEnv: "NO_TOKEN", WebhookSecretEnv: "SECRET"},
		"neither token_env nor app":       {WebhookSecretEnv: "SECRET"},
		"both set":                        {WebhookSecretEnv: "SECRET", TokenEnv: "TOKEN", App: &github.App{ID: 1}},
		"app.id is missing":               {WebhookSecretEnv: "SECRET", App: &github.App{}},
		"app.private_key_file is missing": {WebhookSecretEnv: "SECRET", App: &github.App{ID: 1}},
		"read app.private_key_file":       {WebhookSecretEnv: "SECRET", App: &github.App{ID: 1, PrivateKeyFile: "/does/not/exist"}},
		"holds no RSA key":                {WebhookSecretEnv: "SECRET", App: &github.App{ID: 1, PrivateKeyFile: "inbound_test.go"}},
		`api_url "nowhere" is no address`: {WebhookSecretEnv: "SECRET", TokenEnv: "TOKEN", APIURL: "nowhere"},
	}
	for want, cfg := range cases {
		_, err := chat.Open("github", chat.DoorConfig{Name: "hub", Getenv: func(k string) string { return env[k] },
			Decode: func(v any) error { *v.(*github.Config) = cfg; return nil }})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := github.Open(chat.DoorConfig{Name: "hub", Decode: func(any) error { return errors.New("unknown key") }}); err == nil {
		t.Error("a broken block is taken")
	}
}
