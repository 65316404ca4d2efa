//go:build !windows

package session_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"reasonix/internal/session"
)

// TestHelperFullDisk is not a test: it is the process whose disk is full in TestAFullDiskLeavesTheTranscriptWhole.
func TestHelperFullDisk(t *testing.T) {
	path := os.Getenv("SESSION_FULL_PATH")
	if path == "" {
		return // a story below runs it as a child process
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4096, Max: 4096}); err != nil {
		t.Fatal(err)
	}
	f, err := session.OpenFile(path, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Append(t.Context(), note("before")); err != nil {
		t.Fatal(err)
	}
	if err := f.Append(t.Context(), note("too"), note(strings.Repeat("x", 8000))); err == nil {
		t.Fatal("the write must fail")
	}
	if err := f.Append(t.Context(), note("after")); err != nil {
		t.Fatal(err)
	}
}

func TestAFullDiskLeavesTheTranscriptWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	child := exec.Command(os.Args[0], "-test.run=^TestHelperFullDisk$")
	child.Env = append(os.Environ(), "SESSION_FULL_PATH="+path)
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := names(t, open(t, path, false)); got != "before after" {
		t.Fatalf("the transcript holds %q", got)
	}
}
