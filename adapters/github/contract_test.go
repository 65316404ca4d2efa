package github_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"reasonix/adapters/github"
	"reasonix/internal/chat"
	"reasonix/internal/chat/chattest"
	"reasonix/internal/testkit/githubd"
)

const repo = "acme/api"

// open gives a door to a loopback GitHub.
func open(t testing.TB, s *githubd.Server, change ...func(*github.Config)) *github.Door {
	t.Helper()
	cfg := github.Config{WebhookSecretEnv: "SECRET", TokenEnv: "TOKEN", APIURL: s.URL}
	for _, f := range change {
		f(&cfg)
	}
	d, err := github.Open(chat.DoorConfig{Name: "hub",
		Decode: func(v any) error { *v.(*github.Config) = cfg; return nil },
		Getenv: func(k string) string { return map[string]string{"TOKEN": s.Token, "SECRET": s.Secret}[k] }})
	if err != nil {
		t.Fatal(err)
	}
	return d.(*github.Door)
}

func deliver(s *githubd.Server, d githubd.Delivery) chattest.Delivery {
	return func(hook string) (int, error) {
		a, err := s.TryDeliver(hook, d)
		return a.Status, err
	}
}

func asApp(s *githubd.Server) func(*github.Config) {
	return func(c *github.Config) {
		c.TokenEnv, c.App = "", &github.App{ID: s.AppID, PrivateKeyFile: s.KeyFile}
	}
}

func TestContract(t *testing.T) {
	t.Run("token", func(t *testing.T) { contract(t, false) })
	t.Run("app", func(t *testing.T) { contract(t, true) })
}

func contract(t *testing.T, app bool) {
	chattest.Run(t, func(t *testing.T) chattest.Subject {
		s := githubd.New(t)
		s.Grant(repo, "dev", "write")
		var change []func(*github.Config)
		if app {
			s.UseApp(t)
			change = append(change, asApp(s))
		}
		work := func() githubd.Delivery { return s.Comment(repo, 7, "dev", "/reasonix fix the login") }
		unsigned, foreign, old, broken := work(), work(), work(), work()
		unsigned.Unsigned, foreign.Secret, old.OldSign, broken.Body = true, "another secret", true, []byte(`{"action":`)
		huge := work()
		huge.Body = []byte(`{"x":"` + strings.Repeat("y", 25<<20) + `"}`)
		nameless := work()
		nameless.Event = ""
		return chattest.Subject{
			Door: open(t, s, change...),
			Work: func() chattest.Delivery { return deliver(s, work()) },
			Answer: func(id, text string) (list []chattest.Delivery) {
				for _, words := range []string{"/approve " + id, "/deny " + id, "/answer " + id + " " + text} {
					list = append(list, deliver(s, s.Comment(repo, 7, "dev", words)))
				}
				return list
			},
			Refusals: []chattest.Refusal{
				{Name: "unsigned", Send: deliver(s, unsigned), Status: 401},
				{Name: "signed with another secret", Send: deliver(s, foreign), Status: 401},
				{Name: "signed with SHA-1 alone", Send: deliver(s, old), Status: 401},
				{Name: "over 25 MB", Send: deliver(s, huge), Status: 413},
				{Name: "no JSON", Send: deliver(s, broken), Status: 400},
				{Name: "without an event name", Send: deliver(s, nameless), Status: 400},
			},
			Signed: func(body string) chattest.Delivery {
				return deliver(s, githubd.Delivery{Event: "issue_comment", Body: []byte(body)})
			},
			Place: chat.Place{Connection: "hub", Kind: "github", Channel: repo, Thread: "7"},
			Gone:  chat.Place{Connection: "hub", Kind: "github", Channel: repo, Thread: "404"},
			Count: func() int { return len(s.BotComments()) },
			Shows: func(ref chat.Ref) string {
				for _, c := range s.BotComments() {
					if strconv.FormatInt(c.ID, 10) == ref.ID {
						return c.Body
					}
				}
				return ""
			},
			LoseReply: func() { s.Fail("POST comments", githubd.Fault{DropAfter: true}) },
			Limit:     func(d time.Duration) { s.Fail("POST comments", githubd.Fault{RetryAfter: int(d.Seconds())}) },
		}
	})
}
