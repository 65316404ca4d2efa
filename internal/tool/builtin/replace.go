package builtin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"reasonix/internal/tool"
)

// change is one replacement, as edit_file and multi_edit take it.
type change struct {
	Old string `json:"old_string"`
	New string `json:"new_string"`
	All bool   `json:"replace_all"`
}

// apply replaces in text and tells how often. The line endings of the file are kept, whatever the model wrote.
func (c change) apply(text string) (string, int, error) {
	if c.Old == "" {
		return "", 0, errors.New("old_string is empty: to create a file or to replace all of it use write_file")
	}
	if c.Old == c.New {
		return "", 0, errors.New("old_string and new_string are the same: nothing would change")
	}
	from, to := c.Old, c.New
	if usesCRLF(text) {
		to = toCRLF(to)
		if crlf := toCRLF(from); strings.Contains(text, crlf) {
			from = crlf
		}
	}
	n := strings.Count(text, from)
	switch {
	case n == 0:
		return "", 0, errors.New(notFound(text, c.Old))
	case n > 1 && !c.All:
		return "", 0, fmt.Errorf("old_string appears %d times (lines %s): add lines around it until it is unique, or set replace_all",
			n, linesOf(text, from))
	}
	return strings.ReplaceAll(text, from, to), n, nil
}

// linesOf names the lines where s starts, at most eight.
func linesOf(text, s string) string {
	var out []string
	for at := 0; ; {
		i := strings.Index(text[at:], s)
		if i < 0 {
			break
		}
		at += i
		if len(out) == 8 {
			out = append(out, "…")
			break
		}
		out = append(out, fmt.Sprint(1+strings.Count(text[:at], "\n")))
		at += len(s)
	}
	return strings.Join(out, ", ")
}

// notFound explains a mismatch with the line of the file that comes nearest to the first telling line of old.
func notFound(text, old string) string {
	const plain = "old_string is not in the file"
	wanted := ""
	for _, l := range strings.Split(old, "\n") {
		if strings.TrimSpace(l) != "" {
			wanted = strings.TrimSuffix(l, "\r")
			break
		}
	}
	if wanted == "" {
		return plain + ": it holds only white space; add a line with text"
	}
	best, at, line := 0.0, 0, ""
	for i, l := range splitLines(text) {
		if i > 50_000 {
			break
		}
		if s := alike(l, wanted); s > best {
			best, at, line = s, i+1, l
		}
	}
	switch {
	case best < 0.5:
		return plain + ", and no line comes near it: read the file again"
	case line == wanted && strings.Contains(old, "\n"):
		return fmt.Sprintf("%s: line %d is its first line, but a later line differs: read the file from there", plain, at)
	case strings.TrimSpace(line) == strings.TrimSpace(wanted):
		return fmt.Sprintf("%s: line %d differs only in white space: %q, not %q", plain, at, shorten(line, 200), shorten(wanted, 200))
	default:
		return fmt.Sprintf("%s: the nearest line is %d: %q", plain, at, shorten(line, 200))
	}
}

// alike compares two lines by their pairs of bytes: 1 is equal but for the ends' white space, 0 has nothing in common.
func alike(a, b string) float64 {
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	if a == b {
		return 1
	}
	const most = 400
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
	if len(a) < 2 || len(b) < 2 {
		return 0
	}
	pairs := map[string]int{}
	for i := 0; i+2 <= len(a); i++ {
		pairs[a[i:i+2]]++
	}
	common := 0
	for i := 0; i+2 <= len(b); i++ {
		if pairs[b[i:i+2]] > 0 {
			pairs[b[i:i+2]]--
			common++
		}
	}
	return 0.999 * 2 * float64(common) / float64(len(a)+len(b)-2)
}

// difference shows what an edit did, bounded.
func difference(path, before, after string) string {
	const most = 4 << 10
	d := udiff.Unified(path, path, before, after)
	if _, body, ok := strings.Cut(d, "@@"); ok {
		d = "@@" + body // the two file lines say nothing new
	}
	return tool.Bound(d, most)
}
