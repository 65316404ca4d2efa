package flow_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"reasonix/internal/approval"
	"reasonix/internal/chat"
	"reasonix/internal/flow"
	"reasonix/internal/store/sqlite"
	"reasonix/internal/task"
)

// BenchmarkTenThousandParked fills a state with waiting tasks and runs a host on it for some rounds of its sweeper: what does the process hold
// more than one on an empty state, and what does the file hold?
func BenchmarkTenThousandParked(b *testing.B) {
	const parked = 10_000
	for b.Loop() {
		empty, _ := hostOn(b, filepath.Join(b.TempDir(), "empty.db"))
		path := filepath.Join(b.TempDir(), "state.db")
		ledger := openLedger(b, path)
		for n := range parked {
			if err := parkTask(b.Context(), ledger, n); err != nil {
				b.Fatal(err)
			}
		}
		if err := ledger.Close(); err != nil {
			b.Fatal(err)
		}
		full, goroutines := hostOn(b, path)
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(max(0, float64(full)-float64(empty))/parked, "heap-bytes/task")
		b.ReportMetric(float64(info.Size())/parked, "disk-bytes/task")
		b.ReportMetric(float64(goroutines), "goroutines-of-the-host")
		b.ReportMetric(0, "ns/op")
	}
}

func openLedger(b *testing.B, path string) *sqlite.Store {
	b.Helper()
	ledger, err := sqlite.Open(b.Context(), path, sqlite.Options{Log: slog.New(slog.DiscardHandler), Host: "host"})
	if err != nil {
		b.Fatal(err)
	}
	return ledger
}

// hostOn runs a host for five rounds of its sweeper and returns the live heap in bytes and the goroutines that it added.
func hostOn(b *testing.B, path string) (heap uint64, goroutines int) {
	b.Helper()
	before := runtime.NumGoroutine()
	ledger := openLedger(b, path)
	ctx, cancel := context.WithCancel(b.Context())
	const sweep = 200 * time.Millisecond
	host := flow.New(flow.Options{ID: "host", Ledger: ledger, Log: slog.New(slog.DiscardHandler), Sweep: sweep})
	done := make(chan error, 1)
	go func() { done <- host.Run(ctx) }()
	<-time.After(5 * sweep)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	heap, goroutines = m.HeapAlloc, runtime.NumGoroutine()-before
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	if err := ledger.Close(); err != nil {
		b.Fatal(err)
	}
	return heap, goroutines
}

// parkTask brings one task to a question of ordinary size.
func parkTask(ctx context.Context, ledger *sqlite.Store, n int) error {
	t := task.Task{
		ID: task.NewID("task"), SessionID: task.NewID("session"), Title: "fix it", Prompt: "fix the failing test",
		Place: chat.Place{Connection: "chat", Kind: "slack", Channel: "C1", Thread: fmt.Sprint(n)},
	}
	t, err := ledger.Open(ctx, flow.Opening{EventKey: fmt.Sprint("event-", n), Task: t})
	if err != nil {
		return err
	}
	c, err := ledger.Claim(ctx, t.ID, "host", time.Minute)
	if err != nil {
		return err
	}
	ask := approval.Ask{
		ID: approval.NewID(), TaskID: t.ID, State: approval.StateOpen, Kind: approval.KindApproval, Title: "Run a command?",
		Blocks: []chat.Block{{Name: "command.sh", Text: strings.Repeat("x", 200)}}, Expires: time.Now().Add(24 * time.Hour),
	}
	return ledger.Park(ctx, flow.Parking{Held: c.Held(), Reason: approval.KindApproval, Asks: []approval.Ask{ask}})
}
