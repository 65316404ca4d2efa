package flow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reasonix/internal/agent"
	"reasonix/internal/approval"
	"reasonix/internal/chat"
	"reasonix/internal/session"
	"reasonix/internal/task"
)

// Tasks lists tasks, newest first.
func (h *Host) Tasks(ctx context.Context, f chat.TaskFilter) ([]chat.TaskView, error) {
	tasks, err := h.Ledger.Tasks(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	views := make([]chat.TaskView, len(tasks))
	for i, t := range tasks {
		views[i] = h.viewOf(t, nil, nil)
	}
	return views, nil
}

// Task shows one task with its asks, its receipt and what went wrong around it.
func (h *Host) Task(ctx context.Context, id string) (chat.TaskView, error) {
	t, err := h.Ledger.Task(ctx, id)
	if errors.Is(err, ErrUnknown) {
		return chat.TaskView{}, chat.ErrNotFound
	}
	if err != nil {
		return chat.TaskView{}, fmt.Errorf("open task %s: %w", id, err)
	}
	asks, err := h.Ledger.Asks(ctx, id, false)
	if err != nil {
		return chat.TaskView{}, fmt.Errorf("open task %s: %w", id, err)
	}
	grants, err := h.Ledger.Grants(ctx, t.Spec.Route, id)
	if err != nil {
		return chat.TaskView{}, fmt.Errorf("open task %s: %w", id, err)
	}
	v := h.viewOf(t, asks, grants)
	for _, a := range asks {
		v.Asks = append(v.Asks, askView(a))
	}
	posts, err := h.Ledger.Posts(ctx, id)
	if err != nil {
		return v, fmt.Errorf("open task %s: %w", id, err)
	}
	v.Trouble = troubleOf(posts)
	return v, nil
}

func troubleOf(posts []Queued) []string {
	var out []string
	for _, p := range posts {
		switch {
		case p.State == "dead":
			out = append(out, fmt.Sprintf("not delivered: %s (%s)", p.Key, p.Cause))
		case p.State == "pending" && p.Cause != "":
			out = append(out, fmt.Sprintf("delivery is retried: %s (%s)", p.Key, p.Cause))
		}
	}
	return out
}

// Asks lists asks, newest first.
func (h *Host) Asks(ctx context.Context, openOnly bool) ([]chat.AskView, error) {
	asks, err := h.Ledger.Asks(ctx, "", openOnly)
	if err != nil {
		return nil, fmt.Errorf("list asks: %w", err)
	}
	views := make([]chat.AskView, len(asks))
	for i, a := range asks {
		views[i] = askView(a)
	}
	return views, nil
}

func (h *Host) viewOf(t task.Task, asks []approval.Ask, grants []Grant) chat.TaskView {
	state := string(t.State)
	v := chat.TaskView{
		ID: t.ID, Title: t.Title, Request: t.Prompt, State: state, Route: t.Spec.Route, Mode: string(t.Spec.Mode), Posture: t.Spec.Posture,
		Repo: t.Spec.Repo, Branch: t.Branch, Requester: t.Spec.Asks.Requester, Place: t.Place, Created: t.Created, Updated: t.Updated,
		Result: t.Result, Model: t.Spec.Model, Attempts: t.Attempts, Diff: t.Diff, Receipt: t.Receipt, Controls: h.controls(t, asks, grants),
	}
	if t.State == task.Parked {
		v.State += " (" + string(t.Reason) + ")"
	}
	if t.Failure != "" {
		v.Result = t.Failure
	}
	if t.Published != nil {
		v.PullRequest = t.Published.PR.URL
	}
	return v
}

func askView(a approval.Ask) chat.AskView {
	v := chat.AskView{
		ID: a.ID, TaskID: a.TaskID, Kind: string(a.Kind), State: string(a.State), Title: a.Title, Text: a.Text, Blocks: a.Blocks,
		Fields: a.Fields, Digest: a.Digest, Approvers: a.Rules.Approvers, Created: a.Created, Expires: a.Expires,
	}
	if a.State == approval.StateOpen {
		for _, c := range a.Choices {
			v.Buttons = append(v.Buttons, chat.Button{Label: c.Label, Choice: c.ID, Style: c.Style, Input: c.Input, Optional: c.Optional})
		}
	}
	if a.Answer != nil {
		v.Answer = fmt.Sprintf("%s by %s", labelOf(a), a.Answer.Person)
		if a.Answer.Text != "" {
			v.Answer += ": " + a.Answer.Text
		}
	}
	return v
}

// Watch streams a task's feed: what is durable after the given position, then live text and every new entry.
func (h *Host) Watch(ctx context.Context, taskID string, after int64) (<-chan chat.FeedItem, error) {
	t, err := h.Ledger.Task(ctx, taskID)
	if errors.Is(err, ErrUnknown) {
		return nil, chat.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("watch task %s: %w", taskID, err)
	}
	w := &watch{host: h, t: t, log: h.Ledger.Transcript(t.ID, t.SessionID, 0), after: after, out: make(chan chat.FeedItem, 64)}
	live, stop := h.feed.subscribe(taskID)
	go func() {
		defer close(w.out)
		defer stop()
		w.run(ctx, live)
	}()
	return w.out, nil
}

type watch struct {
	host  *Host
	t     task.Task
	log   session.Log
	after int64
	out   chan chat.FeedItem
}

func (w *watch) run(ctx context.Context, live <-chan chat.FeedItem) {
	for {
		changed := w.host.Ledger.Changed(w.t.ID)
		t, err := w.host.Ledger.Task(ctx, w.t.ID)
		if err != nil || !w.durable(ctx) {
			return
		}
		if t.State.Ended() {
			w.emit(ctx, chat.FeedItem{At: t.Updated, Kind: "state", Text: string(t.State), OK: t.State == task.Completed})
			return
		}
		if !w.live(ctx, live, changed) {
			return
		}
	}
}

// live passes live items on until something durable changed.
func (w *watch) live(ctx context.Context, live <-chan chat.FeedItem, changed <-chan struct{}) bool {
	poll := time.NewTimer(2 * time.Second) // another process may work on the task
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-changed:
			return true
		case <-poll.C:
			return true
		case item := <-live:
			if !w.emit(ctx, item) {
				return false
			}
		}
	}
}

