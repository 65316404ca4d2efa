package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The hard sizes. Advice is 400 lines a file and 60 a function.
const (
	maxFileLines = 600
	maxFuncLines = 100
)

// tooLong lists what may be longer, with the reason.
var tooLong = map[string]string{}

// refused are names that hide what is inside.
var refused = []string{"util", "utils", "common", "helpers", "models", "core", "manager", "engine", "base", "misc"}

type source struct {
	pkg  string // slash path from the module's root
	file string
	test bool
	tree *ast.File
}

func TestImportsPointOneWay(t *testing.T) {
	ranks := readRanks(t)
	for _, s := range sources(t) {
		if s.test || free(s.pkg) {
			continue
		}
		if _, ok := ranks[s.pkg]; !ok {
			t.Errorf("%s: package %s is not in the list of docs/ARCHITECTURE.md", s.file, s.pkg)
			continue
		}
		for _, imp := range imports(s) {
			checkImport(t, ranks, s, imp)
		}
	}
}

func checkImport(t *testing.T, ranks map[string]int, s source, imp string) {
	t.Helper()
	switch {
	case free(imp):
		t.Errorf("%s imports %s, which only tests may import", s.file, imp)
	case strings.HasPrefix(s.pkg, "adapters/"):
		if imp != "internal/chat" && imp != "internal/redact" && imp != "internal/netclient" {
			t.Errorf("%s: an adapter imports of the house only chat, redact and netclient, not %s", s.file, imp)
		}
	case imp == s.pkg:
	default:
		at, ok := ranks[imp]
		if !ok || at >= ranks[s.pkg] {
			t.Errorf("%s: %s may import only what stands above it in docs/ARCHITECTURE.md, and %s does not", s.file, s.pkg, imp)
		}
	}
}

func TestOnlyTestsReachTheDoublesAndNobodyReachesCmd(t *testing.T) {
	for _, s := range sources(t) {
		for _, imp := range imports(s) {
			if strings.HasPrefix(imp, "cmd/") {
				t.Errorf("%s imports %s; a command is nobody's library", s.file, imp)
			}
		}
	}
}

func TestEveryPackageOnTheMapExists(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		seen[s.pkg] = true
	}
	for pkg := range readRanks(t) {
		if !seen[pkg] {
			t.Errorf("docs/ARCHITECTURE.md lists %s, and there is no such package", pkg)
		}
	}
}

func TestFilesAndFunctionsStayReadable(t *testing.T) {
	set := token.NewFileSet()
	used := map[string]bool{}
	for _, s := range sources(t) {
		if s.test || free(s.pkg) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root(t), s.file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(data), "\n"); n > maxFileLines && !excused(used, s.file) {
			t.Errorf("%s has %d lines, the limit is %d", s.file, n, maxFileLines)
		}
		tree, err := parser.ParseFile(set, s.file, data, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1
			if n > maxFuncLines && !excused(used, s.file+":"+f.Name.Name) {
				t.Errorf("%s: %s has %d lines, the limit is %d", s.file, f.Name.Name, n, maxFuncLines)
			}
		}
	}
	for name := range tooLong {
		if !used[name] {
			t.Errorf("%s is excused for its length and no longer needs to be", name)
		}
	}
}

func excused(used map[string]bool, name string) bool {
	_, ok := tooLong[name]
	used[name] = ok
	return ok
}

func TestEveryPackageSaysInOneSentenceWhatItIs(t *testing.T) {
	doc := map[string]string{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		if _, ok := doc[s.pkg]; !ok {
			doc[s.pkg] = ""
		}
		if s.tree.Doc != nil {
			doc[s.pkg] = s.tree.Doc.Text()
		}
	}
	for pkg, text := range doc {
		if text == "" {
			t.Errorf("package %s has no doc", pkg)
		}
		for _, part := range strings.Split(pkg, "/") {
			if slices.Contains(refused, part) {
				t.Errorf("package %s: the name %q hides what is inside", pkg, part)
			}
		}
	}
}

// free packages may import everything, and only tests and each other import them.
func free(pkg string) bool {
	return strings.HasPrefix(pkg, "internal/testkit") || (strings.HasSuffix(pkg, "test") && strings.HasPrefix(pkg, "internal/")) || pkg == "internal/layout"
}

func imports(s source) []string {
	var out []string
	for _, i := range s.tree.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err == nil && strings.HasPrefix(path, "reasonix/") {
			out = append(out, strings.TrimPrefix(path, "reasonix/"))
		}
	}
	return out
}

func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	set := token.NewFileSet()
	err := filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root(t) || d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		tree, err := parser.ParseFile(set, path, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return fmt.Errorf("parse %s: %w", path, err)
		}
		rel, err := filepath.Rel(root(t), path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		out = append(out, source{pkg: strings.TrimSuffix(rel[:max(0, strings.LastIndex(rel, "/"))], "/"), file: rel, test: strings.HasSuffix(rel, "_test.go"), tree: tree})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("only %d Go files found: this test looks at the wrong place", len(out))
	}
	return out
}

func readRanks(t *testing.T) map[string]int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root(t), "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(data), "<!-- layout:begin -->")
	list, _, ok2 := strings.Cut(rest, "<!-- layout:end -->")
	if !ok || !ok2 {
		t.Fatal("docs/ARCHITECTURE.md has no layout list")
	}
	ranks := map[string]int{}
	for _, line := range strings.Split(list, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "```") {
			continue
		}
		if _, dup := ranks[line]; dup {
			t.Fatalf("%s is listed twice", line)
		}
		ranks[line] = len(ranks)
	}
	return ranks
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(filepath.Dir(dir))
}
