package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"reasonix/internal/approval"
	"reasonix/internal/chat"
	"reasonix/internal/flow"
	"reasonix/internal/task"
)

// judge decides on an ask; it is the caller's, and pure.
type judge func(approval.Ask, task.Task) flow.Judged

// firstAnswer is what is kept of a verdict for repeated deliveries: the rest of the ask never changes.
type firstAnswer struct {
	Kind    approval.VerdictKind `json:"kind"`
	Reason  string               `json:"reason,omitempty"`
	State   approval.State       `json:"state"`
	Votes   []approval.Vote      `json:"votes,omitempty"`
	Answer  *approval.Answer     `json:"answer,omitempty"`
	Cancel  bool                 `json:"cancel,omitempty"`
	Result  string               `json:"result,omitempty"`
	Expires time.Time            `json:"expires,omitzero"`
}

// Decide lets judge decide on a press and stores what follows.
func (s *Store) Decide(ctx context.Context, eventKey, askID string, judge func(approval.Ask, task.Task) flow.Judged) (flow.Judged, error) {
	e := &event{key: eventKey, arrow: "decide", askID: askID}
	var j flow.Judged
	err := s.arrow(ctx, "decide ask", e, func(tx *txn) error {
		a, err := tx.ask(askID)
		if err != nil {
			return err
		}
		if j, err = tx.settle(a, judge, press); err != nil {
			return err
		}
		return e.keep(a.TaskID, j)
	})
	if errors.Is(err, flow.ErrDuplicate) {
		first, readErr := s.firstJudged(ctx, e)
		return first, errors.Join(err, readErr)
	}
	if err != nil {
		return flow.Judged{}, err
	}
	return j, nil
}

// Expire lets judge decide on an ask whose time has come. An ask that is not open any more is reported as too late.
func (s *Store) Expire(ctx context.Context, askID string, judge func(approval.Ask, task.Task) flow.Judged) (flow.Judged, error) {
	var j flow.Judged
	err := s.write(ctx, "expire ask", func(tx *txn) error {
		a, err := tx.ask(askID)
		if err != nil {
			return err
		}
		if a.State != approval.StateOpen {
			j = flow.Judged{Verdict: approval.Verdict{Kind: approval.TooLate, Ask: a}}
			return nil
		}
		j, err = tx.settle(a, judge, clock)
		return err
	})
	if err != nil {
		return flow.Judged{}, err
	}
	return j, nil
}

// occasion is why an ask is judged.
type occasion struct {
	end task.State // of a task that the verdict ends
	due func(a approval.Ask, now time.Time) time.Time
}

var (
	press = occasion{end: task.Cancelled, due: func(a approval.Ask, _ time.Time) time.Time { return a.Expires }}
	clock = occasion{end: task.Expired, due: dueAfter}
)

// settle runs judge and stores the ask, the grants, the posts, and what it means for the task.
func (tx *txn) settle(a approval.Ask, judge judge, why occasion) (flow.Judged, error) {
	t, err := tx.task(a.TaskID)
	if err != nil {
		return flow.Judged{}, err
	}
	j := judge(a, t)
	wasOpen := a.State == approval.StateOpen
	if j.Verdict.Ask, err = judgedAsk(a, j.Verdict); err != nil {
		return flow.Judged{}, err
	}
	if err := tx.post(j.Posts); err != nil {
		return flow.Judged{}, err
	}
	if !wasOpen { // nothing that was decided is decided again
		return j, nil
	}
	if err := tx.storeAskDue(j.Verdict.Ask, why.due(j.Verdict.Ask, tx.now)); err != nil {
		return flow.Judged{}, err
	}
	if err := tx.grant(j.Grants); err != nil {
		return flow.Judged{}, err
	}
	if err := tx.raiseDays(j.Raises); err != nil {
		return flow.Judged{}, err
	}
	if j.Alter != nil {
		alter(&t, j.Alter)
	}
	if err := tx.follow(&t, j, why.end); err != nil {
		return flow.Judged{}, err
	}
	return j, tx.storeTask(&t)
}

