//go:build unix

package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// age makes a file look as a git left it that was killed some time ago.
func age(t testing.TB, path string, by time.Duration) string {
	t.Helper()
	write(t, path, "")
	at := time.Now().Add(-by)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	return path
}

// A host that is killed over a fetch or a snapshot leaves git's lock files; the next one goes on all the same.
func TestLocksOfAKilledGitHoldNobodyUp(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	host, mirror := o.store.hostGit("t1"), o.store.mirrorDir(w.meta.Mirror)
	age(t, mirror+"/refs/heads/trunk.lock", 2*time.Minute)
	age(t, mirror+"/packed-refs.lock", 2*time.Minute)
	age(t, host+"/packed-refs.lock", 2*time.Minute)
	live := age(t, host+"/refs/live.lock", time.Second)
	received := age(t, mirror+"/objects/pack/tmp_pack_abc", 48*time.Hour)
	bundle := age(t, o.store.hostDir("t1")+"/incoming-1.bundle", 48*time.Hour)
	git(t, o.upstream, "commit", "-q", "--allow-empty", "-m", "next")
	git(t, o.upstream, "branch", "-D", "stable")
	if next := o.prepare("t2"); next.BaseSHA == w.BaseSHA {
		t.Error("the mirror was not refreshed")
	}
	w = o.prepare("t1")
	for range keptSnapshots + 2 { // letting old ones go needs the lock of packed references
		o.task(w, "echo more >> more")
		o.snapshot(w)
	}
	for _, path := range []string{received, bundle} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s was left", filepath.Base(path))
		}
	}
	if _, err := os.Stat(live); err != nil {
		t.Errorf("the lock of a living git: %v", err)
	}
}

// A stop asks git to end, so that it takes its locks along.
func TestAStopAsksGitToEnd(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "git")
	write(t, script, "#!/bin/sh\ntrap 'rm -f "+dir+"/lock; exit 1' TERM\n: > "+dir+"/lock\necho ready > "+dir+"/ready\nwhile :; do :; done\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	s := &Store{root: dir, opt: Options{Git: script}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(dir + "/ready"); err == nil {
				cancel()
			}
		}
	}()
	if _, err := s.git(ctx, dir, "fetch"); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(dir + "/lock"); err == nil {
		t.Error("git was killed and left its lock")
	}
}

// A task can nest folders deeper than a path can be and make files of holes; its size is known all the same.
func TestTheSizeOfOddTrees(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	ctx := context.Background()
	before, err := o.store.Size(ctx, "t1")
	if err != nil {
		t.Fatal(err)
	}
	o.task(w, "truncate -s 5G holes")
	o.task(w, `mkdir deep && cd deep && for i in $(seq 45); do mkdir `+strings.Repeat("d", 200)+` && cd `+strings.Repeat("d", 200)+`; done && head -c 3000000 /dev/zero > f && chmod 500 . ..`)
	got, err := o.store.Size(ctx, "t1")
	if err != nil || got-before < 3000000 || got-before > 4000000 {
		t.Errorf("%d more bytes, %v", got-before, err)
	}
	if err := o.store.Remove(ctx, "t1"); err != nil {
		t.Error(err)
	}
}
