package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"reasonix/internal/chat"
	"reasonix/internal/flow"
	"reasonix/internal/task"
)

func opening(key string) flow.Opening {
	place := chat.Place{Connection: "slack", Kind: "slack", Channel: "C1", Thread: key}
	id := "task_" + key
	return flow.Opening{EventKey: key, Task: task.Task{ID: id, Place: place, SessionID: "ses_" + key, Prompt: "Fix the test."},
		Posts: []flow.NewPost{{Key: "ack:" + id, TaskID: id, Place: place, Message: chat.Message{Text: "on it"}}}}
}

func TestTheStateFileIsForItsOwnerAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	path := filepath.Join(t.TempDir(), "deep", "er", "state.db")
	s := mustOpen(t, path, Options{})
	defer s.Close()
	if _, err := s.Open(t.Context(), opening("1")); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) < 3 {
		t.Fatalf("files: %v, %v", files, err)
	}
	for _, f := range append(files, filepath.Dir(path)) {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 && !strings.HasSuffix(f, ".lock") { // the lock is empty
			t.Errorf("%s has mode %s", f, info.Mode())
		}
	}
}

func TestAPathMayHoldAnyCharacter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b#c%d&e=f'ä", "st?te.db")
	if runtime.GOOS == "windows" {
		t.Skip("Windows allows fewer")
	}
	s := mustOpen(t, path, Options{})
	defer s.Close()
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		t.Fatalf("the state is elsewhere: %v", err)
	}
}

func TestASchemaOfANewerProgramIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := mustOpen(t, path, Options{})
	if _, err := s.w.Exec(fmt.Sprintf("PRAGMA user_version = %d", len(migrations)+1)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	_, err := Open(t.Context(), path, Options{Log: quiet()})
	if err == nil || !strings.Contains(err.Error(), "update reasonix") || !strings.Contains(err.Error(), path) {
		t.Fatalf("error: %v", err)
	}
}

func TestFilesOfOthersAreRefused(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, bytes.Repeat([]byte("not a database\n"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "foreign.db")
	db, err := sql.Open("sqlite", foreign)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE songs (title TEXT)"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{text: "not a state database", foreign: "another program", dir: "writable"} {
		_, err := Open(t.Context(), path, Options{Log: quiet()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a word of %q", path, err, want)
		}
	}
	var n int
	if err := db.QueryRow("SELECT count(*) FROM sqlite_master").Scan(&n); err != nil || n != 1 {
		t.Fatalf("the foreign database was changed: %d tables, %v", n, err)
	}
}

func TestAFirstStartThatDiedHalfwayIsFinishedByTheNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := mustOpen(t, path, Options{})
	tables, err := collect(t.Context(), s.r, scanID, `SELECT name FROM sqlite_master WHERE type = 'table'
		AND name NOT GLOB 'river_*' AND name NOT GLOB 'sqlite_*'`)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tables { // what is there after the job tables and before ours
		if _, err := s.w.Exec("PRAGMA foreign_keys = off; DROP TABLE " + name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.w.Exec("PRAGMA user_version = 0; PRAGMA application_id = 0"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = mustOpen(t, path, Options{})
	defer s.Close()
	if _, err := s.Open(t.Context(), opening("1")); err != nil {
		t.Fatal(err)
	}
}

func TestAFullDiskIsNamedAndNothingIsHalfWritten(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "state.db"), Options{})
	defer s.Close()
	if _, err := s.w.Exec("PRAGMA max_page_count = 1"); err != nil { // SQLite clamps it to the present size
		t.Fatal(err)
	}
	var failed flow.Opening
	for i := 0; ; i++ {
		failed = opening(fmt.Sprint(i))
		failed.Task.Prompt = strings.Repeat("long ", 4000)
		_, err := s.Open(t.Context(), failed)
		if err == nil && i < 1000 {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "disk is full") || !strings.Contains(err.Error(), "free space in") {
			t.Fatalf("error %d: %v", i, err)
		}
		break
	}
	if _, err := s.Task(t.Context(), failed.Task.ID); !errors.Is(err, flow.ErrUnknown) {
		t.Fatalf("half a task: %v", err)
	}
	if posts, err := s.Posts(t.Context(), failed.Task.ID); err != nil || len(posts) != 0 {
		t.Fatalf("posts of a task that is not there: %v, %v", posts, err)
	}
	if _, err := s.w.Exec("PRAGMA max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), failed); err != nil {
		t.Fatalf("with space again: %v", err)
	}
}

func TestAReadOnlyStateIsNamed(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "state.db"), Options{})
	defer s.Close()
	if _, err := s.w.Exec("PRAGMA query_only = 1"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Open(t.Context(), opening("1"))
	if err == nil || !strings.Contains(err.Error(), "make "+s.path+" and its folder writable") {
		t.Fatalf("error: %v", err)
	}
	if _, err := s.Task(t.Context(), "task_1"); !errors.Is(err, flow.ErrUnknown) {
		t.Fatal(err)
	}
}

func TestACancelledCallWritesNothingAndHoldsUpNobody(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "state.db"), Options{})
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Open(ctx, opening("1")); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), opening("1")); err != nil {
		t.Fatal(err)
	}
}

// The lease runs on the clock that Open was given, so that a host with a wrong idea of time can be tested.
func TestTheClockCanBeGiven(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	s := mustOpen(t, filepath.Join(t.TempDir(), "state.db"), Options{Now: func() time.Time { return now }})
	defer s.Close()
	tk, err := s.Open(t.Context(), opening("1"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Claim(t.Context(), tk.ID, "a", time.Minute)
	if err != nil || !c.Task.LeaseUntil.Equal(now.Add(time.Minute)) {
		t.Fatalf("lease until %s: %v", c.Task.LeaseUntil, err)
	}
	now = now.Add(time.Minute)
	if _, err := s.Renew(t.Context(), c.Held(), time.Minute); !errors.Is(err, flow.ErrFenced) {
		t.Fatalf("at its very end a lease was renewed: %v", err)
	}
	if _, err := s.Claim(t.Context(), tk.ID, "b", time.Minute); err != nil {
		t.Fatal(err)
	}
}
