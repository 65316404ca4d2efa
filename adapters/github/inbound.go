package github

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"reasonix/internal/chat"
)

const (
	inboundLimit = 8 * time.Second // GitHub gives up after 10 s
	tellLimit    = 20 * time.Second
)

// inbound answers GitHub's webhooks.
type inbound struct {
	*Door
	host chat.Host
}

// Handler verifies, translates and hands over; it acknowledges only after the sink took the event. GitHub never tries
// again by itself: what was not taken is answered 500, shows as failed in the webhook's list and can be redelivered there.
func (d *Door) Handler(h chat.Host) http.Handler { return &inbound{Door: d, host: h} }

func (in *inbound) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("X-GitHub-Delivery")
	body, err := in.readVerified(w, r)
	var after func(context.Context)
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), inboundLimit)
		after, err = in.dispatch(ctx, r.Header.Get("X-GitHub-Event"), body)
		cancel()
	}
	var no *refusal
	switch {
	case errors.As(err, &no):
		in.host.Log.Warn("github webhook refused", "connection", in.name, "delivery", clip(id, 64), "reason", no.reason)
		http.Error(w, no.reason, no.status)
	case err != nil:
		in.host.Log.Error("github webhook was not taken; redeliver it", "connection", in.name, "delivery", clip(id, 64), "err", err)
		http.Error(w, "not taken, redeliver", http.StatusInternalServerError)
	default:
		acknowledge(w)
		if after != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), tellLimit)
			defer cancel()
			after(ctx)
		}
	}
}

// acknowledge completes the answer at once, so that reactions may follow it.
func acknowledge(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
	// an error means that the connection cannot be flushed early; the answer then leaves when the handler returns
	_ = http.NewResponseController(w).Flush()
}

// dispatch returns what is to be said after the acknowledgement, if anything.
func (in *inbound) dispatch(ctx context.Context, event string, body []byte) (func(context.Context), error) {
	switch event {
	case "":
		return nil, &refusal{http.StatusBadRequest, "X-GitHub-Event is missing"}
	case "issue_comment", "issues", "pull_request", "pull_request_review_comment":
	default:
		if !json.Valid(body) {
			return nil, &refusal{http.StatusBadRequest, "body is no JSON"}
		}
		return nil, in.ignore("event " + clip(event, 40))
	}
	payload, err := github.ParseWebHook(event, body)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "body is no payload of " + event}
	}
	switch p := payload.(type) {
	case *github.IssueCommentEvent:
		return in.issueComment(ctx, p)
	case *github.PullRequestReviewCommentEvent:
		return in.reviewComment(ctx, p)
	case *github.IssuesEvent:
		return in.issue(ctx, p)
	case *github.PullRequestEvent:
		return in.pullRequest(ctx, p)
	}
	return nil, in.ignore("event " + clip(event, 40))
}

// ignore counts what has no effect, with the reason.
func (in *inbound) ignore(reason string) error {
	n := in.ignored.Count(reason)
	in.host.Log.Debug("github event ignored", "connection", in.name, "reason", reason, "count", n)
	return nil
}

// subject is what an event is about, whichever kind of payload carried it.
type subject struct {
	repo    string
	number  int
	url     string
	key     string // identity of its meaning
	author  *github.User
	sender  *github.User
	body    string
	reactTo reactable
	target  func(context.Context) (*chat.Target, error)
	context []chat.Source
}

// take reads the commands of a text that somebody wrote and hands each over.
func (in *inbound) take(ctx context.Context, s subject) (func(context.Context), error) {
	if reason, err := in.unheard(ctx, s); err != nil || reason != "" {
		return nil, joined(err, in.ignoreIf(reason))
	}
	bot, err := in.botLogin(ctx)
	if err != nil {
		return nil, err
	}
	list := commands(s.body, bot)
	if len(list) == 0 {
		return nil, in.ignore("prose")
	}
	facts, err := in.facts(ctx, s)
	if err != nil {
		return nil, err
	}
	var sayings []saying
	for i, c := range list {
		out, err := in.takeCommand(ctx, s, facts, i, c)
		if err != nil {
			return nil, err
		}
		sayings = append(sayings, out)
	}
	return func(ctx context.Context) { in.tell(ctx, s, sayings) }, nil
}

func (in *inbound) ignoreIf(reason string) error {
	if reason == "" {
		return nil
	}
	return in.ignore(reason)
}

// unheard tells why a text is never read for commands, or returns nothing.
func (in *inbound) unheard(ctx context.Context, s subject) (string, error) {
	if s.repo == "" || s.number <= 0 || s.author.GetLogin() == "" {
		return "payload without place or author", nil
	}
	if isBot(s.author) || isBot(s.sender) {
		return "text by a bot", nil
	}
	bot, err := in.botLogin(ctx)
	if err != nil {
		return "", err
	}
	if strings.EqualFold(s.author.GetLogin(), bot) {
		return "own text", nil
	}
	return "", nil
}

// isBot goes by the type and the reserved suffix; both only ever take trust away.
func isBot(u *github.User) bool {
	return u.GetType() == "Bot" || strings.HasSuffix(u.GetLogin(), "[bot]")
}

func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
