//go:build unix

package workspace

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// away is another host with a store of its own.
func (o *office) away() *office {
	o.t.Helper()
	b := &office{t: o.t, upstream: o.upstream, root: filepath.Join(o.t.TempDir(), "b"), opt: o.opt}
	b.open()
	o.t.Cleanup(func() { _ = removeTree(b.root) })
	return b
}

func TestAnExportGoesOnOnAnotherHost(t *testing.T) {
	ctx := context.Background()
	for _, whole := range []bool{false, true} {
		o := newOffice(t)
		w := o.prepare("t1")
		o.task(w, "echo a > a; git add a; git commit -qm mine; git checkout -q -b side; echo b > b; rm sub/a.txt")
		before := o.state(w)
		o.snapshot(w)
		file := filepath.Join(t.TempDir(), "t1.workspace")
		if err := o.store.Export(ctx, "t1", file, whole); err != nil {
			t.Fatal(err)
		}
		b := o.away()
		from := Request{URL: b.upstream}
		if whole {
			from.URL = filepath.Join(t.TempDir(), "unreachable")
		}
		if info, err := b.store.Import(ctx, file, from); err != nil || info.ID != "t1" || info.Snapshots != 1 {
			t.Fatalf("%+v %v", info, err)
		}
		got := b.prepare("t1")
		if state := b.state(got); state != before || !got.Restored || got.Fresh {
			t.Errorf("whole %v: %+v, was %+v", whole, state, before)
		}
		if out := b.task(got, "git log --format=%s; git branch --show-current; cat b"); out != "mine\nfirst\nside\nb\n" {
			t.Errorf("whole %v: %s", whole, out)
		}
		h := b.harvest(got)
		if err := got.Push(ctx, h, o.upstream, got.Branch, nil); err != nil || len(h.Files) != 3 {
			t.Errorf("whole %v: %v %v", whole, h.Files, err)
		}
		if _, err := b.store.Import(ctx, file, from); !errors.Is(err, ErrExists) {
			t.Errorf("a second time: %v", err)
		}
	}
}

func TestExportRefusesWhatIsNotThere(t *testing.T) {
	ctx := context.Background()
	o := newOffice(t)
	w := o.prepare("t1")
	file := filepath.Join(t.TempDir(), "x")
	if err := o.store.Export(ctx, "t1", file, false); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("%v", err)
	}
	o.snapshot(w)
	for id, want := range map[string]error{"nobody": ErrUnknown, "../mirrors": ErrUnknown} {
		if err := o.store.Export(ctx, id, file, false); !errors.Is(err, want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	write(t, file, "precious")
	if err := o.store.Export(ctx, "t1", file, false); !errors.Is(err, fs.ErrExist) || read(t, file) != "precious" {
		t.Errorf("over a file: %v", err)
	}
}

func TestImportRefusesWhatItCannotTrust(t *testing.T) {
	ctx := context.Background()
	o := newOffice(t)
	w := o.prepare("t1")
	o.task(w, "echo a > a")
	snap := o.snapshot(w)
	file := filepath.Join(t.TempDir(), "good")
	if err := o.store.Export(ctx, "t1", file, false); err != nil {
		t.Fatal(err)
	}
	good := read(t, file)
	lacking := filepath.Join(t.TempDir(), "other")
	git(t, t.TempDir(), "init", "-q", "-b", "main", lacking)
	git(t, lacking, "commit", "-q", "--allow-empty", "-m", "x")
	for name, c := range map[string]struct {
		data, url string
		want      error
	}{
		"text":               {"hello", o.upstream, ErrExport},
		"empty":              {"", o.upstream, ErrExport},
		"cut":                {good[:2000], o.upstream, ErrExport},
		"id with a path":     {strings.Replace(good, `"id": "t1"`, `"id": ".."`, 1), o.upstream, ErrExport},
		"another id":         {strings.Replace(good, `"id": "t1"`, `"id": "./"`, 1), o.upstream, ErrExport},
		"another snapshot":   {strings.Replace(good, `"SHA": "`+snap.SHA[:6], `"SHA": "000000`, 1), o.upstream, ErrExport},
		"another version":    {strings.Replace(good, `"version": 1`, `"version": 9`, 1), o.upstream, ErrExport},
		"damaged objects":    {string(bytes.Replace([]byte(good), []byte("PACK"), []byte("PICK"), 1)), o.upstream, ErrExport},
		"no upstream":        {good, lacking + "-gone", ErrNoRepository},
		"upstream lacks it":  {good, lacking, ErrNoBase},
		"option as a branch": {strings.Replace(good, `"branch": "reasonix/t1"`, `"branch": "--exec=abc"`, 1), o.upstream, ErrExport},
	} {
		b := o.away()
		bad := filepath.Join(t.TempDir(), "bad")
		write(t, bad, c.data)
		if _, err := b.store.Import(ctx, bad, Request{URL: c.url}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(filepath.Join(b.root, "host")); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind %v %v", name, left, err)
		}
	}
}
