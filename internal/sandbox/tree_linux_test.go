package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reasonix/internal/tool"
)

// stubborn are children that do not want to end.
var stubborn = map[string]string{
	"ignores SIGTERM":   "trap '' TERM HUP INT; MARK; while :; do sleep 1; done",
	"detached":          "setsid sh -c 'trap \"\" TERM; sleep 300 # MARK' & MARK; sleep 300",
	"double fork":       "(setsid sh -c 'setsid sleep 300 &' &) ; MARK; sleep 300",
	"holds the pipe":    "sleep 300 & MARK; sleep 300",
	"closed its output": "(exec >/dev/null 2>&1 </dev/null; setsid sleep 300) & MARK; sleep 300",
}

func TestInvariant08_StopEndsTheWholeTree(t *testing.T) {
	for name, line := range stubborn {
		for _, kind := range boxKinds(t) {
			t.Run(kind+" "+name, func(t *testing.T) {
				r := newRoom(t)
				if kind == "off" {
					r.box = offBox{}
				}
				stopTree(t, r, line)
			})
		}
	}
}

// boxKinds are the boxes that a story is told of: the one of its room, and none.
func boxKinds(t *testing.T) []string {
	if reducedTest(t) {
		return []string{"landlock"}
	}
	return []string{"bwrap", "off"}
}

