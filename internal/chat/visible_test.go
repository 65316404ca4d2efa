package chat_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"reasonix/internal/chat"
)

func TestVisibleShowsWhatWouldHide(t *testing.T) {
	cases := map[string]string{
		"go test ./...\n\tok":        "go test ./...\n\tok",
		"rm \u202e/tmp\u202c":        `rm \u{202e}/tmp\u{202c}`,
		"a\u200bb\ufeff":             `a\u{200b}b\u{feff}`,
		"clear\x1b[2J\rinnocent":     `clear\u{001b}[2J\u{000d}innocent`,
		"bad\xff":                    `bad\x{ff}`,
		"non\u00a0breaking\u3164":    `non\u{00a0}breaking\u{3164}`,
		"tag\U000e0041 line\u2028up": `tag\u{e0041} line\u{2028}up`,
		"Grüße 世界 👍":                 "Grüße 世界 👍",
		"`backticks` <b> & *stars*":  "`backticks` <b> & *stars*",
	}
	for in, want := range cases {
		if got := chat.Visible(in); got != want {
			t.Errorf("Visible(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("rm -rf \u202e")
	f.Fuzz(func(t *testing.T, s string) {
		got := chat.Visible(s)
		if !utf8.ValidString(got) {
			t.Fatalf("not valid UTF-8: %q", got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool {
			return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf)
		}); i >= 0 {
			t.Fatalf("still hidden at %d: %q", i, got)
		}
		if chat.Visible(got) != got {
			t.Fatal("not stable")
		}
	})
}

func TestTallyCountsByReasonWithinABound(t *testing.T) {
	var tally chat.Tally
	if tally.String() != "nothing" {
		t.Fatalf("a new tally says %q", tally.String())
	}
	tally.Count("own message")
	tally.Count("own message")
	tally.Count("edited")
	if got, want := tally.String(), "edited: 1, own message: 2"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range 1000 {
		tally.Count(strings.Repeat("x", i))
	}
	if n := strings.Count(tally.String(), ","); n > 70 {
		t.Fatalf("%d reasons are kept apart", n)
	}
}
