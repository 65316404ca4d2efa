package workspace

import (
	"context"
	"errors"
	"testing"
	"time"
)

// clocked is Turns over a snapshot that the test plays.
func clocked(every time.Duration) (*Turns, *time.Time, *[]error, *time.Duration) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var took time.Duration
	var results []error
	t := &Turns{Every: every, now: func() time.Time { return now }, Warn: func(error) {}}
	t.take = func(context.Context) error {
		now = now.Add(took)
		results = append(results, nil)
		return nil
	}
	return t, &now, &results, &took
}

func TestTurnsSnapshotOnlyAfterEffects(t *testing.T) {
	ctx := context.Background()
	turns, _, taken, _ := clocked(0)
	for _, changed := range []bool{false, true, false, false, true, true} {
		turns.Boundary(ctx, changed)
		turns.Quiet(ctx)
	}
	if len(*taken) != 3 {
		t.Errorf("%d snapshots, want one after each of three turns with effects", len(*taken))
	}
}

func TestTurnsPauseAndMakeUpLater(t *testing.T) {
	ctx := context.Background()
	turns, now, taken, took := clocked(10 * time.Second)
	step := func(changed bool, after time.Duration, want int, why string) {
		t.Helper()
		*now = now.Add(after)
		turns.Boundary(ctx, changed)
		turns.Quiet(ctx)
		if len(*taken) != want {
			t.Errorf("%s: %d snapshots, want %d", why, len(*taken), want)
		}
	}
	step(true, 0, 1, "first")
	step(true, time.Second, 1, "within the pause")
	step(false, 10*time.Second, 2, "made up although this turn changed nothing")
	*took = 30 * time.Second
	step(true, 10*time.Second, 3, "a slow one")
	step(true, 4*time.Minute, 3, "ten times as long as it took")
	step(false, 2*time.Minute, 4, "after that")
}

func TestTurnsTryAgainAfterAFailure(t *testing.T) {
	ctx := context.Background()
	turns, _, _, _ := clocked(0)
	calls, warned := 0, 0
	turns.Warn = func(error) { warned++ }
	turns.take = func(context.Context) error {
		if calls++; calls == 1 {
			return errors.New("disk full")
		}
		return nil
	}
	for _, changed := range []bool{true, false, false} {
		turns.Boundary(ctx, changed)
		turns.Quiet(ctx)
	}
	if calls != 2 || warned != 1 {
		t.Errorf("%d tries, %d warnings", calls, warned)
	}
}

func TestTurnsDoNotWaitAtTheBoundaryButBeforeAnEffect(t *testing.T) {
	ctx := context.Background()
	turns, _, _, _ := clocked(0)
	release, ended := make(chan struct{}), false
	turns.take = func(context.Context) error {
		<-release
		ended = true
		return nil
	}
	turns.Boundary(ctx, true) // returns although the snapshot is at work
	go close(release)
	turns.Quiet(ctx)
	if !ended {
		t.Error("a call with effects could start while the tree was read")
	}
}
