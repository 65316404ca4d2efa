package builtin

import (
	"encoding/json"
	"strings"
	"testing"

	"reasonix/internal/sandbox"
)

func TestDeleteRangeTakesWholeLinesAndGuardsItsNumbers(t *testing.T) {
	r := newRig(t, sandbox.FilesConfig{})
	r.put("f", "one\r\ntwo\r\nthree\r\nfour")
	args := func(first, last int, text string) a {
		return a{"path": "f", "first": first, "last": last, "text": text}
	}
	r.refused("delete_range", args(2, 3, "two"), "not read")
	r.ok("read_file", a{"path": "f"})
	r.refused("delete_range", args(2, 3, "three"), `line 2 is "two"`)
	r.refused("delete_range", args(3, 2, "three"), "before first")
	r.refused("delete_range", args(2, 5, "two"), "has 4 lines")
	r.refused("delete_range", args(0, 1, ""), "first")
	r.holds("f", "one\r\ntwo\r\nthree\r\nfour")
	r.ok("delete_range", args(2, 3, "two"), "deleted 2 lines of f", "-two")
	r.holds("f", "one\r\nfour")
	r.ok("delete_range", args(1, 2, "one"))
	r.holds("f", "")
	r.put("f", "changed\n")
	r.refused("delete_range", args(1, 1, "changed"), "changed since")
	r.put("b", "\x00\x01")
	r.refused("delete_range", a{"path": "b", "first": 1, "last": 1, "text": ""}, "binary")
	r.refused("delete_range", a{"path": "../x", "first": 1, "last": 1, "text": ""}, "outside")
}

const goFile = `// Package p is a test.
package p

import "fmt"

// A is first.
type A struct{ n int }

// Get gives n.
func (a *A) Get() int { return a.n } // at the end

const (
	// One is 1.
	One = 1
	Two = 2 // two
	x, y = 3, 4
)

var alone = fmt.Sprint()

func init() {}

func init() {}

// Map is generic.
func (m *M[K, V]) Map() {}

type M[K comparable, V any] struct{}
`

func TestDeleteSymbolCutsOneGoDeclaration(t *testing.T) {
	for name, want := range map[string][]string{ // what goes
		"A": {"// A is first.\ntype A struct{ n int }\n\n"}, "A.Get": {"// Get gives n.\nfunc (a *A) Get() int { return a.n } // at the end\n\n"},
		"One": {"\t// One is 1.\n\tOne = 1\n"}, "Two": {"\tTwo = 2 // two\n"}, "alone": {"var alone = fmt.Sprint()\n\n"},
		"M.Map": {"// Map is generic.\nfunc (m *M[K, V]) Map() {}\n\n"}, "M": {"\ntype M[K comparable, V any] struct{}\n"},
	} {
		r := newRig(t, sandbox.FilesConfig{})
		r.put("p.go", goFile)
		r.ok("delete_symbol", a{"path": "p.go", "name": name}, "deleted "+name)
		left := goFile
		for _, gone := range want {
			if !strings.Contains(left, gone) {
				t.Fatalf("the test itself: %q", gone)
			}
			left = strings.Replace(left, gone, "", 1)
		}
		r.holds("p.go", left)
	}
	r := newRig(t, sandbox.FilesConfig{})
	r.put("p.go", goFile)
	r.refused("delete_symbol", a{"path": "p.go", "name": "init"}, "declared 2 times")
	r.refused("delete_symbol", a{"path": "p.go", "name": "x"}, "together with x, y")
	r.refused("delete_symbol", a{"path": "p.go", "name": "Get"}, "A.Get")
	r.refused("delete_symbol", a{"path": "p.go", "name": "fmt"}, "no top-level declaration")
	r.holds("p.go", goFile)
	r.put("p.py", "def f(): pass\n")
	r.refused("delete_symbol", a{"path": "p.py", "name": "f"}, "Go files only", "delete_range")
	r.put("bad.go", "package")
	r.refused("delete_symbol", a{"path": "bad.go", "name": "f"}, "does not parse")
	r.put("one.go", "package p; type A int; type B int\n")
	r.ok("delete_symbol", a{"path": "one.go", "name": "A"})
	r.holds("one.go", "package p; type B int\n")
}

const notebook = `{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "aa",
   "metadata": {},
   "source": [
    "# <Title> & more\n",
    "text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "bb",
   "metadata": {"z": 1, "a": 2.50},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": ["old\n"]
    }
   ],
   "source": "print(1)"
  }
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
`

func TestNotebookEditChangesOneCell(t *testing.T) {
	r := newRig(t, sandbox.FilesConfig{})
	r.put("n.ipynb", notebook)
	read := func() (cells []map[string]any) {
		t.Helper()
		data, _, err := r.env.Files.Read(t.Context(), "n.ipynb", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		var book struct{ Cells []map[string]any }
		if err := json.Unmarshal(data, &book); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), "# <Title> & more") || !strings.HasSuffix(string(data), "}\n") {
			t.Errorf("the rest changed:\n%s", data)
		}
		return book.Cells
	}
	r.ok("notebook_edit", a{"path": "n.ipynb", "cell": 1, "mode": "replace", "source": "a = 1 < 2\nprint(a)\n"}, "+")
	c := read()[1]
	if c["execution_count"] != nil || len(c["outputs"].([]any)) != 0 || c["id"] != "bb" || c["source"].([]any)[1] != "print(a)\n" {
		t.Errorf("%v", c)
	}
	r.ok("notebook_edit", a{"path": "n.ipynb", "cell": 2, "mode": "insert", "cell_type": "markdown", "source": "end"})
	r.ok("notebook_edit", a{"path": "n.ipynb", "cell": 1, "mode": "insert", "source": "first()"})
	cells := read()
	if len(cells) != 4 || cells[1]["cell_type"] != "code" || cells[3]["cell_type"] != "markdown" || cells[1]["id"] == "" || cells[1]["id"] == cells[3]["id"] {
		t.Errorf("%v", cells)
	}
	r.ok("notebook_edit", a{"path": "n.ipynb", "cell": 1, "mode": "delete"})
	if cells := read(); len(cells) != 3 || cells[1]["id"] != "bb" {
		t.Errorf("%v", cells)
	}
	r.refused("notebook_edit", a{"path": "n.ipynb", "cell": 3, "mode": "delete"}, "does not exist", "3 cells")
	r.refused("notebook_edit", a{"path": "n.ipynb", "cell": 0, "mode": "replace"}, "source is missing")
	r.refused("notebook_edit", a{"path": "n.ipynb", "cell": 0, "mode": "replace", "cell_type": "code", "source": "x"}, "is of type")
	r.refused("notebook_edit", a{"path": "n.ipynb", "cell": 0, "mode": "swap", "source": "x"}, "mode")
	r.put("x.ipynb", "[]")
	r.refused("notebook_edit", a{"path": "x.ipynb", "cell": 0, "mode": "delete"}, "no notebook")
	r.put("y.ipynb", `{"cells":3}`)
	r.refused("notebook_edit", a{"path": "y.ipynb", "cell": 0, "mode": "delete"}, "no notebook")
	r.put("n.ipynb", notebook)
	r.refused("notebook_edit", a{"path": "n.ipynb", "cell": 0, "mode": "delete"}, "changed since")
}
