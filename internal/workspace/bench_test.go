package workspace

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// bigUpstream has many files and commits; it is made with fast-import in about a second.
func bigUpstream(b *testing.B, files, commits int) string {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "big.git")
	git(b, b.TempDir(), "init", "-q", "--bare", "-b", "main", dir)
	var in strings.Builder
	for c := range commits {
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter h <h@example.invalid> %d +0000\ndata 1\nx\n", 1700000000+c)
		if c == 0 {
			for f := range files {
				text := fmt.Sprintf("file %d\n%s", f, strings.Repeat("some text of a source file\n", 20))
				fmt.Fprintf(&in, "M 100644 inline d%d/e%d/f%d.txt\ndata %d\n%s\n", f%50, f%500/50, f, len(text), text)
			}
			continue
		}
		text := fmt.Sprintf("change %d\n", c)
		fmt.Fprintf(&in, "M 100644 inline d%d/e%d/f%d.txt\ndata %d\n%s\n", c%50, c%500/50, c%files, len(text), text)
	}
	cmd := exec.Command("git", "-C", dir, "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(in.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v %s", err, out)
	}
	git(b, dir, "repack", "-qad")
	return dir
}

// BenchmarkClone compares a clone with `git worktree add`: at most 1.5 times. REASONIX_BENCH=full takes the large repository.
func BenchmarkClone(b *testing.B) {
	files, commits := 5000, 2000
	if os.Getenv("REASONIX_BENCH") == "full" {
		files, commits = 50000, 20000
	}
	up := bigUpstream(b, files, commits)
	s, err := Open(filepath.Join(b.TempDir(), "state"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	prepare := func(id string) *Workspace {
		w, err := s.Prepare(context.Background(), Request{ID: id, Repo: "big", URL: up, Branch: "work"})
		if err != nil {
			b.Fatal(err)
		}
		return w
	}
	w := prepare("first") // the mirror is made once
	b.Run("worktree add", func(b *testing.B) {
		mirror := s.mirrorDir(w.meta.Mirror)
		for i := range b.N {
			git(b, mirror, "worktree", "add", "-q", "--detach", filepath.Join(b.TempDir(), fmt.Sprint(i)), "main")
		}
	})
	b.Run("clone", func(b *testing.B) {
		for i := range b.N {
			prepare(fmt.Sprint("t", i))
			b.StopTimer()
			_ = s.Remove(context.Background(), fmt.Sprint("t", i))
			b.StartTimer()
		}
	})
	b.Run("first state", func(b *testing.B) {
		for range b.N {
			w.base, w.cache = nil, nil
			if _, err := w.State(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("next state", func(b *testing.B) {
		for range b.N {
			if _, err := w.State(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
