package task

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// NewID returns a fresh id: the prefix, an underscore and 80 random bits in hex.
func NewID(prefix string) string {
	var b [10]byte
	_, _ = rand.Read(b[:])
	return prefix + "_" + hex.EncodeToString(b[:])
}

// Title is the first line of a request, at most 80 characters.
func Title(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if utf8.RuneCountInString(line) <= 80 {
		return line
	}
	r := []rune(line)
	return strings.TrimSpace(string(r[:79])) + "…"
}
