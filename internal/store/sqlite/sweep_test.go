package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func jobStates(t *testing.T, s *Store) []string {
	t.Helper()
	states, err := collect(t.Context(), s.r, scanID, `SELECT state FROM river_job ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	return states
}

// A worker that died between taking a job and claiming its task leaves a row that says "running".
func TestTheSweepReplacesTheJobThatADeadHostTook(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "state.db"), Options{})
	defer s.Close()
	tk, err := s.Open(t.Context(), opening("1"))
	if err != nil {
		t.Fatal(err)
	}
	taken := time.Now().UTC()
	if _, err := s.w.Exec(`UPDATE river_job SET state = 'running', attempted_by = jsonb('["host-x"]'), attempted_at = ?`,
		taken.Format("2006-01-02 15:04:05.000")); err != nil {
		t.Fatal(err)
	}
	if woken, err := s.Sweep(t.Context(), taken.Add(stale/2)); err != nil || len(woken) != 0 {
		t.Fatalf("a job that was just taken was replaced: %v, %v", woken, err)
	}
	woken, err := s.Sweep(t.Context(), taken.Add(stale+time.Second))
	if err != nil || !slices.Equal(woken, []string{tk.ID}) {
		t.Fatalf("woken: %v, %v", woken, err)
	}
	if got := jobStates(t, s); !slices.Equal(got, []string{"discarded", "available"}) {
		t.Fatalf("jobs: %v", got)
	}
	if woken, err := s.Sweep(t.Context(), taken.Add(2*stale)); err != nil || len(woken) != 0 {
		t.Fatalf("the new job was replaced: %v, %v", woken, err)
	}
}

func TestTheSweepLeavesTheJobOfALiveLease(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "state.db"), Options{})
	defer s.Close()
	tk, err := s.Open(t.Context(), opening("1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), tk.ID, "host-x", time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := s.w.Exec(`UPDATE river_job SET state = 'running', attempted_by = jsonb('["host-x"]'), attempted_at = '2020-01-01 00:00:00.000'`); err != nil {
		t.Fatal(err)
	}
	if woken, err := s.Sweep(t.Context(), time.Now()); err != nil || len(woken) != 0 {
		t.Fatalf("woken: %v, %v", woken, err)
	}
	if got := jobStates(t, s); !slices.Equal(got, []string{"running"}) {
		t.Fatalf("jobs: %v", got)
	}
}

// The engine looks by itself once a second; five tasks in a row within one second prove that commits wake it.
func TestAWorkerStartsWithinMilliseconds(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "state.db"), Options{})
	defer s.Close()
	started := make(chan string, 1)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		// more workers than tasks: a freed worker looks for work by itself
		done <- s.Work(ctx, "host-a", 10, func(_ context.Context, id string) error {
			started <- id
			return nil
		})
	}()
	began := time.Now()
	for i := range 6 {
		if _, err := s.Open(ctx, opening(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		<-started
		if i == 0 {
			began = time.Now() // the start of the engine itself does not count
		}
	}
	if took := time.Since(began); took > 3*fetchPoll {
		t.Errorf("five wake-ups took %s", took)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