func stopTree(t *testing.T, r *room, line string) {
	mark := "mark" + callID()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var stopped time.Time
	line = strings.ReplaceAll(line, "MARK", ": "+mark+"; echo up")
	_, err := r.box.Run(ctx, r.policy, Command{Argv: []string{"/bin/bash", "-c", line}, Env: []string{"TREE=" + mark}, Output: func(b []byte) {
		if strings.Contains(string(b), "up") && stopped.IsZero() {
			stopped = time.Now()
			stop()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if d := time.Since(stopped); d > 2*time.Second {
		t.Errorf("stopping took %v", d)
	}
	if left := processesWith("TREE=" + mark); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

func TestInvariant08_TimeoutEndsTheWholeTree(t *testing.T) {
	r := newRoom(t)
	r.policy.Limits.Wall = 300 * time.Millisecond
	start := time.Now()
	res := r.bash("trap '' TERM; setsid sleep 300 & sleep 300")
	if !res.TimedOut || time.Since(start) > 2300*time.Millisecond {
		t.Errorf("timed out %v after %v", res.TimedOut, time.Since(start))
	}
}

func TestInvariant08_WhatACommandLeavesBehindEndsWithIt(t *testing.T) {
	for _, box := range boxKinds(t) {
		r := newRoom(t)
		if box == "off" {
			r.box = offBox{}
		}
		mark := "mark" + callID()
		res, err := r.box.Run(context.Background(), r.policy, Command{Argv: []string{"/bin/bash", "-c", "setsid sleep 300 & echo done"}, Env: []string{"TREE=" + mark}})
		if err != nil || res.ExitCode != 0 || !strings.Contains(string(res.Output), "done") || res.Duration > 3*time.Second {
			t.Errorf("%s: %+v %v", box, res, err)
		}
		if left := processesWith("TREE=" + mark); len(left) > 0 {
			t.Errorf("%s: still running: %v", box, left)
		}
	}
}

func processesWith(mark string) (out []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), mark) {
			cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
			out = append(out, filepath.Dir(f)+" "+strings.ReplaceAll(string(cmd), "\x00", " "))
		}
	}
	return out
}

func count(dir string) int {
	entries, _ := os.ReadDir(dir)
	return len(entries)
}

func TestBoxLimits(t *testing.T) {
	r := newRoom(t)
	r.policy.Limits.OpenFiles = 32
	r.policy.Limits.FileBytes = 1 << 20
	r.policy.Limits.MemoryBytes = 256 << 20
	r.policy.Limits.CPUSeconds = 1
	r.refused("head -c 3000000 /dev/zero > big")
	if info, err := os.Stat(filepath.Join(r.policy.Workspace, "big")); err != nil || info.Size() > 1<<20 {
		t.Errorf("file grew to %v, %v", info, err)
	}
	line, want := "ulimit -n; ulimit -d; ulimit -c", "32\n262144\n0\n"
	if full, ok := r.box.(bwrap); ok {
		line, want = line+"; cat /proc/self/oom_score_adj", want+"800\n"
		if full.groups.holds("memory") {
			want = "32\nunlimited\n0\n800\n"
		}
	}
	if out := r.must(line); out != want {
		t.Errorf("limits in the box: %q, want %q", out, want)
	}
	r.refused("ulimit -n 64")
	start := time.Now()
	if res := r.bash("while :; do :; done"); res.ExitCode == 0 || res.TimedOut || time.Since(start) > 10*time.Second {
		t.Errorf("CPU limit: %+v", res)
	}
	res, err := r.box.Run(context.Background(), r.policy, Command{Argv: []string{"sleep", "60"}, Wall: 200 * time.Millisecond})
	if err != nil || !res.TimedOut {
		t.Errorf("wall of the command: %+v %v", res, err)
	}
}

func TestBoxStopsACommandThatFillsTheDisk(t *testing.T) {
	r := newRoom(t)
	r.policy.Limits.DiskBytes = 4 << 20
	sh := NewShell(r.box, func() Policy { return r.policy })
	res, err := sh.Run(context.Background(), tool.Command{Line: "truncate -s 1G sparse; head -c 8000000 /dev/zero > $HOME/big; sleep 60"})
	if err != nil || res.TimedOut || res.ExitCode != 137 || !strings.Contains(res.Output, "stopped: the task's folders hold more") || res.Duration > 15*time.Second {
		t.Errorf("%+v %v", res, err)
	}
	r.policy.Limits.DiskBytes = 64 << 20
	r.must("truncate -s 1G sparse; sleep 0.1")
}

func TestBoxSaysWhyItDidNotStart(t *testing.T) {
	r := newRoom(t)
	for _, p := range []Policy{{}, {Workspace: "/"}, {Workspace: "rel"}, {Workspace: "/nowhere"}, {Workspace: r.policy.Workspace, Writable: []string{"/"}}, {Workspace: r.policy.Workspace, Readable: []string{"/nowhere/x"}}} {
		if _, err := r.box.Run(context.Background(), p, Command{Argv: []string{"true"}}); err == nil {
			t.Errorf("%+v: no error", p)
		} else {
			t.Log(err)
		}
	}
	if res := r.bash("no-such-program-at-all"); res.ExitCode != 127 {
		t.Errorf("missing program: %+v", res)
	}
	link := filepath.Join(r.policy.Workspace, ".mcp.json")
	if err := os.Symlink(r.outside, link); err != nil {
		t.Fatal(err)
	}
	if _, err := r.box.Run(context.Background(), r.policy, Command{Argv: []string{"true"}}); err == nil || !strings.Contains(err.Error(), ".mcp.json") {
		t.Errorf("a link in a protected place: %v", err)
	}
}

func TestGitWorksInTheBox(t *testing.T) {
	r := newRoom(t)
	r.repository()
	r.must(`set -e
git checkout -q -b work
echo a > a; git add -A; git commit -q -m a
echo b > b; git add b; git commit -q -m b
git checkout -q main; echo m > m; git add m; git commit -q -m m
git checkout -q work; git rebase -q main
git branch other; git branch -d other; git tag v1
git stash list; echo c >> a; git stash -q; git stash pop -q; git restore a
git merge -q --no-ff -m merge main || true
git reset -q --hard HEAD~1; git clean -fdq; git gc -q; git fsck
git worktree list; git log --oneline | cat; git status`)
	if got := git(t, r.policy.Workspace, "log", "--format=%s", "work"); got != "a\nm\nfirst" {
		t.Errorf("history: %q", got)
	}
}

func TestARootHostThatMayNotStageMountsStillHasABox(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("root only: other users never stage")
	}
	r := newRoom(t)
	box := r.box.(bwrap)
	box.plain = true
	if _, _, ok := box.Account("x"); ok {
		t.Error("it hands out accounts")
	}
	if err := probe(context.Background(), box); err != nil {
		t.Error(err)
	}
	if _, err := box.Run(context.Background(), r.policy, Command{Argv: []string{"true"}}); err == nil || !strings.Contains(err.Error(), "CAP_SYS_ADMIN") {
		t.Errorf("a workspace of another user: %v", err)
	}
}
