package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reasonix/internal/chat"
	"reasonix/internal/evidence"
	"reasonix/internal/run"
	"reasonix/internal/task"
	"reasonix/internal/workspace"
)

// finishOrGoOn ends the task, unless somebody said something meanwhile that the model has not read: nothing said is lost.
func (a *attempt) finishOrGoOn(ctx context.Context, out run.Outcome, p Progress) error {
	unread, err := a.Ledger.Inbox(ctx, a.t.ID)
	if err != nil {
		return fmt.Errorf("read inbox: %w", err)
	}
	if len(unread) > 0 {
		return a.Ledger.Yield(ctx, a.held, p)
	}
	if err := a.finish(ctx, out, p); err != nil {
		return err
	}
	return a.openForLate(ctx)
}

// openForLate opens a follow-up for text that arrived between the last look and the end.
func (a *attempt) openForLate(ctx context.Context) error {
	late, err := a.Ledger.Inbox(ctx, a.t.ID)
	if err != nil || len(late) == 0 {
		return err
	}
	texts := make([]string, len(late))
	for i, it := range late {
		texts[i] = it.Text
	}
	text := strings.Join(texts, "\n\n")
	now := a.Now().UTC()
	next := task.Task{
		ID: task.NewID("task"), Conversation: a.t.Conversation, Place: a.t.Place, Requester: a.t.Requester, Title: task.Title(text), Prompt: text,
		Created: now, Updated: now,
	}
	next = a.followUp(next, a.t)
	_ = takeGoal(&next) // what cannot be a goal is read as it stands
	_, err = a.Ledger.Open(ctx, Opening{EventKey: fmt.Sprintf("late:%s:%d", a.t.ID, late[0].ID), Task: next, Posts: a.redacted(ackPosts(next))})
	if errors.Is(err, ErrDuplicate) || errors.Is(err, ErrBusy) {
		return nil
	}
	return err
}

// finish harvests, publishes where the route says so, and stores the end with the final post.
func (a *attempt) finish(ctx context.Context, out run.Outcome, p Progress) error {
	text := out.Text
	if out.Report != nil && out.Report.Summary != "" {
		text = out.Report.Summary
	}
	harvest, err := a.bench.Harvest(ctx, commitMessage(a.t))
	if errors.Is(err, workspace.ErrPolicy) {
		return a.fail(ctx, p, "The change may not be published: "+err.Error()+". The work stays in the task's workspace.")
	}
	if err != nil {
		return a.trouble(ctx, p, "The change could not be read from the workspace", err)
	}
	pr, err := a.publish(ctx, harvest)
	if err != nil {
		return a.trouble(ctx, p, "The change could not be published", err)
	}
	receipt, err := a.receipt(ctx, harvest, p)
	if err != nil {
		return err
	}
	diff := a.Redactor.String(harvest.Diff)
	fields := resultFields(receipt, harvest, pr)
	err = a.Ledger.Finish(ctx, Finishing{
		Held: a.held, Progress: p, State: task.Completed, Result: a.Redactor.String(text), Diff: diff, Receipt: receipt,
		Posts: a.redacted([]NewPost{
			statusPost(a.t, "Completed", fmt.Sprint("end:", a.t.Fence)),
			finalPost(a.t, "completed", text, fields, diff),
		}),
	})
	if err == nil {
		a.Host.state(a.t, "completed")
	}
	return err
}

func resultFields(r *chat.ReceiptView, hv workspace.Harvest, pr string) []chat.Field {
	f := []chat.Field{{Label: "Changed", Value: changed(hv)}}
	if pr != "" {
		f = append(f, chat.Field{Label: "Pull request", Value: pr})
	}
	f = append(f, shownChecks(r.Checks)...)
	if len(r.Approvals) > 0 {
		f = append(f, chat.Field{Label: "Approved", Value: rows(r.Approvals)})
	}
	if len(r.HostFacts) > 0 { // beside the model's word, and never changed by it
		f = append(f, chat.Field{Label: "The host notes", Value: rows(r.HostFacts)})
	}
	return append(f, r.Usage...)
}

// A final post is read on a phone: the receipt on the task's page has the rest.
const (
	postRows   = 6
	postChecks = 5
)

// rows puts one fact on a line.
func rows(lines []string) string {
	if len(lines) > postRows {
		lines = append(lines[:postRows:postRows], "… more in the receipt")
	}
	return strings.Join(lines, "\n")
}

// shownChecks are the first checks, those that did not simply pass before the others.
func shownChecks(checks []chat.Field) []chat.Field {
	if len(checks) <= postChecks {
		return checks
	}
	sorted := slices.Clone(checks)
	slices.SortStableFunc(sorted, func(a, b chat.Field) int { return passed(a) - passed(b) })
	return append(sorted[:postChecks:postChecks], chat.Field{Label: "More checks", Value: fmt.Sprintf("%d, in the receipt", len(checks)-postChecks)})
}

func passed(check chat.Field) int {
	if check.Value == string(evidence.Passed) {
		return 1
	}
	return 0
}

func changed(hv workspace.Harvest) string {
	if hv.Empty() {
		return "nothing"
	}
	if n := len(hv.Files); n > 5 {
		return fmt.Sprintf("%s and %d more files", strings.Join(hv.Files[:5], ", "), n-5)
	}
	return strings.Join(hv.Files, ", ")
}

func commitMessage(t task.Task) string {
	return fmt.Sprintf("%s\n\nTask: %s\nRequested-by: %s", t.Title, t.ID, t.Spec.Asks.Requester)
}

func (a *attempt) fail(ctx context.Context, p Progress, why string) error {
	why = a.Redactor.String(why)
	receipt, err := a.receipt(ctx, workspace.Harvest{}, p)
	if err != nil {
		return err
	}
	err = a.Ledger.Finish(ctx, Finishing{
		Held: a.held, Progress: p, State: task.Failed, Failure: why, Receipt: receipt,
		Posts: a.redacted([]NewPost{
			statusPost(a.t, "Failed", fmt.Sprint("end:", a.t.Fence)),
			finalPost(a.t, "failed", why+" Try again with `reasonix bot tasks retry "+a.t.ID+"`.", nil, ""),
		}),
	})
	if err == nil {
		a.Host.state(a.t, "failed")
	}
	return err
}

func (a *attempt) finishCancelled(ctx context.Context, by string, p Progress) error {
	err := a.Ledger.Finish(ctx, Finishing{
		Held: a.held, Progress: p, State: task.Cancelled, Result: "Stopped by " + by + ".",
		Posts: a.redacted(append(cancelPosts(a.t, by), statusPost(a.t, "Stopped by "+by, fmt.Sprint("end:", a.t.Fence)))),
	})
	if err == nil {
		a.Host.state(a.t, "cancelled")
	}
	return err
}

// state tells the live feed about a new state; the row is the truth.
func (h *Host) state(t task.Task, state string) {
	h.feed.publish(t.ID, chat.FeedItem{At: h.Now(), Kind: "state", Text: state, OK: true})
}

// stamp shortens a duration for people.
func stamp(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }
