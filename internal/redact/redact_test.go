package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const (
	token = "xoxb-1234/56+78=secret&<tail>"
	key   = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKc\nAgEAAoIBAQC7VJTUt9Us8cKjMzEfYyjiWA4\n-----END KEY-----"
)

func known() *Redactor {
	return New(map[string]string{"SLACK_BOT_TOKEN": token, "APP_KEY": key, "SHORT": "abc", "MODEL_KEY": "sk-0123456789"})
}

func TestInvariant09_KnownSecretsAreMaskedInEverySpelling(t *testing.T) {
	r := known()
	quoted, err := json.Marshal(map[string]string{"token": token})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"plain":           "Authorization: Bearer " + token + "\n",
		"twice":           token + token,
		"query":           "https://x.test/?t=" + url.QueryEscape(token),
		"path":            "https://x.test/" + url.PathEscape(token),
		"lower escapes":   "https://x.test/?t=" + lowerEscapes(url.QueryEscape(token)),
		"every byte":      percent(token),
		"base64":          base64.StdEncoding.EncodeToString([]byte(token)),
		"raw base64 url":  base64.RawURLEncoding.EncodeToString([]byte(token)),
		"basic auth":      base64.StdEncoding.EncodeToString([]byte("user:" + token)),
		"in JSON":         string(quoted),
		"in HTML":         html.EscapeString(token),
		"as hex":          hex.EncodeToString([]byte(token)),
		"as upper hex":    strings.ToUpper(hex.EncodeToString([]byte(token))),
		"a line of a key": "x " + strings.Split(key, "\n")[1],
		"a key in JSON":   strings.ReplaceAll(key, "\n", `\n`),
	} {
		got := r.String(text)
		if !strings.Contains(got, "[redacted:") || leaks(got) {
			t.Errorf("%s: %s", name, got)
		}
		if string(r.Bytes([]byte(text))) != got {
			t.Errorf("%s: bytes and text differ", name)
		}
	}
	for _, clean := range []string{"abc is too short to be a secret", "", "-----BEGIN KEY-----"} {
		if r.String(clean) != clean || r.Holds(clean) {
			t.Errorf("%q was masked", clean)
		}
	}
	var none *Redactor
	if none.String(token) != token || none.Stream().Push(token) != token {
		t.Error("a nil Redactor changed the text")
	}
}

// leaks tells whether a readable piece of a secret is left, in any encoding.
func leaks(s string) bool {
	for _, secret := range []string{token, strings.Split(key, "\n")[1]} {
		for i := 0; i+8 <= len(secret); i++ {
			part := secret[i : i+8]
			if strings.Contains(s, part) || strings.Contains(s, hex.EncodeToString([]byte(part))) {
				return true
			}
		}
	}
	return false
}

func TestInvariant09_Base64IsMaskedAtEveryPlaceInALargerText(t *testing.T) {
	r := known()
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
		for before := range 7 {
			for after := range 4 {
				text := enc.EncodeToString([]byte(strings.Repeat("x", before) + token + strings.Repeat("y", after)))
				got := r.String(text)
				for _, piece := range strings.SplitAfter(got, "]") {
					piece, _, _ = strings.Cut(piece, "[redacted")
					raw, _ := enc.DecodeString(piece)
					if strings.Contains(string(raw), token[:4]) || len(piece) > 3+(before+after)*2 {
						t.Errorf("%d before, %d after: %s leaves %s", before, after, text, got)
					}
				}
			}
		}
	}
}

func TestInvariant09_OverlappingSecretsLeaveNoRest(t *testing.T) {
	r := New(map[string]string{"A": "abcdef", "B": "defghijk"})
	if got := r.String("<abcdefghijk>"); got != "<[redacted:A]>" {
		t.Errorf("got %s", got)
	}
	if got := New(map[string]string{"A": "secret", "B": "secret-long"}).String("secret-long secret"); got != "[redacted:B] [redacted:A]" {
		t.Errorf("got %s", got)
	}
}

