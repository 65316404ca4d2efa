package flow

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// RetryTask queues a task that failed, expired or was cancelled again; it continues its transcript.
func (h *Host) RetryTask(ctx context.Context, key, id string) error {
	t, err := h.Ledger.Task(ctx, id)
	if errors.Is(err, ErrUnknown) {
		return fmt.Errorf("there is no task %s; `reasonix bot tasks` lists them", id)
	}
	if err != nil {
		return err
	}
	_, err = h.Ledger.Retry(ctx, key, id, h.redacted([]NewPost{statusPost(t, "Queued again", "retry:"+key)}))
	switch {
	case errors.Is(err, ErrState):
		return fmt.Errorf("task %s is %s; only failed, cancelled and expired tasks can be retried", id, t.State)
	case errors.Is(err, ErrBusy):
		return errors.New("another task of the same conversation is live; stop it first or wait for its end")
	}
	return err
}

// WaitIdle waits until no attempt runs on this host, at most so long.
func (h *Host) WaitIdle(ctx context.Context, most time.Duration) {
	limit := time.NewTimer(most)
	defer limit.Stop()
	select {
	case <-h.idle():
	case <-limit.C:
	case <-ctx.Done():
	}
}

// idle is closed when the attempts that run now have ended.
func (h *Host) idle() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		h.attempts.Wait()
		close(done)
	}()
	return done
}
