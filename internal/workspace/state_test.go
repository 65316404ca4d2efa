//go:build unix

package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"reasonix/internal/agent"
)

var _ agent.Tree = (*Workspace)(nil)

func (o *office) state(w *Workspace) agent.TreeState {
	o.t.Helper()
	s, err := w.State(context.Background())
	if err != nil {
		o.t.Fatal(err)
	}
	return s
}

func TestStateChangesWithWhatCountsAndNothingElse(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	before := o.state(w)
	if before.Base != w.BaseSHA || before.Head != w.BaseSHA || len(before.Hash) != 64 {
		t.Fatalf("%+v", before)
	}
	for _, line := range []string{"echo x > a.log", "mkdir build && echo x > build/y", "echo x > sub/tmp", "touch main.go", "git status >/dev/null; git stash list",
		"echo '!*' > .git/info/exclude; git update-index --assume-unchanged main.go"} {
		o.task(w, line)
		if got := o.state(w); got != before {
			t.Errorf("%s: the state changed", line)
		}
	}
	seen := map[string]string{before.Hash: "before"}
	for _, line := range []string{"echo x >> main.go", "echo x > keep.log", "echo y >> forced.log", "chmod +x main.go", "ln -s a l", "ln -sf b l", "mv l l2", "rm sub/a.txt",
		"mkfifo pipe", "echo '*' > .gitignore", "echo hidden > hidden", "truncate -s 7G sparse", "mkdir closed && touch closed/f && chmod 000 closed", "printf 'a\\nb' > $'odd\\nname'"} {
		o.task(w, line)
		got := o.state(w)
		if was, ok := seen[got.Hash]; ok {
			t.Errorf("%s: same state as after %s", line, was)
		}
		seen[got.Hash] = line
	}
	o.task(w, "git update-index --no-assume-unchanged main.go; git add main.go && git commit -qm x")
	if got := o.state(w); got.Head == before.Head || got.Head != strings.TrimSpace(o.task(w, "git rev-parse HEAD")) {
		t.Errorf("head %s", got.Head)
	}
	o.task(w, "git pack-refs --all")
	if got := o.state(w); got.Head != strings.TrimSpace(o.task(w, "git rev-parse HEAD")) {
		t.Errorf("packed head %s", got.Head)
	}
	o.task(w, "rm .git/HEAD && mkfifo .git/HEAD")
	_ = o.state(w) // no hang
}

func TestStateNoticesASameSizeChangeWithAnOldTime(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	file := w.Dir + "/main.go"
	o.state(w)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	a := o.state(w)
	o.task(w, "touch -r main.go /tmp/r; printf 'package evil\\n' > main.go; touch -r /tmp/r main.go")
	if o.state(w).Hash == a.Hash {
		t.Error("a change was missed")
	}
}

func TestDifferenceShowsWhatChanged(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	o.task(w, "echo one > n")
	from := o.state(w)
	if d, err := w.Difference(context.Background(), from.Hash); err != nil || d != "" {
		t.Errorf("nothing changed: %q %v", d, err)
	}
	o.task(w, "echo two >> n; echo 'func x() {}' >> main.go; rm sub/a.txt; printf 'a\\0b' > bin; ln -s x l; git add n && git commit -qm n")
	o.open()
	w = o.prepare("t1") // another process knows the states too
	d, err := w.Difference(context.Background(), from.Hash)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" one\n+two", "+func x() {}", "-a\n", `"bin": absent of 0 bytes → file of 3 bytes`, `"l": absent of 0 bytes → link`, "HEAD: " + from.Head[:12]} {
		if !strings.Contains(d, want) {
			t.Errorf("lacks %q:\n%s", want, d)
		}
	}
	o.task(w, "yes | head -c 200000 > long")
	if d, err := w.Difference(context.Background(), from.Hash); err != nil || len(d) > differenceLimit+200 || !strings.Contains(d, "1 more changed file") {
		t.Errorf("long difference of %d bytes: %v", len(d), err)
	}
	if d, err := w.Difference(context.Background(), strings.Repeat("0", 64)); err != nil || !strings.Contains(d, "not known") {
		t.Errorf("unknown state: %q %v", d, err)
	}
	if _, err := w.Difference(context.Background(), "../../meta"); err == nil {
		t.Error("a path was taken for a hash")
	}
}

