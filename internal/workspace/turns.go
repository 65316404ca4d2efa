package workspace

import (
	"context"
	"sync"
	"time"
)

// Turns snapshots a workspace at turn boundaries, while the model thinks. A snapshot that takes longer than a second is followed by none
// for ten times as long, and none follows within Every; what was left out is made up at a later boundary or when the attempt ends.
type Turns struct {
	Every time.Duration // least time between two, 0: none
	Warn  func(error)   // a snapshot that failed; the workspace itself is there, and the next boundary tries again
	take  func(context.Context) error
	now   func() time.Time

	mu      sync.Mutex
	running chan struct{} // closed when the snapshot has ended; nil: none was started
	dirty   bool          // something may have changed since the last snapshot
	next    time.Time     // none before
}

// slowSnapshot is what a snapshot may take without a pause after it.
const slowSnapshot = time.Second

// NewTurns keeps w.
func NewTurns(w *Workspace, every time.Duration, warn func(error)) *Turns {
	return &Turns{Every: every, Warn: warn, now: time.Now, take: func(ctx context.Context) error {
		_, err := w.Snapshot(ctx)
		return err
	}}
}

// Boundary is called at each turn boundary; changed tells that calls with effects ran since the last one. It does not wait.
func (t *Turns) Boundary(ctx context.Context, changed bool) {
	t.Quiet(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dirty = t.dirty || changed
	began := t.now()
	if !t.dirty || began.Before(t.next) || ctx.Err() != nil {
		return
	}
	t.dirty = false
	done := make(chan struct{})
	t.running = done
	go func() {
		defer close(done)
		err := t.take(ctx)
		t.mu.Lock()
		defer t.mu.Unlock()
		took := t.now().Sub(began)
		t.next = began.Add(t.Every)
		if took > slowSnapshot {
			t.next = later(t.next, t.now().Add(10*took))
		}
		if err == nil {
			return
		}
		t.dirty = true
		if ctx.Err() == nil {
			t.Warn(err)
		}
	}()
}

// Quiet returns when no snapshot reads the workspace any more, or with ctx.
func (t *Turns) Quiet(ctx context.Context) {
	t.mu.Lock()
	running := t.running
	t.mu.Unlock()
	if running == nil {
		return
	}
	select {
	case <-running:
	case <-ctx.Done():
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
