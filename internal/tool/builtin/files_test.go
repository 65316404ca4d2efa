package builtin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/sandbox"
	"reasonix/internal/tool"
)

func TestReadingShowsNumberedLinesAndSaysHowToGoOn(t *testing.T) {
	r := newRig(t, sandbox.FilesConfig{})
	var text strings.Builder
	for i := 1; i <= 5000; i++ {
		fmt.Fprintf(&text, "l%d\r\n", i)
	}
	r.put("big.txt", "\uFEFF"+text.String())
	r.put("empty", "")
	r.put("long", strings.Repeat("é", 3000)+"\n")
	r.put("bin", "a\x00b")
	r.put("wide", strings.Repeat(strings.Repeat("w", 1900)+"\n", 100))
	out := r.ok("read_file", a{"path": "big.txt"}, "     1\tl1\n", "go on with offset 2001")
	if strings.Contains(out, "\r") || strings.Contains(out, "\uFEFF") {
		t.Error("line endings or the byte order mark are shown")
	}
	r.ok("read_file", a{"path": "big.txt", "offset": 4999, "limit": 10}, "  4999\tl4999\n  5000\tl5000\n")
	r.ok("read_file", a{"path": "big.txt", "offset": 2, "limit": 1}, "     2\tl2\n", "lines 2 to 2 of 5000; go on with offset 3")
	r.ok("read_file", a{"path": "empty"}, "empty")
	r.ok("read_file", a{"path": "long"}, "bytes more")
	r.ok("read_file", a{"path": "bin"}, "binary file of 3 B")
	r.ok("read_file", a{"path": "wide"}, "go on with offset 17")
	r.refused("read_file", a{"path": "big.txt", "offset": 5001}, "5000 lines")
	r.refused("read_file", a{"path": "Big.md"}, "did you mean big.txt?")
	r.refused("read_file", a{"path": "."}, "folder", "use ls")
	r.refused("read_file", a{"path": "../x"}, "outside")
}

func TestAHugeFileIsRefusedAtOnce(t *testing.T) {
	r := newRig(t, sandbox.FilesConfig{})
	r.put("sparse", "")
	if err := os.Truncate(filepath.Join(r.dir, "sparse"), 10<<30); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	r.refused("read_file", a{"path": "sparse"}, "too large", "grep")
	r.refused("write_file", a{"path": "sparse", "content": ""}, "too large")
	r.ok("grep", a{"pattern": "x"}, "no match", "1 file left out")
}

func TestEditingChangesExactlyOnePlaceOrExplains(t *testing.T) {
	r := newRig(t, sandbox.FilesConfig{})
	r.put("f.go", "package f\n\nfunc add(a, b int) int {\n\treturn a - b\n}\n\nfunc sub(a, b int) int {\n\treturn a - b\n}\n")
	r.ok("read_file", a{"path": "f.go"})
	r.refused("edit_file", a{"path": "f.go", "old_string": "return a - b", "new_string": "return a + b"}, "2 times (lines 4, 8)", "replace_all")
	r.ok("edit_file", a{"path": "f.go", "old_string": "func add(a, b int) int {\n\treturn a - b", "new_string": "func add(a, b int) int {\n\treturn a + b"},
		"1 replacement", "-\treturn a - b", "+\treturn a + b")
	r.ok("edit_file", a{"path": "f.go", "old_string": "int", "new_string": "int64", "replace_all": true}, "4 replacements")
	r.holds("f.go", "package f\n\nfunc add(a, b int64) int64 {\n\treturn a + b\n}\n\nfunc sub(a, b int64) int64 {\n\treturn a - b\n}\n")
	for old, want := range map[string]string{
		"func add(a, b int64) int64  {":               "nearest line is 3",
		"    return a + b":                            "line 4 differs only in white space",
		"func sub(a, b int64) int64 {\n\treturn b":    "line 7 is its first line",
		"something else entirely, zzz qqq":            "no line comes near it",
		" \n ":                                        "only white space",
		"package f\n":                                 "the same",
		"func sub(x, y int64) int64 { return x * y }": "nearest line is 7",
	} {
		new := "x"
		if want == "the same" {
			new = old
		}
		r.refused("edit_file", a{"path": "f.go", "old_string": old, "new_string": new}, want)
	}
	r.refused("edit_file", a{"path": "none.go", "old_string": "a", "new_string": "b"}, "no such file")
	r.put("bin", "a\x00b")
	r.refused("edit_file", a{"path": "bin", "old_string": "a", "new_string": "b"}, "binary")
}

func TestMultiEditIsAllOrNothing(t *testing.T) {
	r := newRig(t, sandbox.FilesConfig{})
	r.put("f", "one two three\n")
	edit := func(pairs ...string) a {
		var edits []a
		for i := 0; i < len(pairs); i += 2 {
			edits = append(edits, a{"old_string": pairs[i], "new_string": pairs[i+1]})
		}
		return a{"path": "f", "edits": edits}
	}
	r.refused("multi_edit", edit("one", "1", "four", "4"), "edit 2 of 2", "nothing was changed")
	r.holds("f", "one two three\n")
	r.refused("multi_edit", edit("one", "1", "1", "one"), "cancel each other out")
	r.ok("multi_edit", edit("one", "two", "two two", "2 2"), "2 replacements")
	r.holds("f", "2 2 three\n")
}

