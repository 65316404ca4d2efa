//go:build unix

package workspace

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

const killedEnv = "REASONIX_TEST_KILLED"

// TestKilledHost is the host of the next test: it makes, snapshots, exports and removes workspaces until it is killed.
func TestKilledHost(t *testing.T) {
	at, ok := os.LookupEnv(killedEnv)
	if !ok {
		return // nobody's other process
	}
	o := newOffice(t)
	ctx := context.Background()
	o.root, o.upstream = filepath.Join(at, "state"), filepath.Join(at, "up")
	o.open()
	w := o.prepare("t1")
	fmt.Println("ready")
	for i := 0; ; i++ {
		write(t, filepath.Join(w.Dir, "n"), fmt.Sprint(at, i, time.Now()))
		o.snapshot(w)
		o.state(w)
		o.harvest(w)
		other := fmt.Sprint("o", i%3)
		o.snapshot(o.prepare(other))
		if err := o.store.Export(ctx, "t1", filepath.Join(t.TempDir(), "x"), true); err != nil {
			t.Fatal(err)
		}
		if err := o.store.Remove(ctx, other); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever a host was doing when it was killed, the next one goes on with every workspace, at once.
func TestAKilledHostLeavesAStoreThatGoesOn(t *testing.T) {
	o := newOffice(t)
	at := t.TempDir()
	o.root = filepath.Join(at, "state")
	if err := os.Rename(o.upstream, filepath.Join(at, "up")); err != nil {
		t.Fatal(err)
	}
	o.upstream = filepath.Join(at, "up")
	t.Cleanup(func() { _ = removeTree(o.root) })
	for round := range 8 {
		cmd := exec.Command("/proc/self/exe", "-test.run", "^TestKilledHost$", "-test.v")
		cmd.Env = append(os.Environ(), killedEnv+"="+at)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		seen := make([]byte, 0, 4096)
		for !strings.Contains(string(seen), "ready") {
			n, err := out.Read(seen[len(seen):cap(seen)])
			if seen = seen[:len(seen)+n]; err != nil {
				t.Fatalf("the other host ended: %s", seen)
			}
		}
		<-time.After(time.Duration(round*83+20) * time.Millisecond) // somewhere in its work
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		o.open()
		for _, id := range []string{"t1", "o0"} {
			w := o.prepare(id)
			write(t, filepath.Join(w.Dir, "after"), fmt.Sprint(round))
			o.snapshot(w)
			o.state(w)
			if h := o.harvest(w); h.Empty() {
				t.Errorf("round %d: %s harvests nothing", round, id)
			}
			git(t, o.store.hostGit(id), "fsck", "--strict", "--connectivity-only")
		}
		if left, _ := filepath.Glob(o.root + "/work/.making-t1"); len(left) > 0 {
			t.Errorf("round %d: left %v", round, left)
		}
		if _, err := o.store.List(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// Two hosts share one folder. The lease keeps them apart; one that lost it without noticing must not break anything either.
func TestTwoHostsInOneFolder(t *testing.T) {
	o := newOffice(t)
	ctx := context.Background()
	other, err := Open(o.root, o.opt)
	if err != nil {
		t.Fatal(err)
	}
	hosts := []*Store{o.store, other}
	var made [2]*Workspace
	var g errgroup.Group
	for i, s := range hosts {
		g.Go(func() (err error) {
			made[i], err = s.Prepare(ctx, o.request("t1"))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if made[0].Fresh == made[1].Fresh || made[0].BaseSHA != made[1].BaseSHA {
		t.Errorf("%+v\n%+v", made[0], made[1])
	}
	for round := range 5 {
		write(t, filepath.Join(made[0].Dir, "n"), fmt.Sprint(round))
		var g errgroup.Group
		for _, w := range made {
			g.Go(func() error { _, _ = w.Snapshot(ctx); return nil }) // one of them may fail
			g.Go(func() error { _, _ = w.State(ctx); return nil })
		}
		_ = g.Wait()
	}
	snap, state := o.snapshot(made[1]), o.state(made[1])
	if got := read(t, filepath.Join(made[1].Dir, "n")); got != "4" {
		t.Error(got)
	}
	git(t, o.store.hostGit("t1"), "fsck", "--strict")
	if err := removeTree(o.store.workDir("t1")); err != nil {
		t.Fatal(err)
	}
	w := o.prepare("t1")
	if w.From.SHA != snap.SHA || o.state(w) != state {
		t.Errorf("rebuilt from %+v, newest is %+v", w.From, snap)
	}
}
