package builtin

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"reasonix/internal/sandbox"
	"reasonix/internal/tool"
)

func searchRig(t *testing.T) *rig {
	r := newRig(t, sandbox.FilesConfig{ForbidRead: []string{"secrets"}})
	r.put(".gitignore", "ignored\n")
	r.put("main.go", "package main\n\nfunc main() {\n\thello()\n}\n")
	r.put("lib/a_test.go", "package lib\n// hello\r\n")
	r.put("lib/deep/b.go", "package deep\n")
	r.put("ignored/x.go", "hello\n")
	r.put("secrets/k.go", "hello\n")
	r.put("bin", "hello\x00")
	return r
}

func TestLsShowsWhatIsThere(t *testing.T) {
	r := searchRig(t)
	if err := os.Symlink("main.go", filepath.Join(r.dir, "link")); err != nil {
		t.Skipf("links cannot be made here: %v", err)
	}
	out := r.ok("ls", a{}, "lib/\n", "main.go (", "link@\n", "bin (6 B)\n")
	if strings.Contains(out, "secrets") {
		t.Error("a forbidden folder is listed")
	}
	r.ok("ls", a{"path": "lib/deep"}, "b.go")
	r.refused("ls", a{"path": "secrets"}, "forbidden")
	r.refused("ls", a{"path": "Lib"}, "did you mean lib?")
	r.refused("ls", a{"path": "main.go"}, "not a folder")
	if err := os.Mkdir(filepath.Join(r.dir, "void"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.ok("ls", a{"path": "void"}, "empty")
	for i := range 1100 {
		r.put(fmt.Sprintf("many/%04d", i), "")
	}
	r.ok("ls", a{"path": "many"}, "0999 (0 B)", "(100 more of 1100)")
}

func TestGlobFindsByName(t *testing.T) {
	r := searchRig(t)
	for pattern, want := range map[string]string{
		"**/*.go": "lib/a_test.go\nlib/deep/b.go\nmain.go\n", "*.go": "lib/a_test.go\nlib/deep/b.go\nmain.go\n", "lib/*.go": "lib/a_test.go\n",
		"{main,b}.go": "lib/deep/b.go\nmain.go\n", "./lib/**": "lib/a_test.go\nlib/deep/b.go\n", "*.py": "no file matches *.py",
	} {
		if got := r.ok("glob", a{"pattern": pattern}); got != want {
			t.Errorf("%s: got %q, want %q", pattern, got, want)
		}
	}
	if got := r.ok("glob", a{"pattern": "deep/*.go", "path": "lib"}); got != "lib/deep/b.go\n" {
		t.Errorf("below a path: %q", got)
	}
	r.refused("glob", a{"pattern": "[a"}, "not valid")
	r.refused("glob", a{"pattern": "../*"}, "must be relative")
	r.refused("glob", a{"pattern": "/etc/*"}, "must be relative")
	r.refused("glob", a{"pattern": "*", "path": ".."}, "outside")
	for i := range 1100 {
		r.put(fmt.Sprintf("many/%04d.txt", i), "")
	}
	r.ok("glob", a{"pattern": "*.txt"}, "(100 more of 1100; narrow")
}

func TestGrepFindsLines(t *testing.T) {
	r := searchRig(t)
	want := "lib/a_test.go:2: // hello\nmain.go:4: \thello()\n"
	for _, args := range []a{{"pattern": "hello"}, {"pattern": "h[e]llo"}, {"pattern": "HELLO", "ignore_case": true}, {"pattern": "hello(\\(\\))?$"}} {
		if got := r.ok("grep", args); got != want {
			t.Errorf("%v: got %q", args, got)
		}
	}
	if got := r.ok("grep", a{"pattern": "hello", "glob": "*_test.go"}); got != "lib/a_test.go:2: // hello\n" {
		t.Errorf("glob: %q", got)
	}
	if got := r.ok("grep", a{"pattern": "hello", "files_only": true}); got != "lib/a_test.go\nmain.go\n" {
		t.Errorf("files only: %q", got)
	}
	if got := r.ok("grep", a{"pattern": "hello", "path": "main.go", "context": 1}); got != "main.go:3- func main() {\nmain.go:4: \thello()\nmain.go:5- }\n" {
		t.Errorf("context: %q", got)
	}
	r.ok("grep", a{"pattern": "nowhere"}, "no match for nowhere")
	r.refused("grep", a{"pattern": "a("}, "RE2")
	r.refused("grep", a{"pattern": "x", "path": "secrets"}, "forbidden")
	r.put("many", strings.Repeat("match "+strings.Repeat("x", 1000)+"\n", 500))
	r.ok("grep", a{"pattern": "match", "path": "many"}, "bytes more]", "there may be more")
}

// The literal that is looked for first never changes what is found.
func TestTheShortcutFindsWhatTheExpressionFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expr := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"ab", "a", "b+", "(ab|b)", "c*", "[bc]", "^", "$", "(?i:A)", "(ab){2}", "x?", "\\b"}),
			1, 5).Draw(t, "expr"), "")
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", "ab", "A", "\n", "\r\n", "x"})).Draw(t, "text"), "")
		re, err := regexp.Compile(expr)
		if err != nil {
			t.Skip("not an expression")
		}
		fast := finder{re, requiredLiteral(expr)}.lines([]byte(text), 1000)
		slow := finder{re, ""}.lines([]byte(text), 1000)
		if fmt.Sprint(fast) != fmt.Sprint(slow) {
			t.Fatalf("%q in %q: with %q %v, without %v", expr, text, requiredLiteral(expr), fast, slow)
		}
	})
	for expr, want := range map[string]string{"hello.*world!": "world!", "(?i)hello": "", "a|b": "", "(needle)+x": "needle", "x*": "", "foo|foobar": "foo"} {
		if got := requiredLiteral(expr); got != want {
			t.Errorf("%s demands %q, want %q", expr, got, want)
		}
	}
}

func BenchmarkGrep(b *testing.B) {
	dir := b.TempDir()
	for i := range 2000 {
		p := filepath.Join(dir, fmt.Sprintf("d%02d", i%40))
		if err := os.MkdirAll(p, 0o755); err != nil {
			b.Fatal(err)
		}
		text := strings.Repeat("some line of ordinary code in a file\n", 150)
		if err := os.WriteFile(filepath.Join(p, fmt.Sprintf("%d.go", i)), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	files, err := sandbox.NewFiles(sandbox.FilesConfig{Workspace: dir})
	if err != nil {
		b.Fatal(err)
	}
	for name, pattern := range map[string]string{"literal": `needle\w+`, "none": `[nm]eedle\w+x?`} {
		b.Run(name, func(b *testing.B) {
			g := newGrep(tool.Env{Files: files, Versions: tool.NewVersions()})
			for b.Loop() {
				if _, err := g.Execute(b.Context(), []byte(`{"pattern":"`+strings.ReplaceAll(pattern, `\`, `\\`)+`"}`)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
