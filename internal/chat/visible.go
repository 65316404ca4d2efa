package chat

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible makes every character of verbatim text seen: control, bidirectional, zero-width and other format characters
// and invalid bytes become escapes such as \u{202e}, so that a command cannot show itself as another one. Newline and tab stay.
func Visible(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size <= 1:
			fmt.Fprintf(&b, `\x{%02x}`, s[i])
		case hidden(r):
			fmt.Fprintf(&b, `\u{%04x}`, r)
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// fillers are letters by category that render as nothing.
var fillers = map[rune]bool{0x115F: true, 0x1160: true, 0x3164: true, 0xFFA0: true, 0x034F: true, 0x17B4: true, 0x17B5: true, 0x2800: true}

func hidden(r rune) bool {
	if r == '\n' || r == '\t' || r == ' ' {
		return false
	}
	if r == unicode.ReplacementChar || fillers[r] {
		return true
	}
	// Cc controls, Cf formats (bidi, zero-width, tags), Zl and Zp line ends, and every blank that is no plain space
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Z)
}
