//go:build unix

package workspace

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/sandbox"
)

func (o *office) snapshot(w *Workspace) Snapshot {
	o.t.Helper()
	s, err := w.Snapshot(context.Background())
	if err != nil {
		o.t.Fatal(err)
	}
	return s
}

func TestASnapshotOfWhatDidNotChangeIsTheOneBefore(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	first := o.snapshot(w)
	if again := o.snapshot(w); again != first {
		t.Errorf("nothing changed: %+v, then %+v", first, again)
	}
	for _, line := range []string{"echo x > new", "git add new && git commit -qm x", "git checkout -q -b other", "rm main.go", "echo gone >> .git/info/exclude; touch gone"} {
		before := o.snapshot(w)
		o.task(w, line)
		if after := o.snapshot(w); after.Ref == before.Ref {
			t.Errorf("%s: no new snapshot", line)
		}
	}
	if got := o.snapshot(w); got.Branch != "other" {
		t.Errorf("%+v", got)
	}
}

// What a task writes into info/exclude hides nothing from the hash and nothing from a snapshot.
func TestInfoExcludeHidesNothing(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	before := o.state(w)
	o.task(w, "echo '*' > .git/info/exclude; git config --file /tmp/c x.y z; echo evil > hidden.sh; git status --porcelain")
	hidden := o.state(w)
	if hidden == before {
		t.Error("a file that info/exclude hides changed the state by nothing")
	}
	o.snapshot(w)
	if err := removeTree(o.store.workDir("t1")); err != nil {
		t.Fatal(err)
	}
	w = o.prepare("t1")
	if got := o.state(w); got != hidden || read(t, w.Dir+"/hidden.sh") != "evil\n" {
		t.Errorf("restored to %+v, was %+v", got, hidden)
	}
}

// A snapshot leaves nothing in the clone, and each brings only what is new.
func TestSnapshotsAreSmallAndLeaveNoResidue(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	objects := func() string { return o.task(w, "git count-objects; git for-each-ref; ls -A /tmp") }
	o.task(w, "head -c 3000000 /dev/urandom > big")
	clean := objects()
	o.task(w, "mkdir -p /tmp/.reasonix-pack.cut/git && echo x > /tmp/.reasonix-pack.cut/git/x") // a host that died over a snapshot
	o.snapshot(w)
	if got := objects(); got != clean {
		t.Errorf("left in the clone:\n%s\nbefore:\n%s", got, clean)
	}
	one := dirSize(t, o.store.hostGit("t1"))
	for range 3 {
		o.task(w, "echo more >> small")
		o.snapshot(w)
	}
	if grown := dirSize(t, o.store.hostGit("t1")) - one; grown > 1<<20 {
		t.Errorf("three small changes cost %d bytes", grown)
	}
	if refs := git(t, o.store.hostGit("t1"), "for-each-ref", "refs/incoming", "refs/reasonix"); refs != "" {
		t.Errorf("left on the host: %s", refs)
	}
	git(t, o.store.hostGit("t1"), "fsck", "--strict")
}

func dirSize(t testing.TB, dir string) (n int64) {
	t.Helper()
	files, err := filepath.Glob(dir + "/objects/*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		n += int64(len(read(t, f)))
	}
	return n
}

func TestAStoreThatMovedGoesOn(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	o.task(w, "echo x > new; git add new; git commit -qm x; echo y > dirty")
	before := o.state(w)
	digest := w.BoxDigest(w.Policy(sandbox.Policy{}), nil)
	o.snapshot(w)
	moved := filepath.Join(t.TempDir(), "state")
	if out, err := exec.Command("cp", "-a", o.root, filepath.Dir(moved)).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if err := removeTree(o.root); err != nil {
		t.Fatal(err)
	}
	o.root = moved
	o.open()
	w = o.prepare("t1")
	if got := o.state(w); got != before || w.Restored {
		t.Errorf("%+v, was %+v", got, before)
	}
	if out := o.task(w, "git fsck 2>&1; git log --format=%s; git status --porcelain"); !strings.Contains(out, "x\nfirst\n?? dirty\n") {
		t.Errorf("in the moved clone: %s", out)
	}
	if err := removeTree(o.store.workDir("t1")); err != nil {
		t.Fatal(err)
	}
	w = o.prepare("t1")
	if got := o.state(w); got != before || !w.Restored || read(t, w.Dir+"/dirty") != "y\n" {
		t.Errorf("rebuilt %+v, was %+v", got, before)
	}
	if got := w.BoxDigest(w.Policy(sandbox.Policy{}), nil); got != digest {
		t.Error("the digest of the box depends on where the store is")
	}
	if !o.harvest(w).Empty() && len(o.harvest(w).Files) != 2 {
		t.Errorf("%+v", o.harvest(w))
	}
}

func TestAWorkspaceThatIsGoneResumesAtItsPushedBranch(t *testing.T) {
	ctx := context.Background()
	o := newOffice(t)
	w := o.prepare("t1")
	o.task(w, "echo x > new; git add new; git commit -qm mine")
	h := o.harvest(w)
	if err := w.Push(ctx, h, o.upstream, w.Branch, nil); err != nil {
		t.Fatal(err)
	}
	r := o.request("t1")
	r.SHA = w.BaseSHA // pinned and known to the mirror already: the branch must be looked for all the same
	for _, resume := range []bool{false, true} {
		if err := o.store.Remove(ctx, "t1"); err != nil {
			t.Fatal(err)
		}
		r.Resume = resume
		again, err := o.store.Prepare(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		want := w.BaseSHA
		if resume {
			want = h.Head
		}
		if again.BaseSHA != want || !again.Fresh || (again.Pushed != "") != resume {
			t.Errorf("resume %v: base %s, pushed %q", resume, again.BaseSHA, again.Pushed)
		}
		if resume {
			o.task(again, "echo y > more")
			h := o.harvest(again)
			if err := again.Push(ctx, h, o.upstream, again.Branch, nil); err != nil || len(h.Files) != 1 {
				t.Errorf("%v %v", h.Files, err)
			}
		}
	}
}
