package console

import (
	"fmt"
	"html"
	"html/template"
	"strings"
	"unicode"
	"unicode/utf8"
)

// names of the hidden characters that are met most often in attacks; others show their code point alone.
var names = map[rune]string{
	0x00: "NULL", 0x07: "BELL", 0x08: "BACKSPACE", 0x0d: "CARRIAGE RETURN", 0x1b: "ESCAPE", 0x7f: "DELETE",
	0xa0: "NO-BREAK SPACE", 0xad: "SOFT HYPHEN", 0x200b: "ZERO WIDTH SPACE", 0x200c: "ZERO WIDTH NON-JOINER",
	0x200d: "ZERO WIDTH JOINER", 0x200e: "LEFT-TO-RIGHT MARK", 0x200f: "RIGHT-TO-LEFT MARK",
	0x202a: "LEFT-TO-RIGHT EMBEDDING", 0x202b: "RIGHT-TO-LEFT EMBEDDING", 0x202c: "POP DIRECTIONAL FORMATTING",
	0x202d: "LEFT-TO-RIGHT OVERRIDE", 0x202e: "RIGHT-TO-LEFT OVERRIDE", 0x2060: "WORD JOINER",
	0x2066: "LEFT-TO-RIGHT ISOLATE", 0x2067: "RIGHT-TO-LEFT ISOLATE", 0x2068: "FIRST STRONG ISOLATE",
	0x2069: "POP DIRECTIONAL ISOLATE", 0x3164: "HANGUL FILLER", 0xfeff: "BYTE ORDER MARK",
}

// hides tells whether a character is invisible, moves others, or passes for a plain space.
func hides(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == ' ':
		return false
	case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r), unicode.Is(unicode.Zs, r):
		return true
	case unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	}
	return r == 0x2800 // a Braille cell without dots
}

// joins tells whether a hiding character belongs to ordinary prose: emoji sequences and typographic spaces.
func joins(r rune) bool {
	return r == 0x200d || r == 0x200c || r == 0xfe0f || unicode.Is(unicode.Zs, r)
}

func escaped(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// visible renders verbatim text so that nothing in it can hide: what is invisible or moves text becomes a marked escape.
func visible(s string) template.HTML {
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	plain := 0
	flush := func(to int) { b.WriteString(html.EscapeString(s[plain:to])) }
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		bad := r == utf8.RuneError && size == 1
		if !bad && !hides(r) {
			i += size
			continue
		}
		flush(i)
		text, title := escaped(r), strings.TrimSpace(fmt.Sprintf("U+%04X %s", r, names[r]))
		if bad {
			text, title = fmt.Sprintf(`\x%02x`, s[i]), "byte that is no UTF-8"
		}
		fmt.Fprintf(&b, `<span class="esc" title="%s">%s</span>`, title, text)
		i += size
		plain = i
	}
	flush(len(s))
	return template.HTML(b.String()) // every part is escaped above
}

// hidden counts the characters that visible would mark.
func hidden(s string) int {
	n := 0
	for i, r := range s {
		if hides(r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			n++
		}
	}
	return n
}

// prose replaces in running text what could reorder or hide it, and leaves emoji and typographic spaces alone.
func prose(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(strings.ReplaceAll(s, "\r\n", "\n"), "\uFFFD") {
		if hides(r) && !joins(r) {
			b.WriteString(escaped(r))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// line is prose on one line, cut to n characters.
func line(s string, n int) string {
	s = strings.Join(strings.Fields(prose(s)), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