func TestInvariant09_ASecretIsMaskedAcrossChunkBoundaries(t *testing.T) {
	r := New(map[string]string{"A": "abcabd", "B": "aaaaaa", "C": "cabdxyz", "KEY": key})
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", "d", "abc", "abcabd", "xyz", "aaaaaa", "é", " ", key[:20], key[20:],
			base64.StdEncoding.EncodeToString([]byte("abcabd"))})).Draw(t, "text")
		text := strings.Join(parts, "")
		var whole strings.Builder
		s := r.Stream()
		var b bytes.Buffer
		w := r.NewWriter(&b)
		for at := 0; at < len(text); {
			n := min(rapid.IntRange(1, 9).Draw(t, "chunk"), len(text)-at)
			whole.WriteString(s.Push(text[at : at+n]))
			if _, err := w.Write([]byte(text[at : at+n])); err != nil {
				t.Fatal(err)
			}
			at += n
		}
		whole.WriteString(s.Flush())
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if want := r.String(text); whole.String() != want || b.String() != want {
			t.Fatalf("%q\nstream %q\nwriter %q\n  want %q", text, whole.String(), b.String(), want)
		}
	})
}

func TestAStreamShowsHarmlessTextAtOnceAndHoldsLittle(t *testing.T) {
	s := known().Stream()
	if got := s.Push("hello, "); got != "hello, " {
		t.Errorf("harmless text waits: %q", got)
	}
	if got := s.Push("key sk-01"); got != "key " {
		t.Errorf("the start of a secret was shown: %q", got)
	}
	if got := s.Push("!"); got != "sk-01!" {
		t.Errorf("what turned out harmless: %q", got)
	}
	endless := New(map[string]string{"A": "aaaaaa"}).Stream()
	for range 3 * maxHeld / 4096 {
		if got := endless.Push(strings.Repeat("a", 4096)); strings.Contains(got, "aaaaaa") {
			t.Fatal("a secret passed")
		}
		if len(endless.held) > 2*maxHeld {
			t.Fatalf("%d bytes are held back", len(endless.held))
		}
	}
}

func TestAWriterReportsTheOtherWritersError(t *testing.T) {
	w := known().NewWriter(broken{})
	if _, err := w.Write([]byte("harmless text")); !errors.Is(err, errBroken) {
		t.Errorf("write: %v", err)
	}
	w = known().NewWriter(broken{})
	if _, err := w.Write([]byte("sk-01")); err != nil {
		t.Errorf("nothing to write yet: %v", err)
	}
	if err := w.Flush(); !errors.Is(err, errBroken) {
		t.Errorf("flush: %v", err)
	}
}

var errBroken = errors.New("broken pipe")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

type lazy struct{}

func (lazy) LogValue() slog.Value { return slog.StringValue("lazy " + token) }

func TestInvariant09_ALogLineHoldsNoSecretWhateverTheAttribute(t *testing.T) {
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var b bytes.Buffer
		log := slog.New(New(map[string]string{"T": token, "N": "31415926"}).NewHandler(handler(&b)))
		log.With("with", token).WithGroup("g").Error("message "+token, "text", token, "err", fmt.Errorf("call: %w", errors.New(token)),
			"bytes", []byte(token), "struct", struct{ Token string }{token}, "pointer", &struct{ T string }{token}, "number", 31415926, "lazy", lazy{},
			slog.Group("group", "inner", token), "map", map[string]any{"deep": []string{token}}, "fine", 7)
		got := b.String()
		for _, spelling := range append(forms(token), "31415926") {
			if strings.Contains(got, spelling) {
				t.Errorf("%s: the line holds %q:\n%s", name, spelling, got)
			}
		}
		if n := strings.Count(got, "[redacted:"); n < 11 {
			t.Errorf("%s: only %d masks in\n%s", name, n, got)
		}
		if !strings.Contains(got, "fine") || !strings.Contains(got, "7") {
			t.Errorf("%s: a harmless attribute is gone:\n%s", name, got)
		}
	}
}

func TestScanFindsKnownValuesFirstAndThenWellKnownKinds(t *testing.T) {
	aws := "AKIA" + "QYLPMN5HHHFPZAM2"
	diff := "+++ b/config.go\n+password = \"hunter2-hunter2\"\n+aws = \"" + aws + "\"\n"
	found, err := New(map[string]string{"DB": "hunter2-hunter2"}).Scan(diff)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 2 || found[0].Rule != "known value" || found[0].Line != 2 || !strings.Contains(found[0].What, "DB") {
		t.Fatalf("got %v", found)
	}
	if found[1].Line != 3 || !strings.Contains(found[1].Rule, "aws") {
		t.Errorf("got %v", found[1])
	}
	for _, f := range found {
		if strings.Contains(f.String(), aws) || strings.Contains(f.String(), "hunter2") {
			t.Errorf("the finding repeats the secret: %s", f)
		}
	}
	var none *Redactor
	if found, err := none.Scan("package main\n\nfunc main() {}\n"); err != nil || len(found) != 0 {
		t.Errorf("harmless code: %v %v", found, err)
	}
}
