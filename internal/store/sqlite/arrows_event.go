package sqlite

import (
	"context"
	"errors"
	"fmt"

	"reasonix/internal/chat"
	"reasonix/internal/flow"
	"reasonix/internal/task"
)

// Open stores a queued task with its first job and its posts.
func (s *Store) Open(ctx context.Context, o flow.Opening) (task.Task, error) {
	t := o.Task
	if t.ID == "" {
		return task.Task{}, errors.New("open task: it has no id")
	}
	if t.Conversation == "" {
		t.Conversation = t.Place.Key()
	}
	e := &event{key: o.EventKey, arrow: "open", kind: chat.OutcomeOpened, actor: t.Requester.Actor.String(), taskID: t.ID}
	var live task.Task
	err := s.arrow(ctx, "open task", e, func(tx *txn) (err error) {
		live, err = loadTask(ctx, tx, `conversation = ? AND state IN ('queued','running','parked')`, t.Conversation)
		if err == nil {
			return fmt.Errorf("task %s: %w", live.ID, flow.ErrBusy)
		}
		if !errors.Is(err, flow.ErrUnknown) {
			return err
		}
		t.State, t.Reason, t.Host, t.Fence, t.Attempts, t.CancelBy = task.Queued, "", "", 0, 0, ""
		t.LeaseUntil, t.Ended, t.Updated = fromNanos(0), fromNanos(0), tx.now
		if t.Created.IsZero() {
			t.Created = tx.now
		}
		if err := tx.insertTask(t); err != nil {
			return err
		}
		if err := tx.wakeWorker(t.ID); err != nil {
			return err
		}
		return tx.post(o.Posts)
	})
	if errors.Is(err, flow.ErrBusy) {
		return live, err
	}
	return s.first(ctx, e, t, err)
}

// first returns the task that an event had its effect on, for the first delivery as for every repeated one.
func (s *Store) first(ctx context.Context, e *event, t task.Task, err error) (task.Task, error) {
	if err == nil {
		return t, nil
	}
	if !errors.Is(err, flow.ErrDuplicate) || e.taskID == "" {
		return task.Task{}, err
	}
	earlier, readErr := s.Task(ctx, e.taskID)
	if readErr != nil {
		return task.Task{}, readErr
	}
	return earlier, err
}

// Steer leaves text in the inbox of a live task, parked ones included: it is read at the next turn boundary.
func (s *Store) Steer(ctx context.Context, st flow.Steering) error {
	e := &event{key: st.EventKey, arrow: "steer", kind: chat.OutcomeSteered, actor: st.Actor, taskID: st.TaskID}
	return s.arrow(ctx, "steer task", e, func(tx *txn) error {
		t, err := tx.task(st.TaskID)
		if err != nil {
			return err
		}
		if t.State.Ended() {
			return fmt.Errorf("task %s has ended: %w", t.ID, flow.ErrState)
		}
		err = tx.exec(`INSERT INTO inbox (task_id, actor, text, at) VALUES (?,?,?,?)`, t.ID, st.Actor, st.Text, nanos(tx.now))
		if err != nil {
			return err
		}
		tx.changed = append(tx.changed, t.ID)
		return tx.post(st.Posts)
	})
}

// Cancel ends a queued or parked task at once and marks a running one; its posts are made only when it ended at once.
func (s *Store) Cancel(ctx context.Context, c flow.Cancelling) (task.Task, error) {
	e := &event{key: c.EventKey, arrow: "cancel", kind: chat.OutcomeCancelled, actor: c.By, taskID: c.TaskID}
	var t task.Task
	err := s.arrow(ctx, "cancel task", e, func(tx *txn) (err error) {
		if t, err = tx.task(c.TaskID); err != nil {
			return err
		}
		if t.State.Ended() {
			return fmt.Errorf("task %s has ended: %w", t.ID, flow.ErrState)
		}
		if t.CancelBy == "" {
			t.CancelBy = c.By
		}
		if t.State == task.Running {
			return tx.storeTask(&t)
		}
		if err := tx.end(&t, task.Cancelled); err != nil {
			return err
		}
		if err := tx.storeTask(&t); err != nil {
			return err
		}
		return tx.post(c.Posts)
	})
	return s.first(ctx, e, t, err)
}

// Record notes an event that was knowingly ignored or refused.
func (s *Store) Record(ctx context.Context, r flow.Recording) error {
	e := &event{key: r.EventKey, arrow: "record", kind: r.Kind, reason: r.Reason, actor: r.Actor}
	return s.arrow(ctx, "record event", e, func(tx *txn) error { return tx.post(r.Posts) })
}

// Alter changes what an admin may change on a live task. An error of change leaves everything as it was.
func (s *Store) Alter(ctx context.Context, eventKey, taskID string, change func(*task.Task) error, posts []flow.NewPost) (task.Task, error) {
	e := &event{key: eventKey, arrow: "alter", kind: chat.OutcomeInfo, reason: "task altered", taskID: taskID}
	var t task.Task
	err := s.arrow(ctx, "alter task", e, func(tx *txn) (err error) {
		if t, err = tx.task(taskID); err != nil {
			return err
		}
		if t.State.Ended() {
			return fmt.Errorf("task %s has ended: %w", t.ID, flow.ErrState)
		}
		alter(&t, func(t *task.Task) { err = change(t) })
		if err != nil {
			return err
		}
		if err := tx.storeTask(&t); err != nil {
			return err
		}
		return tx.post(posts)
	})
	return s.first(ctx, e, t, err)
}

// Retry queues a failed, cancelled or expired task again, unless another task lives in its conversation (ErrBusy).
func (s *Store) Retry(ctx context.Context, eventKey, taskID string, posts []flow.NewPost) (task.Task, error) {
	e := &event{key: eventKey, arrow: "retry", kind: chat.OutcomeOpened, reason: "retry", taskID: taskID}
	var t task.Task
	err := s.arrow(ctx, "retry task", e, func(tx *txn) (err error) {
		if t, err = tx.task(taskID); err != nil {
			return err
		}
		if !t.State.Ended() {
			return fmt.Errorf("task %s has not ended: %w", t.ID, flow.ErrState)
		}
		if live, err := loadTask(ctx, tx, `conversation = ? AND state IN ('queued','running','parked')`, t.Conversation); err == nil {
			return fmt.Errorf("task %s: %w", live.ID, flow.ErrBusy)
		} else if !errors.Is(err, flow.ErrUnknown) {
			return err
		}
		t.CancelBy, t.Failure, t.Result, t.Receipt, t.Ended = "", "", "", nil, fromNanos(0)
		if err := tx.queue(&t); err != nil {
			return err
		}
		if err := tx.storeTask(&t); err != nil {
			return err
		}
		return tx.post(posts)
	})
	return s.first(ctx, e, t, err)
}
