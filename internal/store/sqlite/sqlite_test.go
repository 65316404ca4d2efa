package sqlite

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"reasonix/internal/flow"
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
