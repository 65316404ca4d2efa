package github

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"reasonix/internal/chat"
)

const (
	replyPause = time.Hour // between two refusals in words to the same person on the same issue
	replyBooks = 4096
)

// reactable is what a reaction can stand on; one of them is set.
type reactable struct {
	comment, review int64
	issue           int
}

// saying is what one command came to.
type saying struct {
	event   chat.Event
	outcome chat.Outcome
	odd     bool // not understood
}

// replyBook keeps refusals bounded: a stranger's comments must not make the bot talk without end.
type replyBook struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (b *replyBook) may(key string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at, ok := b.last[key]; ok && now.Sub(at) < replyPause {
		return false
	}
	if b.last == nil || len(b.last) >= replyBooks {
		b.last = map[string]time.Time{}
	}
	b.last[key] = now
	return true
}

var reactionOf = map[chat.OutcomeKind]string{chat.OutcomeOpened: "eyes", chat.OutcomeSteered: "eyes", chat.OutcomeAnswered: "+1",
	chat.OutcomeCancelled: "+1", chat.OutcomeRefused: "confused"}

// tell answers after the acknowledgement: a reaction for everything, and words where there is something to know. GitHub
// has no private word, so refusals are worded at most once an hour for each person and issue.
func (in *inbound) tell(ctx context.Context, s subject, list []saying) {
	reacted := map[string]bool{}
	for _, w := range list {
		reaction := reactionOf[w.outcome.Kind]
		if w.odd {
			reaction = "confused"
		}
		if reaction != "" && !reacted[reaction] {
			reacted[reaction] = true
			in.react(ctx, s, reaction)
		}
		if in.worded(s, w.outcome) {
			in.reply(ctx, w)
		}
	}
}

func (in *inbound) worded(s subject, o chat.Outcome) bool {
	if o.Text == "" {
		return false
	}
	switch o.Kind {
	case chat.OutcomeInfo:
		return true
	case chat.OutcomeRefused:
		return in.told.may(strings.ToLower(s.author.GetLogin())+" "+s.repo+"#"+strconv.Itoa(s.number), in.now())
	}
	return false
}

func (in *inbound) reply(ctx context.Context, w saying) {
	p := chat.Post{Key: "reply:" + w.event.Key, Place: w.event.Place, Message: chat.Message{Kind: chat.KindNotice, Text: w.outcome.Text}}
	if _, err := in.Send(ctx, p); err != nil {
		in.host.Log.Warn("a reply did not reach its issue", "connection", in.name, "place", w.event.Place.URL, "err", err)
	}
}

func (in *inbound) react(ctx context.Context, s subject, content string) {
	owner, name, err := splitRepo(s.repo)
	if err != nil {
		return
	}
	gh, err := in.access.client(ctx, s.repo)
	if err == nil {
		switch {
		case s.reactTo.comment != 0:
			_, _, err = gh.Reactions.CreateIssueCommentReaction(ctx, owner, name, s.reactTo.comment, content)
		case s.reactTo.review != 0:
			_, _, err = gh.Reactions.CreatePullRequestCommentReaction(ctx, owner, name, s.reactTo.review, content)
		default:
			_, _, err = gh.Reactions.CreateIssueReaction(ctx, owner, name, s.reactTo.issue, content)
		}
	}
	if err != nil {
		in.host.Log.Warn("a reaction could not be left", "connection", in.name, "reaction", content, "err", err)
	}
}
