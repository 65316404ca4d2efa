package console

import (
	"fmt"
	"strings"
)

const maxDiffLines = 3000

// diffFile is one file of a unified diff, ready to be drawn.
type diffFile struct {
	Name           string
	Added, Removed int
	Lines          []diffLine
}

// diffLine is one drawn line; a number of 0 is not shown.
type diffLine struct {
	Class    string // hunk, add, del, same, meta
	Old, New int
	Text     string
}

// diffView is a whole diff; Cut counts the lines left out of the page.
type diffView struct {
	Files          []diffFile
	Added, Removed int
	Cut            int
}

// readDiff reads git's unified format. Inside a hunk the announced counts decide, so that content like "--- x" stays content.
func readDiff(text string) diffView {
	r := diffReader{}
	for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if text != "" {
			r.line(l)
		}
	}
	for i := range r.view.Files {
		r.view.Added += r.view.Files[i].Added
		r.view.Removed += r.view.Files[i].Removed
	}
	return r.view
}

type diffReader struct {
	view             diffView
	oldLeft, newLeft int
	old, new         int
	shown            int
	headless         bool // the file came from "--- a/x" without a git header
}

func (r *diffReader) line(l string) {
	if r.oldLeft > 0 || r.newLeft > 0 {
		r.content(l)
		return
	}
	switch {
	case strings.HasPrefix(l, "diff --git "):
		r.open(gitName(l))
		r.headless = false
	case strings.HasPrefix(l, "--- "):
		if len(r.view.Files) == 0 || r.headless {
			r.open(strings.TrimPrefix(trimName(l[4:]), "a/"))
			r.headless = true
		}
	case strings.HasPrefix(l, "+++ "):
		if name := trimName(l[4:]); name != "/dev/null" {
			r.file().Name = strings.TrimPrefix(name, "b/")
		}
	case strings.HasPrefix(l, "@@ "):
		r.hunk(l)
	case strings.HasPrefix(l, "index "), l == "":
	default:
		r.add(diffLine{Class: "meta", Text: l})
	}
}

func (r *diffReader) hunk(l string) {
	var o, n string
	if _, err := fmt.Sscanf(l, "@@ -%s +%s @@", &o, &n); err != nil {
		r.add(diffLine{Class: "meta", Text: l})
		return
	}
	r.old, r.oldLeft = span(o)
	r.new, r.newLeft = span(n)
	r.add(diffLine{Class: "hunk", Text: l})
}

func (r *diffReader) content(l string) {
	switch {
	case strings.HasPrefix(l, "+"):
		r.file().Added++
		r.add(diffLine{Class: "add", New: r.new, Text: l[1:]})
		r.new, r.newLeft = r.new+1, r.newLeft-1
	case strings.HasPrefix(l, "-"):
		r.file().Removed++
		r.add(diffLine{Class: "del", Old: r.old, Text: l[1:]})
		r.old, r.oldLeft = r.old+1, r.oldLeft-1
	case strings.HasPrefix(l, `\`):
		r.add(diffLine{Class: "meta", Text: l})
	default:
		r.add(diffLine{Class: "same", Old: r.old, New: r.new, Text: strings.TrimPrefix(l, " ")})
		r.old, r.oldLeft, r.new, r.newLeft = r.old+1, r.oldLeft-1, r.new+1, r.newLeft-1
	}
}

func (r *diffReader) open(name string) { r.view.Files = append(r.view.Files, diffFile{Name: name}) }

func (r *diffReader) file() *diffFile {
	if len(r.view.Files) == 0 {
		r.open("changes")
	}
	return &r.view.Files[len(r.view.Files)-1]
}

func (r *diffReader) add(l diffLine) {
	if r.shown >= maxDiffLines {
		r.view.Cut++
		return
	}
	r.shown++
	f := r.file()
	f.Lines = append(f.Lines, l)
}

// span reads "12,3" as start 12 and 3 lines; a missing count is 1.
func span(s string) (start, count int) {
	count = 1
	if n, _ := fmt.Sscanf(s, "%d,%d", &start, &count); n == 0 {
		return 0, 0
	}
	return start, max(count, 0)
}

func gitName(l string) string {
	_, name, ok := cutLast(strings.TrimPrefix(l, "diff --git "), " b/")
	if !ok {
		return strings.TrimPrefix(l, "diff --git ")
	}
	return name
}

func trimName(s string) string {
	name, _, _ := strings.Cut(s, "\t")
	return strings.Trim(name, `"`)
}
