package flow

import (
	"context"
	"fmt"

	"reasonix/internal/approval"
	"reasonix/internal/task"
)

// expire lets time answer the asks whose time has come: a reminder, a denial or the end, as the route says.
func (h *Host) expire(ctx context.Context) error {
	due, err := h.Ledger.DueAsks(ctx, h.Now())
	if err != nil {
		return fmt.Errorf("look for expired asks: %w", err)
	}
	for _, ask := range due {
		if _, err := h.Ledger.Expire(ctx, ask.ID, h.lapse); err != nil {
			return fmt.Errorf("expire ask %s: %w", ask.ID, err)
		}
	}
	return nil
}

// lapse is the judgement of time on one ask.
func (h *Host) lapse(a approval.Ask, t task.Task) Judged {
	what, after := approval.Lapse(a, t.Spec.Expire, h.Now().UTC())
	j := Judged{Verdict: approval.Verdict{Ask: after}}
	switch what {
	case approval.ExpireRemind:
		reminder := askPost(after, t, h.People)
		reminder.Key = fmt.Sprintf("ask:%s:reminder:%d", a.ID, after.Reminded)
		reminder.Message.Title = "Reminder: " + reminder.Message.Title
		j.Posts = []NewPost{reminder}
	case approval.ExpireDeny:
		j.Verdict.Kind = approval.Accepted
		j.Posts = []NewPost{settledPost(after, t, "**Nobody answered in time**, so it counts as denied.")}
		// A limit or a blocked task that nobody looks at cannot go on by itself.
		if a.CallID == "" {
			j.Cancel, j.Result = true, "Nobody answered in time."
			j.Posts = append(j.Posts, finalPost(t, "expired", j.Result, nil, ""))
		}
	case approval.ExpireCancel:
		j.Verdict.Kind = approval.Accepted
		j.Cancel, j.Result = true, "Nobody answered in time."
		j.Posts = []NewPost{settledPost(after, t, "**Nobody answered in time**, so the task ended."), finalPost(t, "expired", j.Result, nil, "")}
	}
	j.Posts = h.redacted(j.Posts)
	return j
}
