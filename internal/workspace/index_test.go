package workspace

import (
	"os"
	"strings"
	"testing"
)

// afresh is the state without anything remembered.
func (o *office) afresh(w *Workspace) string {
	o.t.Helper()
	w.mu.Lock()
	base, cache, index := w.base, w.cache, read(o.t, o.store.indexFile(w.ID))
	w.base, w.cache = nil, map[string]cached{}
	w.mu.Unlock()
	hash := o.state(w).Hash
	w.mu.Lock()
	w.base, w.cache = base, cache
	w.mu.Unlock()
	write(o.t, o.store.indexFile(w.ID), index)
	return hash
}

func TestWhatIsRememberedNeverChangesAState(t *testing.T) {
	o := newOffice(t)
	write(t, o.upstream+"/.gitattributes", "*.crlf text eol=crlf\n")
	write(t, o.upstream+"/win.crlf", "one\ntwo\n")
	write(t, o.upstream+"/run.sh", "true\n")
	if err := os.Chmod(o.upstream+"/run.sh", 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, o.upstream, "add", "-A")
	git(t, o.upstream, "commit", "-qm", "more kinds of files")
	first := o.prepare("t1")
	second := o.prepare("t2") // seeded from what the first one learned
	if !stamps {
		t.Skip("no change times on this system")
	}
	for _, w := range []*Workspace{first, second} {
		seeded := o.store.readIndex(w.ID)
		if e := seeded["main.go"]; !e.Base || e.Hash != digest("package main\n") || seeded["run.sh"].Mode != "x" {
			t.Errorf("%s: not seeded: %+v", w.ID, seeded)
		}
		if _, wrong := seeded["win.crlf"]; wrong {
			t.Error("a converted file counts as the blob itself")
		}
	}
	pristine := o.state(second).Hash
	if got := o.afresh(second); got != pristine || o.state(first).Hash != pristine {
		t.Errorf("remembered %s, read %s", pristine, got)
	}
	for _, line := range []string{
		"printf 'package evil\\n' > main.go", "touch -d @0 main.go", "mv main.go m; cp m main.go; touch -r m main.go; rm m", "chmod -x run.sh",
		"printf 'package main\\n' > main.go; chmod +x run.sh", "rm sub/a.txt; echo more > more",
	} {
		o.task(second, line)
		o.open()
		again := o.prepare("t2") // another process, with the index of the one before
		if remembered, got := o.state(again).Hash, o.afresh(again); remembered != got {
			t.Errorf("%s: remembered %s, read %s", line, remembered, got)
		}
	}
}

// The first thing that a task does, right behind the clone, is noticed.
func TestAChangeRightBehindTheCloneIsNoticed(t *testing.T) {
	o := newOffice(t)
	pristine := o.state(o.prepare("t1")).Hash
	w := o.prepare("t2")
	if err := os.WriteFile(w.Dir+"/main.go", []byte("package evil\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if o.state(w).Hash == pristine {
		t.Error("missed")
	}
}

func TestADamagedIndexIsNotBelieved(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	want := o.state(w).Hash
	file := o.store.indexFile("t1")
	good := read(t, file)
	for _, bad := range []string{"", "short", strings.Replace(good, digest("package main\n"), digest("package evil\n"), 1), good[:len(good)-9], good + "x\x00"} {
		write(t, file, bad)
		o.open()
		if got := o.state(o.prepare("t1")).Hash; got != want {
			t.Errorf("%d bytes of index: %s, want %s", len(bad), got, want)
		}
	}
}