func TestLineEndingsAndModeSurviveAnEdit(t *testing.T) {
	r := newRig(t, sandbox.FilesConfig{})
	r.put("dos.txt", "a\r\nb\r\nc\r\n")
	if err := os.Chmod(filepath.Join(r.dir, "dos.txt"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.ok("edit_file", a{"path": "dos.txt", "old_string": "a\nb", "new_string": "x\ny\nz"})
	r.holds("dos.txt", "x\r\ny\r\nz\r\nc\r\n")
	r.ok("edit_file", a{"path": "dos.txt", "old_string": "c\r\n", "new_string": "d\r\n"})
	r.holds("dos.txt", "x\r\ny\r\nz\r\nd\r\n")
	if fi, err := os.Stat(filepath.Join(r.dir, "dos.txt")); err != nil || fi.Mode().Perm() != 0o755 {
		t.Errorf("mode %v %v", fi.Mode(), err)
	}
}

func TestAFileThatSomebodyElseChangedIsNotOverwritten(t *testing.T) {
	r := newRig(t, sandbox.FilesConfig{})
	r.put("f", "mine\n")
	r.ok("read_file", a{"path": "f"})
	r.put("f", "theirs and mine\n")
	for name, args := range map[string]a{
		"edit_file":  {"path": "./f", "old_string": "mine", "new_string": "x"},
		"multi_edit": {"path": "f", "edits": []a{{"old_string": "mine", "new_string": "x"}}},
		"write_file": {"path": "f", "content": "x"},
	} {
		r.refused(name, args, "changed since it was read", "read it again")
	}
	r.holds("f", "theirs and mine\n")
	r.ok("read_file", a{"path": "f"})
	r.ok("edit_file", a{"path": "f", "old_string": "theirs and ", "new_string": ""})
	r.ok("edit_file", a{"path": "f", "old_string": "mine", "new_string": "own"}) // its own edit is no change by others
	r.ok("write_file", a{"path": "f", "content": "whole\n"}, "replaced f (1 line, before 1)")
	r.ok("write_file", a{"path": "f", "content": "whole\n"}, "nothing was written")
	r.holds("f", "whole\n")
}

func TestWritingCreatesButDoesNotReplaceTheUnread(t *testing.T) {
	r := newRig(t, sandbox.FilesConfig{})
	r.put("old", "old\n")
	r.ok("write_file", a{"path": "new/deep/f", "content": "a\nb"}, "created new/deep/f (2 lines)")
	r.ok("write_file", a{"path": "new/deep/f", "content": "c"}, "replaced") // it wrote the file itself
	r.refused("write_file", a{"path": "old", "content": "x"}, "read it first")
	r.refused("write_file", a{"path": "new", "content": "x"}, "folder")
	r.refused("write_file", a{"path": ".git/config", "content": "x"}, "protected")
	r.refused("write_file", a{"path": "../out", "content": "x"}, "outside")
	r.refused("write_file", a{"path": "f", "content": "x", "disable_sandbox": true}, "unknown field") // S52
	r.ok("edit_file", a{"path": "old", "old_string": "old", "new_string": "new"})                     // an exact match proves knowledge
	r.holds("old", "new\n")
}

func TestAContinuedTaskKnowsWhatItHadReadElsewhere(t *testing.T) {
	first := newRig(t, sandbox.FilesConfig{})
	first.put("f", "text\n")
	first.put("sub/g", "text\n")
	first.ok("read_file", a{"path": "f"})
	first.ok("read_file", a{"path": "sub/g"})
	first.ok("move_file", a{"source_path": "f", "destination_path": "h"})
	second := newRig(t, sandbox.FilesConfig{}) // another folder, as on another host
	second.put("h", "text\n")
	second.put("f", "somebody's\n")
	second.put("sub/g", "changed\n")
	for _, n := range first.notes {
		if n.kind != tool.NoteSeen {
			t.Errorf("a note of kind %s", n.kind)
			continue
		}
		if err := second.env.Versions.Recall(n.data); err != nil {
			t.Fatal(err)
		}
	}
	second.ok("write_file", a{"path": "h", "content": "new\n"}, "replaced")
	second.refused("write_file", a{"path": "f", "content": "x"}, "read it first")
	second.refused("write_file", a{"path": "sub/g", "content": "x"}, "changed since it was read")
}

func TestMovingKeepsWhatIsKnownAndNamesBothEnds(t *testing.T) {
	r := newRig(t, sandbox.FilesConfig{})
	r.put("f", "text\n")
	r.put("g", "text\n")
	r.ok("read_file", a{"path": "f"})
	r.refused("move_file", a{"source_path": "f", "destination_path": "g"}, "exists already")
	r.refused("move_file", a{"source_path": "F.md", "destination_path": "x"}, "did you mean f?")
	r.ok("move_file", a{"source_path": "f", "destination_path": "sub/h"}, "moved f to sub/h")
	r.ok("write_file", a{"path": "sub/h", "content": "x"}, "replaced")
	m, _ := r.reg.Get("move_file")
	if got := m.(tool.Pather).Paths([]byte(`{"source_path":"a","destination_path":"b"}`)); fmt.Sprint(got) != "[a b]" {
		t.Errorf("paths %v", got)
	}
	w, _ := r.reg.Get("ls")
	if got := w.(tool.Pather).Paths([]byte(`{}`)); fmt.Sprint(got) != "[.]" {
		t.Errorf("paths of ls %v", got)
	}
}

func TestAPlanReadsButDoesNotWrite(t *testing.T) {
	r := newRig(t, sandbox.FilesConfig{ReadOnly: true})
	r.put("f", "x\n")
	r.ok("read_file", a{"path": "f"})
	for name, args := range map[string]a{
		"edit_file": {"path": "f", "old_string": "x", "new_string": "y"}, "write_file": {"path": "n", "content": ""},
		"move_file": {"source_path": "f", "destination_path": "g"},
	} {
		decoded, err := r.reg.Decode(name, toJSON(t, args))
		if err != nil {
			t.Fatal(err)
		}
		tl, _ := r.reg.Get(name)
		if _, err := tl.Execute(t.Context(), decoded); !errors.Is(err, tool.ErrReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
