package console

import (
	"strings"
	"testing"
)

func TestADiffIsDrawnLineByLine(t *testing.T) {
	v := readDiff(fixedDiff)
	if len(v.Files) != 1 || v.Files[0].Name != "money/round.go" || v.Added != 5 || v.Removed != 2 || v.Cut != 0 {
		t.Fatalf("%+v", v)
	}
	var del, add diffLine
	for _, l := range v.Files[0].Lines {
		if l.Class == "del" {
			del = l
		}
		if l.Class == "add" {
			add = l
		}
	}
	if del.Old != 16 || del.New != 0 || add.New != 19 || add.Old != 0 {
		t.Errorf("numbers: %+v %+v", del, add)
	}
}

func TestDiffsOfEveryShape(t *testing.T) {
	for _, c := range []struct {
		name, diff string
		files      string
		add, del   int
	}{
		{"nothing", "", "", 0, 0},
		{"a new file", "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n", "new", 1, 0},
		{"a removed file", "diff --git a/old b/old\ndeleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "old", 0, 1},
		{"content that looks like a header", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n--- a/x\n-y\n+++ b/x\n+diff --git a/q b/q\n", "f", 2, 2},
		{"two files without git", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", "f g", 2, 2},
		{"a binary", "diff --git a/p.png b/p.png\nindex 1..2 100644\nBinary files a/p.png and b/p.png differ\n", "p.png", 0, 0},
		{"a rename", "diff --git a/a b c b/d e\nsimilarity index 100%\nrename from a b c\nrename to d e\n", "d e", 0, 0},
		{"no newline at the end", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", "f", 1, 1},
		{"no diff at all", "hello\n@@ nonsense", "changes", 0, 0},
	} {
		v := readDiff(c.diff)
		var names []string
		for _, f := range v.Files {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, " "); got != c.files || v.Added != c.add || v.Removed != c.del {
			t.Errorf("%s: files %q +%d -%d, want %q +%d -%d", c.name, got, v.Added, v.Removed, c.files, c.add, c.del)
		}
	}
}

func TestAHugeDiffIsCutAndSaysSo(t *testing.T) {
	v := readDiff("--- a/f\n+++ b/f\n@@ -0,0 +1,9000 @@\n" + strings.Repeat("+x\n", 9000))
	if v.Added != 9000 || v.Cut != 9001-maxDiffLines {
		t.Errorf("added %d, cut %d", v.Added, v.Cut)
	}
}

func FuzzReadDiff(f *testing.F) {
	f.Add(fixedDiff)
	f.Add("@@ -1,99999999999999999999 +1 @@\n-x")
	f.Fuzz(func(t *testing.T, s string) {
		v := readDiff(s)
		n := v.Cut
		for _, file := range v.Files {
			n += len(file.Lines)
		}
		if n > strings.Count(s, "\n")+1 {
			t.Fatalf("%d lines out of %q", n, s)
		}
	})
}
