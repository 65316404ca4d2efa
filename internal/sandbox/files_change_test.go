package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/tool"
)

func TestWriteKeepsTheModeAndLeavesNothingBehind(t *testing.T) {
	h := newHouse(t, FilesConfig{})
	h.put(h.in("run.sh"), "old")
	if err := os.Chmod(h.in("run.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := h.write("run.sh"); err != nil {
		t.Fatal(err)
	}
	if err := h.write("new/deep/file"); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(h.in("run.sh")); err != nil || fi.Mode().Perm() != 0o750 {
		t.Errorf("mode is %v (%v)", fi.Mode(), err)
	}
	if got := h.walk("."); got != "new/deep/file run.sh" {
		t.Errorf("the workspace holds %s", got)
	}
}

func TestAWriteBoundToAVersionLosesToAChange(t *testing.T) {
	h := newHouse(t, FilesConfig{})
	ctx := t.Context()
	h.put(h.in("f"), "one")
	_, v, err := h.files.Read(ctx, "f", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.files.Write(ctx, "f", []byte("two"), v); err != nil {
		t.Fatal(err)
	}
	for name, version := range map[string]string{"f": v, "gone/f": v} {
		if err := h.files.Write(ctx, name, []byte("three"), version); !errors.Is(err, tool.ErrChanged) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Lstat(h.in("gone")); err == nil {
		t.Error("a refused write left a folder behind")
	}
	if err := h.files.Write(ctx, "f", []byte("three"), tool.VersionAbsent); !errors.Is(err, tool.ErrChanged) {
		t.Errorf("creating over an existing file: %v", err)
	}
	if got, _ := os.ReadFile(h.in("f")); string(got) != "two" {
		t.Errorf("f is %q", got)
	}
	h.put(h.in("g"), "two")
	_, a, _ := h.files.Read(ctx, "f", 0)
	_, b, _ := h.files.Read(ctx, "g", 0)
	if a != b {
		t.Error("the same bytes restored as another inode must be the same version")
	}
}

func TestMoveRefusesToOverwriteAndToCarryProtectedThings(t *testing.T) {
	h := newHouse(t, FilesConfig{ForbidRead: []string{"d/secret"}})
	ctx := t.Context()
	h.put(h.in("a"), "A")
	h.put(h.in("b"), "B")
	h.put(h.in("d/secret"), "S")
	h.put(h.in("e/f"), "F")
	for name, c := range map[string][2]string{
		"onto a file": {"a", "b"}, "onto a folder": {"a", "e"}, "into itself": {"e", "e/sub/x"}, "of nothing": {"none", "x"},
		"of the workspace": {".", "x"}, "to the workspace": {"a", "."}, "of a folder with a forbidden file": {"d", "x"},
	} {
		if err := h.files.Move(ctx, c[0], c[1]); err == nil {
			t.Errorf("move %s was let through", name)
		}
	}
	if err := h.files.Move(ctx, "e", "new/place/e"); err != nil {
		t.Error(err)
	}
	if got := h.walk("."); got != "a b new/place/e/f" {
		t.Errorf("the workspace holds %s", got)
	}
}

func TestHugeFilesAndFoldersAreBounded(t *testing.T) { // S56
	h := newHouse(t, FilesConfig{})
	f, err := os.Create(h.in("sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(10 << 30); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	f.Close()
	if _, _, err := h.files.Read(t.Context(), "sparse", 1<<20); !errors.Is(err, tool.ErrTooLarge) {
		t.Errorf("read: %v", err)
	}
	deep := h.w + strings.Repeat("/d", maxWalkDepth+2)
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	err = h.files.Walk(t.Context(), ".", func(string, fs.DirEntry) error { return nil })
	if !errors.Is(err, tool.ErrTooLarge) {
		t.Errorf("walk: %v", err)
	}
}

func TestWalkHonoursIgnoreRulesInLexicalOrder(t *testing.T) {
	h := newHouse(t, FilesConfig{})
	h.put(h.in(".gitignore"), "# comment\n*.log\r\n/build/\nnode_modules\n!keep.log\n")
	h.put(h.in("sub/.gitignore"), "local\n!*.log\n")
	for _, p := range []string{"b.txt", "a/x", "x.log", "keep.log", "build/out", "sub/build/src", "sub/local", "sub/y.log", "node_modules/m/i.js", "other/local"} {
		h.put(h.in(p), "x")
	}
	h.link(h.o, "outside")
	want := ".gitignore a/x b.txt keep.log other/local sub/.gitignore sub/build/src sub/y.log"
	if got := h.walk("."); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if got := h.walk("sub"); got != "sub/.gitignore sub/build/src sub/y.log" {
		t.Errorf("from a folder: %s", got)
	}
	if got := h.walk("node_modules"); got != "node_modules/m/i.js" {
		t.Errorf("an ignored folder that was asked for: %s", got)
	}
	if got := h.walk("x.log"); got != "x.log" {
		t.Errorf("one file: %s", got)
	}
	stop := errors.New("enough")
	if err := h.files.Walk(t.Context(), ".", func(string, fs.DirEntry) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of fn: %v", err)
	}
	if err := h.files.Walk(t.Context(), ".", func(string, fs.DirEntry) error { return fs.SkipAll }); err != nil {
		t.Errorf("SkipAll: %v", err)
	}
	if err := h.files.Walk(t.Context(), "none", func(string, fs.DirEntry) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
}

func TestErrorsNameThePathAsTheModelWroteIt(t *testing.T) {
	h := newHouse(t, FilesConfig{})
	_, _, err := h.files.Read(t.Context(), "sub/none.txt", 0)
	if err == nil || !strings.Contains(err.Error(), "read sub/none.txt") || strings.Contains(err.Error(), filepath.Dir(h.w)) {
		t.Errorf("%v", err)
	}
}
