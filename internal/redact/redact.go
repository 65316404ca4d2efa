// Package redact masks secrets before anything reaches a transcript, a log, a platform or a published diff.
package redact

import (
	"sort"
	"strings"
)

// MinLength is the shortest value in bytes that is masked; shorter ones would mask ordinary words.
const MinLength = 6

// Redactor masks the values that the host knows: plain, base64 (standard and URL alphabet, at every alignment inside a larger
// text), URL-encoded, JSON- and HTML-escaped, and as hex. It is immutable and safe for concurrent use; a nil Redactor masks nothing.
type Redactor struct {
	patterns []pattern          // longest first
	starts   map[byte][]pattern // the same by first byte
	longest  int
}

type pattern struct{ text, mask string }

// New knows the values by the name that stands in the mask, such as the name of the variable. Values shorter than MinLength are ignored.
func New(values map[string]string) *Redactor {
	r := &Redactor{starts: map[byte][]pattern{}}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	sort.Strings(names)
	known := map[string]bool{}
	for _, name := range names {
		for _, form := range forms(values[name]) {
			if known[form] {
				continue
			}
			known[form] = true
			r.patterns = append(r.patterns, pattern{form, "[redacted:" + name + "]"})
			r.longest = max(r.longest, len(form))
		}
	}
	sort.SliceStable(r.patterns, func(i, j int) bool { return len(r.patterns[i].text) > len(r.patterns[j].text) })
	for _, p := range r.patterns {
		r.starts[p.text[0]] = append(r.starts[p.text[0]], p)
	}
	return r
}

// String returns s with every known value masked.
func (r *Redactor) String(s string) string {
	if r == nil {
		return s
	}
	return apply(s, r.find(s))
}

// Bytes is String for bytes; the result may share b's memory when nothing was masked.
func (r *Redactor) Bytes(b []byte) []byte {
	if r == nil {
		return b
	}
	s := string(b)
	spans := r.find(s)
	if len(spans) == 0 {
		return b
	}
	return []byte(apply(s, spans))
}

// Holds tells whether s contains a known value.
func (r *Redactor) Holds(s string) bool { return r != nil && len(r.find(s)) > 0 }

// span is a part of a text that is masked.
type span struct {
	from, to int
	mask     string
}

// find returns the parts to mask in order. Overlapping finds become one part: a mask must not leave the rest of another
// secret standing.
func (r *Redactor) find(s string) []span {
	var all []span
	for _, p := range r.patterns {
		for at := 0; ; {
			i := strings.Index(s[at:], p.text)
			if i < 0 {
				break
			}
			all = append(all, span{at + i, at + i + len(p.text), p.mask})
			at += i + 1
		}
	}
	sort.SliceStable(all, func(i, j int) bool {
		if all[i].from != all[j].from {
			return all[i].from < all[j].from
		}
		return all[i].to > all[j].to
	})
	out := all[:0]
	for _, a := range all {
		if n := len(out); n > 0 && a.from < out[n-1].to {
			out[n-1].to = max(out[n-1].to, a.to)
			continue
		}
		out = append(out, a)
	}
	return out
}

func apply(s string, spans []span) string {
	if len(spans) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for _, m := range spans {
		b.WriteString(s[at:m.from])
		b.WriteString(m.mask)
		at = m.to
	}
	b.WriteString(s[at:])
	return b.String()
}
