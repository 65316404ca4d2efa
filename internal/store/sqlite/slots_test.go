package sqlite

import (
	"path/filepath"
	"testing"
	"time"
)

func TestAScheduleRemembersHowFarItCameAndNeverGoesBack(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "state.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, ok, err := s.LastSlot(t.Context(), "deps"); ok || err != nil {
		t.Fatalf("a new schedule: %v, %v", ok, err)
	}
	late := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	for _, at := range []time.Time{late, late.Add(-time.Hour)} {
		if err := s.AdvanceSlot(t.Context(), "deps", at); err != nil {
			t.Fatal(err)
		}
	}
	if got, ok, err := s.LastSlot(t.Context(), "deps"); !ok || err != nil || !got.Equal(late) {
		t.Fatalf("%v, %v, %v", got, ok, err)
	}
}
