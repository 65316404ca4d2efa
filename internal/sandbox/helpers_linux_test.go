package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

// python skips where the attempts that need system calls by number cannot be made.
func python(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("python is missing: apt-get install python3")
	}
}

func goarch() string { return runtime.GOARCH }

func mustLook(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(err)
	}
	return path
}

// countProcesses counts processes of the whole machine whose command line contains text.
func countProcesses(text string) (n int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), text) {
			n++
		}
	}
	return n
}

func (r *room) chown(dir string) {
	r.t.Helper()
	uid, gid, ok := r.box.(Accounts).Account(r.t.Name())
	if ok {
		_ = filepath.WalkDir(dir, func(p string, _ os.DirEntry, _ error) error { return os.Lchown(p, uid, gid) })
	}
}

// disown gives the workspace back to the host's user, so that as root the box runs as root.
func (r *room) disown() {
	r.t.Helper()
	for _, dir := range append([]string{r.policy.Workspace, r.policy.Home, r.policy.Temp}, r.policy.Caches...) {
		_ = filepath.WalkDir(dir, func(p string, _ os.DirEntry, _ error) error { return os.Lchown(p, os.Geteuid(), os.Getegid()) })
	}
}

// privileges reads the capabilities and filters of a boxed process from outside, because not every box shows a process itself.
func (r *room) privileges() (out string) {
	r.t.Helper()
	mark := "PRIVILEGES=" + callID()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	look := func() (status string) {
		for _, p := range processesWith(mark) {
			dir, _, _ := strings.Cut(p, " ")
			if exe, _ := os.Readlink(dir + "/exe"); !strings.Contains(p, "sleep 60") || strings.HasSuffix(exe, "bwrap") {
				continue
			}
			if text, err := os.ReadFile(dir + "/status"); err == nil {
				status = string(text)
			}
		}
		return status
	}
	_, err := r.box.Run(ctx, r.policy, Command{Argv: []string{"/bin/sh", "-c", "echo up; exec sleep 60"}, Env: []string{mark}, Output: func([]byte) {
		for deadline := time.Now().Add(5 * time.Second); out == "" && time.Now().Before(deadline); {
			out = look() // a process that is just becoming another one shows no environment, and gives no signal when it does again
		}
		stop()
	}})
	if !errors.Is(err, context.Canceled) {
		r.t.Fatal(err)
	}
	var keep []string
	for _, line := range strings.Split(out, "\n") {
		for _, name := range []string{"CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp:"} {
			if strings.HasPrefix(line, name) {
				keep = append(keep, line)
			}
		}
	}
	return strings.Join(keep, "\n")
}
