package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reasonix/internal/approval"
	"reasonix/internal/chat"
	"reasonix/internal/flow"
)

// BenchmarkOpen counts how many requests per second are made durable.
func BenchmarkOpen(b *testing.B) {
	s := mustOpen(b, filepath.Join(b.TempDir(), "state.db"), Options{})
	defer s.Close()
	for i := 0; b.Loop(); i++ {
		if _, err := s.Open(b.Context(), opening(fmt.Sprint(i))); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}

// BenchmarkWake measures from a request to the start of its attempt on a host that has nothing else to do.
func BenchmarkWake(b *testing.B) {
	s := mustOpen(b, filepath.Join(b.TempDir(), "state.db"), Options{})
	defer s.Close()
	started := make(chan time.Time, 1)
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() {
		done <- s.Work(ctx, "host-a", 4, func(ctx context.Context, id string) error {
			started <- time.Now()
			return nil
		})
	}()
	var waited time.Duration
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		if _, err := s.Open(ctx, opening(fmt.Sprint(i))); err != nil {
			b.Fatal(err)
		}
		waited += (<-started).Sub(began)
	}
	b.ReportMetric(float64(waited.Microseconds())/1000/float64(b.N), "ms/wake")
	stop()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkParked tells what a waiting task costs on disk, with a question of ordinary size.
func BenchmarkParked(b *testing.B) {
	path := filepath.Join(b.TempDir(), "state.db")
	s := mustOpen(b, path, Options{})
	defer s.Close()
	for i := 0; b.Loop(); i++ {
		if err := parkOne(b.Context(), s, i); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := s.w.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/float64(b.N), "bytes/task")
}

func parkOne(ctx context.Context, s *Store, i int) error {
	tk, err := s.Open(ctx, opening(fmt.Sprint(i)))
	if err != nil {
		return err
	}
	c, err := s.Claim(ctx, tk.ID, "host-a", time.Minute)
	if err != nil {
		return err
	}
	ask := approval.Ask{ID: fmt.Sprint("ask_", i), Kind: approval.KindApproval, Title: "Run a command?",
		Blocks: []chat.Block{{Name: "command.sh", Text: strings.Repeat("x", 200)}}}
	return s.Park(ctx, flow.Parking{Held: c.Held(), Reason: approval.KindApproval, Asks: []approval.Ask{ask}})
}