// follow moves a task whose ask was judged: to its end, or on when nothing is open any more.
func (tx *txn) follow(t *task.Task, j flow.Judged, end task.State) error {
	if j.Cancel {
		return tx.endByVerdict(t, j, end)
	}
	if j.Verdict.Ask.State == approval.StateOpen || t.State != task.Parked {
		return nil
	}
	if open, err := tx.openAsks(t.ID); err != nil || open > 0 {
		return err
	}
	return tx.queue(t)
}

func (tx *txn) endByVerdict(t *task.Task, j flow.Judged, end task.State) error {
	by := "expiry"
	if j.Verdict.Ask.Answer != nil {
		by = j.Verdict.Ask.Answer.Actor
	}
	switch {
	case t.State.Ended():
		return nil
	case t.State == task.Running: // its worker ends it
		t.CancelBy = by
		return nil
	case t.State == task.Queued:
		end = task.Cancelled
	}
	t.Result = j.Result
	if end == task.Cancelled && t.CancelBy == "" {
		t.CancelBy = by
	}
	return tx.end(t, end)
}

// judgedAsk takes over what a verdict may change in an ask: a decided ask stays as it is.
func judgedAsk(a approval.Ask, v approval.Verdict) (approval.Ask, error) {
	if v.Ask.ID == "" || a.State != approval.StateOpen {
		if v.Kind == approval.Accepted || v.Kind == approval.Counted {
			return a, fmt.Errorf("ask %s is %s, a verdict cannot be %s", a.ID, a.State, v.Kind)
		}
		return a, nil
	}
	if v.Ask.ID != a.ID {
		return a, fmt.Errorf("the verdict on ask %s is about ask %s", a.ID, v.Ask.ID)
	}
	a.State, a.Votes, a.Answer = v.Ask.State, v.Ask.Votes, v.Ask.Answer
	a.Reminded, a.Expires = v.Ask.Reminded, v.Ask.Expires
	return a, nil
}

// keep writes a verdict into the event.
func (e *event) keep(taskID string, j flow.Judged) error {
	e.taskID, e.kind, e.reason = taskID, chat.OutcomeAnswered, ""
	switch j.Verdict.Kind {
	case approval.NotAllowed, approval.TooLate, approval.BadChoice:
		e.kind, e.reason = chat.OutcomeRefused, string(j.Verdict.Kind)
	case approval.Counted:
		e.reason = string(approval.Counted)
	}
	if a := j.Verdict.Ask.Answer; a != nil && j.Verdict.Kind == approval.Accepted {
		e.actor = a.Actor
	}
	a := j.Verdict.Ask
	doc, err := json.Marshal(firstAnswer{Kind: j.Verdict.Kind, Reason: j.Verdict.Reason, State: a.State, Votes: a.Votes,
		Answer: a.Answer, Cancel: j.Cancel, Result: j.Result, Expires: a.Expires})
	e.result = string(doc)
	return err
}

// firstJudged rebuilds the verdict that a repeated press had at its first time.
func (s *Store) firstJudged(ctx context.Context, e *event) (flow.Judged, error) {
	if e.arrow != "decide" {
		return flow.Judged{}, nil
	}
	var f firstAnswer
	if err := json.Unmarshal([]byte(e.result), &f); err != nil {
		return flow.Judged{}, fmt.Errorf("read the first verdict: %w", err)
	}
	a, err := s.Ask(ctx, e.askID)
	if err != nil {
		return flow.Judged{}, err
	}
	a.State, a.Votes, a.Answer, a.Expires = f.State, f.Votes, f.Answer, f.Expires
	return flow.Judged{Verdict: approval.Verdict{Kind: f.Kind, Reason: f.Reason, Ask: a}, Cancel: f.Cancel, Result: f.Result}, nil
}
