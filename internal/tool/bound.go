package tool

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxContent is the size in bytes of what one result may put before the model (Spec, section 3.6).
const MaxContent = 32 << 10

// Bound returns s in at most max bytes of valid UTF-8. What is too long keeps its head and its tail, with a marker between
// them that names how many bytes are missing.
func Bound(s string, max int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= max {
		return s
	}
	// The marker is measured with the largest number it can hold, so that the result never exceeds max.
	room := max - len(marker(len(s)))
	if room < 16 {
		return s[:runeStart(s, max)]
	}
	head := runeStart(s, room/2)
	tail := runeEnd(s, len(s)-(room-head))
	return s[:head] + marker(tail-head) + s[tail:]
}

func marker(n int) string { return fmt.Sprintf("\n[... %d bytes omitted ...]\n", n) }

// runeStart moves i down to a rune boundary; runeEnd moves it up.
func runeStart(s string, i int) int {
	if i <= 0 {
		return 0
	}
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

func runeEnd(s string, i int) int {
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}
