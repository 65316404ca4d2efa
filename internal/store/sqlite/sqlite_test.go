package sqlite

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"reasonix/internal/flow"
	"reasonix/internal/session"
	"reasonix/internal/session/sessiontest"
	"reasonix/internal/store/storetest"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func mustOpen(t testing.TB, path string, opt Options) *Store {
	t.Helper()
	if opt.Log == nil {
		opt.Log = quiet()
	}
	s, err := Open(context.Background(), path, opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newPlace(t *testing.T) func() flow.Ledger {
	path := filepath.Join(t.TempDir(), "bot", "state.db")
	return func() flow.Ledger { return mustOpen(t, path, Options{}) }
}

func TestLedger(t *testing.T) { storetest.RunStories(t, newPlace) }

func TestTranscriptIsALog(t *testing.T) {
	sessiontest.RunLogSuite(t, func(t *testing.T) (writer, stale session.Log) {
		s := mustOpen(t, filepath.Join(t.TempDir(), "state.db"), Options{})
		t.Cleanup(func() { s.Close() })
		tk, err := s.Open(t.Context(), opening("1"))
		if err != nil {
			t.Fatal(err)
		}
		var logs [2]session.Log
		for i, ttl := range []time.Duration{-time.Second, time.Hour} {
			c, err := s.Claim(t.Context(), tk.ID, "host-a", ttl)
			if err != nil {
				t.Fatal(err)
			}
			logs[i] = s.Transcript(tk.ID, tk.SessionID, c.Task.Fence)
		}
		return logs[1], logs[0]
	})
}

func TestInvariant01_AcknowledgedOnlyAfterTheCommit(t *testing.T) {
	storetest.RunInvariant(t, 1, newPlace)
}

func TestInvariant02_NothingBlocksOnAPerson(t *testing.T) { storetest.RunInvariant(t, 2, newPlace) }

func TestInvariant03_WithoutALiveLeaseNothingIsWritten(t *testing.T) {
	storetest.RunInvariant(t, 3, newPlace)
}

func TestInvariant04_AnAskIsAnsweredOnce(t *testing.T) { storetest.RunInvariant(t, 4, newPlace) }

func TestInvariant07_EveryPostGoesThroughTheOutbox(t *testing.T) {
	storetest.RunInvariant(t, 7, newPlace)
}
