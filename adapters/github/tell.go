package github

import (
	"context"

	"reasonix/internal/chat"
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

var reactionOf = map[chat.OutcomeKind]string{chat.OutcomeOpened: "eyes", chat.OutcomeSteered: "eyes", chat.OutcomeAnswered: "+1",
	chat.OutcomeCancelled: "+1", chat.OutcomeRefused: "confused"}

// tell answers after the acknowledgement with a reaction. Words come from the host through its outbox, since GitHub has no private word.
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
