package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
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
