package slackd_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"

	"reasonix/internal/testkit/slackd"
)

// The vendor community's own client is the judge of whether the double speaks Slack.
func TestTheClientLibraryGetsAlong(t *testing.T) {
	s := slackd.New(t)
	api := slack.New(s.Token, slack.OptionAPIURL(s.URL))
	who, err := api.AuthTestContext(t.Context())
	if err != nil || who.BotID != s.BotID || who.TeamID != s.Team {
		t.Fatalf("auth.test: %+v, %v", who, err)
	}
	if _, err := slack.New("wrong", slack.OptionAPIURL(s.URL)).AuthTestContext(t.Context()); err == nil || err.Error() != "invalid_auth" {
		t.Fatalf("a wrong token: %v", err)
	}
	meta := slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "x", EventPayload: map[string]any{"key": "k1"}})
	_, ts, err := api.PostMessageContext(t.Context(), "C1", slack.MsgOptionText("hello", false), meta)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, _, err := api.PostMessageContext(t.Context(), "C1", slack.MsgOptionText("reply", false), slack.MsgOptionTS(ts)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, _, err := api.UpdateMessageContext(t.Context(), "C1", ts, slack.MsgOptionText("edited", false), meta); err != nil {
		t.Fatal(err)
	}
	if _, err := api.PostEphemeralContext(t.Context(), "C1", "U1", slack.MsgOptionText("psst", false)); err != nil || len(s.Whispers()) != 1 {
		t.Fatalf("ephemeral: %v", err)
	}
	if u, err := api.GetUserInfoContext(t.Context(), "U1"); err != nil || u.ID != "U1" {
		t.Fatalf("users.info: %v", err)
	}
	history, err := api.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: "C1", IncludeAllMetadata: true})
	if err != nil || len(history.Messages) != 1 || history.Messages[0].Text != "edited" || history.Messages[0].Metadata.EventPayload["key"] != "k1" {
		t.Fatalf("history: %+v, %v", history, err)
	}
	seen, cursor := 0, ""
	for {
		msgs, _, next, err := api.GetConversationRepliesContext(t.Context(), &slack.GetConversationRepliesParameters{ChannelID: "C1", Timestamp: ts, Limit: 4, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		seen += len(msgs)
		if cursor = next; next == "" {
			break
		}
	}
	if seen != 6 {
		t.Fatalf("the thread has %d messages", seen)
	}
	if _, err := api.UploadFileContext(t.Context(), slack.UploadFileParameters{Filename: "a.txt", Content: "abc", FileSize: 3, Channel: "C1", ThreadTimestamp: ts}); err != nil {
		t.Fatal(err)
	}
	if f := s.Files(); len(f) != 1 || f[0].Content != "abc" || f[0].ThreadTS != ts {
		t.Fatalf("files: %+v", f)
	}
}

func TestFaultsLookLikeSlack(t *testing.T) {
	s := slackd.New(t)
	api := slack.New(s.Token, slack.OptionAPIURL(s.URL))
	s.Fail("chat.postMessage", slackd.Fault{RetryAfter: 7}, slackd.Fault{DropAfter: true})
	_, _, err := api.PostMessageContext(t.Context(), "C1", slack.MsgOptionText("x", false))
	var limited *slack.RateLimitedError
	if !errors.As(err, &limited) || limited.RetryAfter.Seconds() != 7 {
		t.Fatalf("got %v", err)
	}
	if _, _, err := api.PostMessageContext(t.Context(), "C1", slack.MsgOptionText("x", false)); err == nil || len(s.Posts()) != 1 {
		t.Fatalf("got %v with %d posts", err, len(s.Posts()))
	}
	long := make([]byte, 3001)
	for i := range long {
		long[i] = 'x'
	}
	block := slack.NewSectionBlock(slack.NewTextBlockObject("mrkdwn", string(long), false, false), nil, nil)
	if _, _, err := api.PostMessageContext(t.Context(), "C1", slack.MsgOptionBlocks(block)); err == nil || err.Error() != "invalid_blocks" {
		t.Fatalf("a section over 3,000 characters: %v", err)
	}
}

func TestDeliveriesAreSignedAsSlackSigns(t *testing.T) {
	s := slackd.New(t)
	var problem error
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		v, err := slack.NewSecretsVerifier(r.Header, s.SigningSecret)
		body, _ := io.ReadAll(r.Body)
		_, _ = v.Write(body)
		problem = errors.Join(err, v.Ensure())
		if r.Header.Get("Content-Type") == "application/json" {
			_, err = slackevents.ParseEvent(body, slackevents.OptionNoVerifyToken())
			problem = errors.Join(problem, err)
		}
	}))
	defer hook.Close()
	for _, d := range []slackd.Delivery{s.Event(s.Mention("C1", "", "U1", "hi")), s.Command("C1", "U1", "/x", "y")} {
		s.Deliver(t, hook.URL, d)
		if problem != nil {
			t.Fatal(problem)
		}
	}
}