// perEntry is how many positions of the feed one transcript entry has: an assistant message is its text and up to 128 calls. Every item
// has a position of its own, so that a reader who was cut off in the middle of an entry misses nothing and sees nothing twice.
const perEntry = 1 << 10

func (w *watch) durable(ctx context.Context) bool {
	entries, err := w.log.Entries(ctx, max(0, w.after/perEntry-1))
	if err != nil {
		return false
	}
	for _, e := range entries {
		for i, item := range itemsOf(e) {
			item.Seq = e.Seq*perEntry + int64(i)
			if item.Seq <= w.after {
				continue
			}
			if !w.emit(ctx, item) {
				return false
			}
		}
		w.after = max(w.after, e.Seq*perEntry+perEntry-1)
	}
	return true
}

func (w *watch) emit(ctx context.Context, item chat.FeedItem) bool {
	select {
	case w.out <- item:
		return true
	case <-ctx.Done():
		return false
	}
}

// itemsOf is how a transcript entry looks in the feed.
func itemsOf(e session.Entry) []chat.FeedItem {
	item := chat.FeedItem{At: e.At, ID: e.CallID, OK: true}
	with := func(kind, text string) []chat.FeedItem {
		item.Kind, item.Text = kind, text
		return []chat.FeedItem{item}
	}
	switch e.Kind {
	case session.KindAssistant:
		return assistantItems(e, item)
	case session.KindResult:
		if e.Fact != nil {
			item.Tool, item.OK = e.Fact.Tool, e.Fact.OK
		}
		return with("result", contentOf(e))
	case session.KindUser:
		return with("note", contentOf(e))
	case session.KindPending:
		return with("ask", "")
	case session.KindDecision:
		return with("decision", decisionText(e))
	case session.KindNote:
		if text := noteText(e); text != "" {
			return with("note", text)
		}
	}
	return nil
}

func assistantItems(e session.Entry, item chat.FeedItem) []chat.FeedItem {
	var out []chat.FeedItem
	if e.Message == nil {
		return nil
	}
	if e.Message.Content != "" {
		item.Kind, item.Text = "text", e.Message.Content
		out = append(out, item)
	}
	for _, c := range e.Message.ToolCalls {
		item.Kind, item.Tool, item.ID, item.Text = "call", c.Name, c.ID, c.Arguments
		out = append(out, item)
	}
	return out
}

func contentOf(e session.Entry) string {
	if e.Message == nil {
		return ""
	}
	return e.Message.Content
}

// observe passes an agent's live happening on; durable entries come from the transcript instead.
func (f *feed) observe(taskID string, o agent.Observation, now time.Time) {
	if o.Seq != 0 || (o.Kind != "text" && o.Kind != "output") {
		return
	}
	f.publish(taskID, chat.FeedItem{At: now, Kind: o.Kind, Tool: o.Tool, ID: o.CallID, Text: o.Text, OK: o.OK})
}

// Health lists what works: the host's own checks, then each door's.
func (h *Host) Health(ctx context.Context) []chat.HealthItem {
	var out []chat.HealthItem
	if h.Options.Checks != nil {
		out = append(out, h.Options.Checks(ctx)...)
	}
	for _, d := range h.Doors {
		out = append(out, d.Check(ctx)...)
	}
	return out
}
