package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reasonix/internal/approval"
	"reasonix/internal/flow"
	"reasonix/internal/task"
)

// Claim takes the lease of a queued task, or of a running one whose lease has expired.
func (s *Store) Claim(ctx context.Context, taskID, host string, ttl time.Duration) (flow.Claim, error) {
	var c flow.Claim
	err := s.write(ctx, "claim task", func(tx *txn) error {
		t, err := tx.task(taskID)
		if err != nil {
			return err
		}
		if t.State == task.Running && t.LeaseUntil.After(tx.now) {
			return fmt.Errorf("task %s on %s: %w", t.ID, t.Host, flow.ErrLeased)
		}
		if err := move(&t, task.Running); err != nil {
			return fmt.Errorf("task %s: %w", t.ID, err)
		}
		t.Host, t.LeaseUntil = host, tx.now.Add(ttl)
		t.Fence++
		t.Attempts++
		if err := tx.storeTask(&t); err != nil {
			return err
		}
		asks, err := loadAsks(ctx, tx, `task_id = ? ORDER BY seq`, t.ID)
		c = flow.Claim{Task: t, Asks: asks}
		return err
	})
	if err != nil {
		return flow.Claim{}, err
	}
	return c, nil
}

// Park stores the asks with their posts and frees the lease. When somebody asked meanwhile to stop the task, nobody is
// asked: the task is queued again, and the next attempt finds CancelBy and ends it properly.
func (s *Store) Park(ctx context.Context, p flow.Parking) error {
	return s.write(ctx, "park task", func(tx *txn) error {
		t, err := tx.held(p.Held)
		if err != nil {
			return err
		}
		spend(&t, p.Progress)
		if t.CancelBy != "" {
			if err := tx.queue(&t); err != nil {
				return err
			}
			return tx.storeTask(&t)
		}
		if err := tx.addAsks(t.ID, p.Asks, p.Supersedes); err != nil {
			return err
		}
		if err := move(&t, task.Parked); err != nil {
			return err
		}
		t.Reason = p.Reason
		if open, err := tx.openAsks(t.ID); err != nil || open == 0 {
			return errors.Join(err, errNobodyAsked(open))
		}
		if err := tx.storeTask(&t); err != nil {
			return err
		}
		return tx.post(p.Posts)
	})
}

func errNobodyAsked(open int) error {
	if open > 0 {
		return nil
	}
	return errors.New("it has no open ask: nobody could ever wake it")
}

// Publish stores the intent, or later the outcome, of publishing.
func (s *Store) Publish(ctx context.Context, ref flow.Held, p task.Published) error {
	return s.write(ctx, "store what is published", func(tx *txn) error {
		t, err := tx.held(ref)
		if err != nil {
			return err
		}
		t.Published = &p
		return tx.storeTask(&t)
	})
}

// Yield ends an attempt at a turn boundary: the task is queued again with a job.
func (s *Store) Yield(ctx context.Context, ref flow.Held, p flow.Progress) error {
	return s.write(ctx, "yield task", func(tx *txn) error {
		t, err := tx.held(ref)
		if err != nil {
			return err
		}
		spend(&t, p)
		if err := tx.queue(&t); err != nil {
			return err
		}
		return tx.storeTask(&t)
	})
}

// Finish stores the end with the final posts and frees the lease; asks that are still open become cancelled.
func (s *Store) Finish(ctx context.Context, f flow.Finishing) error {
	return s.write(ctx, "finish task", func(tx *txn) error {
		t, err := tx.held(f.Held)
		if err != nil {
			return err
		}
		if !f.State.Ended() {
			return fmt.Errorf("%q is no end: %w", f.State, flow.ErrState)
		}
		spend(&t, f.Progress)
		t.Result, t.Failure, t.Diff, t.Receipt = f.Result, f.Failure, f.Diff, f.Receipt
		if err := tx.end(&t, f.State); err != nil {
			return err
		}
		if err := tx.storeTask(&t); err != nil {
			return err
		}
		return tx.post(f.Posts)
	})
}

// Renew extends the lease and returns the task as it is.
func (s *Store) Renew(ctx context.Context, h flow.Held, ttl time.Duration) (task.Task, error) {
	var t task.Task
	err := s.write(ctx, "renew lease", func(tx *txn) (err error) {
		if t, err = tx.held(h); err != nil {
			return err
		}
		t.LeaseUntil = tx.now.Add(ttl)
		return tx.exec(`UPDATE tasks SET lease_until = ? WHERE id = ?`, nanos(t.LeaseUntil), t.ID)
	})
	if err != nil {
		return task.Task{}, err
	}
	return t, nil
}

// Consumed removes inbox items after they are in the transcript.
func (s *Store) Consumed(ctx context.Context, h flow.Held, ids []int64) error {
	return s.write(ctx, "empty inbox", func(tx *txn) error {
		t, err := tx.held(h)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := tx.exec(`DELETE FROM inbox WHERE id = ? AND task_id = ?`, id, t.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// addAsks stores new asks as open and marks those that they replace.
func (tx *txn) addAsks(taskID string, asks []approval.Ask, supersedes []string) error {
	for _, id := range supersedes {
		old, err := tx.ask(id)
		if err != nil {
			return err
		}
		if old.TaskID != taskID {
			return fmt.Errorf("ask %s belongs to another task: %w", id, flow.ErrUnknown)
		}
		old.State = approval.StateSuperseded // an answer that it had stays readable, and counts no more
		if err := tx.storeAsk(old); err != nil {
			return err
		}
	}
	for _, a := range asks {
		a.TaskID, a.State = taskID, approval.StateOpen
		if a.Created.IsZero() {
			a.Created = tx.now
		}
		if err := tx.insertAsk(a); err != nil {
			return err
		}
	}
	return nil
}
