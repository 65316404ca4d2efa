package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A bubblewrap that takes no descriptors makes no box beside one that could swap a submodule's folder meanwhile.
func TestNoBoxIsMadeBesideOneThatCouldSwapASubmodule(t *testing.T) {
	r := newRoom(t)
	lib := filepath.Join(r.outside, "lib")
	write(t, filepath.Join(lib, "l"), "l")
	git(t, lib, "init", "-q")
	git(t, lib, "add", "-A")
	git(t, lib, "commit", "-qm", "l")
	r.repository()
	git(t, r.policy.Workspace, "submodule", "add", "-q", lib, "deps/lib")
	git(t, r.policy.Workspace, "commit", "-qm", "submodule")
	old := r.box.(bwrap)
	old.bindFD = false
	if os.Geteuid() == 0 { // folders of root's are not handed to an account, as with an ordinary user
		err := filepath.WalkDir(filepath.Dir(r.policy.Workspace), func(p string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(p, 0, 0))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	pointer := filepath.Join(r.policy.Workspace, "deps", "lib")
	try := func() error {
		_, err := old.Run(context.Background(), r.policy, Command{Argv: []string{"true"}})
		return err
	}
	for name, c := range map[string]struct {
		before, during func()
		want           error
	}{
		"checked out before": {func() {}, func() {}, nil},
		"appears meanwhile":  {func() { rename(t, pointer, pointer+"-away") }, func() { rename(t, pointer+"-away", pointer) }, errCrowd},
	} {
		c.before()
		ctx, stop := context.WithCancel(context.Background())
		started, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			first := true
			_, _ = old.Run(ctx, r.policy, Command{Argv: []string{"/bin/sh", "-c", "echo on; sleep 60"}, Output: func([]byte) {
				if first {
					first = false
					close(started)
				}
			}})
		}()
		<-started
		c.during()
		if err := try(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		stop()
		<-ended
		if err := try(); err != nil {
			t.Errorf("%s, when the other has ended: %v", name, err)
		}
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