func TestSnapshotBringsAWorkspaceBack(t *testing.T) {
	ctx := context.Background()
	o := newOffice(t)
	w := o.prepare("t1")
	o.task(w, "echo b > b && git add b && git commit -qm b && echo dirty >> main.go && echo new > new && chmod +x new && rm sub/a.txt && echo i > i.log")
	before := o.state(w)
	if err := o.store.Restore(ctx, "t1", t.TempDir()); err == nil {
		t.Error("restored without a snapshot")
	}
	snap, err := w.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if after := o.state(w); after != before {
		t.Error("the snapshot changed the workspace")
	}
	out := filepath.Join(t.TempDir(), "out")
	if err := o.store.Restore(ctx, "t1", out); err != nil || read(t, out+"/new") != "new\n" || !strings.Contains(read(t, out+"/main.go"), "dirty") {
		t.Errorf("restore: %v", err)
	}
	if err := o.store.Restore(ctx, "t1", out); err == nil {
		t.Error("restored over files")
	}
	if err := removeTree(o.store.workDir("t1")); err != nil { // the disk of the host is gone, or it is another host
		t.Fatal(err)
	}
	o.open()
	w = o.prepare("t1")
	if got := o.state(w); got != before || !w.Restored {
		t.Errorf("state %+v, was %+v, restored %v; snapshot %+v", got, before, w.Restored, snap)
	}
	if out := o.task(w, "git log --format=%s; git branch --show-current; git status --porcelain"); out != "b\nfirst\nreasonix/t1\n M main.go\n D sub/a.txt\n?? new\n" {
		t.Errorf("restored:\n%s", out)
	}
	if len(o.harvest(w).Files) != 4 {
		t.Error("harvest after restore")
	}
}

func TestOldSnapshotsGo(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	for range keptSnapshots + 2 {
		o.task(w, "echo more >> main.go")
		if _, err := w.Snapshot(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	list, err := o.store.List(context.Background())
	if err != nil || list[0].Snapshots != keptSnapshots {
		t.Errorf("%+v %v", list, err)
	}
}

// Twenty tasks at once over one repository: one mirror, no shared inode that any of them can write.
func TestParallelTasksShareNothingTheyCanWrite(t *testing.T) {
	o := newOffice(t)
	const n = 20
	spaces := make([]*Workspace, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			w, err := o.store.Prepare(context.Background(), o.request("t"+string(rune('a'+i))))
			if err != nil {
				t.Error(err)
				return
			}
			spaces[i] = w
		}()
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	owner := map[uint64]string{}
	for _, w := range spaces {
		err := filepath.WalkDir(filepath.Dir(w.Dir), func(p string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			st := info.Sys().(*syscall.Stat_t)
			if other, ok := owner[st.Ino]; ok && other != w.ID {
				t.Errorf("%s is shared with %s", p, other)
			}
			owner[st.Ino] = w.ID
			if !d.IsDir() && st.Nlink > 1 {
				t.Errorf("%s has %d names", p, st.Nlink)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	a, b := spaces[0], spaces[1]
	for _, line := range []string{"ls " + b.Dir, "cat " + b.Dir + "/main.go", "echo x > " + o.store.mirrorObjects(a.meta.Mirror) + "/x",
		"ls " + o.store.hostDir(a.ID), "ls " + o.store.mirrorDir(a.meta.Mirror) + "/refs"} {
		o.task(a, "! "+line)
	}
	entries, _ := os.ReadDir(filepath.Join(o.root, "mirrors"))
	if len(entries) != 1 {
		t.Errorf("%d mirrors", len(entries))
	}
}
