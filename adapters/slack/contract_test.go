package slack_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"reasonix/adapters/slack"
	"reasonix/internal/chat"
	"reasonix/internal/chat/chattest"
	"reasonix/internal/testkit/slackd"
)

// open gives a door to a loopback workspace.
func open(t testing.TB, s *slackd.Server, change ...func(*slack.Config)) chat.Door {
	t.Helper()
	cfg := slack.Config{BotTokenEnv: "TOKEN", SigningSecretEnv: "SECRET", APIURL: s.URL}
	for _, f := range change {
		f(&cfg)
	}
	d, err := slack.Open(chat.DoorConfig{Name: "acme",
		Decode: func(v any) error { *v.(*slack.Config) = cfg; return nil },
		Getenv: func(k string) string { return map[string]string{"TOKEN": s.Token, "SECRET": s.SigningSecret}[k] }})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func deliver(s *slackd.Server, d slackd.Delivery) chattest.Delivery {
	return func(hook string) (int, error) {
		a, err := s.TryDeliver(hook, d)
		return a.Status, err
	}
}

func TestContract(t *testing.T) {
	chattest.Run(t, func(t *testing.T) chattest.Subject {
		s := slackd.New(t)
		root := s.Say("C1", "", "U1", "we have a bug")
		place := chat.Place{Connection: "acme", Kind: "slack", Channel: "C1", Thread: root["ts"].(string)}
		event := func() slackd.Delivery { return s.Event(s.Mention("C1", "", "U1", "fix the bug")) }
		stale, unsigned, foreign, late := event(), event(), event(), event()
		stale.At, late.At = time.Now().Add(-6*time.Minute), time.Now().Add(6*time.Minute)
		unsigned.Unsigned, foreign.Secret = true, "another secret"
		return chattest.Subject{
			Door: open(t, s),
			Work: func() chattest.Delivery { return deliver(s, event()) },
			Press: func(chat.Post) chattest.Delivery {
				return deliver(s, s.Click(t, s.BotPosts()[0], "Approve", "U9"))
			},
			Answer: func(id, text string) (list []chattest.Delivery) {
				for _, words := range []string{"approve " + id, "deny " + id, "answer " + id + " " + text} {
					list = append(list, deliver(s, s.Command("C1", "U9", "/reasonix", words)))
				}
				return list
			},
			Refusals: []chattest.Refusal{
				{Name: "unsigned", Send: deliver(s, unsigned), Status: 401},
				{Name: "signed with another secret", Send: deliver(s, foreign), Status: 401},
				{Name: "six minutes old", Send: deliver(s, stale), Status: 401},
				{Name: "six minutes ahead", Send: deliver(s, late), Status: 401},
				{Name: "over a megabyte", Send: deliver(s, slackd.JSON([]byte(`{"x":"`+strings.Repeat("y", 1<<20)+`"}`))), Status: 413},
				{Name: "no JSON", Send: deliver(s, slackd.JSON([]byte(`{"type":`))), Status: 400},
				{Name: "an empty form", Send: deliver(s, slackd.Form(url.Values{})), Status: 400},
				{Name: "another content type", Send: deliver(s, slackd.Delivery{ContentType: "text/plain", Body: []byte("hello")}), Status: 415},
			},
			Signed: func(body string) chattest.Delivery {
				kind := "application/json"
				if strings.HasPrefix(body, "payload=") {
					kind = "application/x-www-form-urlencoded"
				}
				return deliver(s, slackd.Delivery{ContentType: kind, Body: []byte(body)})
			},
			Place: place,
			Gone:  chat.Place{Connection: "acme", Kind: "slack", Channel: "C_GONE", Thread: "1.000001"},
			Count: func() int { return len(s.BotPosts()) },
			Shows: func(ref chat.Ref) string {
				for _, p := range s.BotPosts() {
					if p.TS == ref.ID {
						return p.Shown()
					}
				}
				return ""
			},
			LoseReply: func() { s.Fail("chat.postMessage", slackd.Fault{DropAfter: true}) },
			Limit:     func(d time.Duration) { s.Fail("chat.postMessage", slackd.Fault{RetryAfter: int(d.Seconds())}) },
		}
	})
}
