package tool

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestBoundKeepsHeadAndTailAndSaysWhatIsMissing(t *testing.T) {
	s := "HEAD" + strings.Repeat("x", 100_000) + "TAIL"
	got := Bound(s, MaxContent)
	if !strings.HasPrefix(got, "HEAD") || !strings.HasSuffix(got, "TAIL") || len(got) > MaxContent {
		t.Fatalf("%d bytes, %q … %q", len(got), got[:10], got[len(got)-10:])
	}
	if !strings.Contains(got, "bytes omitted") {
		t.Fatal("nothing says that bytes are missing")
	}
	if Bound("short", MaxContent) != "short" {
		t.Fatal("a short text was changed")
	}
}

func TestBoundIsAlwaysValidTextWithinTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		max := rapid.IntRange(0, 300).Draw(t, "max")
		got := Bound(s, max)
		if len(got) > max || !utf8.ValidString(got) {
			t.Fatalf("limit %d: %d bytes, valid %v", max, len(got), utf8.ValidString(got))
		}
	})
}

func TestVersionsComeBackFromTheNotesOfAnEarlierAttempt(t *testing.T) {
	v := NewVersions()
	for _, s := range []Seen{{"/w/a", "1"}, {"/w/b", "1"}, {"/w/a", "2"}, {"/w/b", ""}} {
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Recall(data); err != nil {
			t.Fatal(err)
		}
	}
	if got, ok := v.Last("/w/a"); !ok || got != "2" {
		t.Errorf("a: %q %v", got, ok)
	}
	if _, ok := v.Last("/w/b"); ok {
		t.Error("a file that was moved away is still known")
	}
	if v.Recall(json.RawMessage(`nonsense`)) == nil {
		t.Error("a broken note was taken in silence")
	}
}
