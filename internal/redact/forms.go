package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
)

// forms lists the spellings under which a value may appear.
func forms(value string) []string {
	value = strings.TrimSpace(value)
	if len(value) < MinLength {
		return nil
	}
	out := []string{value, url.QueryEscape(value), url.PathEscape(value), percent(value), strings.ToLower(percent(value)),
		lowerEscapes(url.QueryEscape(value)), lowerEscapes(url.PathEscape(value)),
		inJSON(value, true), inJSON(value, false), html.EscapeString(value), forSlack(value),
		hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value)))}
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		out = append(out, e.EncodeToString([]byte(value)), e.WithPadding(base64.NoPadding).EncodeToString([]byte(value)))
		for shift := range 3 {
			out = append(out, aligned(e, value, shift))
		}
	}
	out = append(out, longLines(value)...)
	return out
}

// aligned is the part of the base64 text that only the value decides, when shift bytes stand before it in its group of three.
// What is left beside it holds at most a few bits of the value.
func aligned(e *base64.Encoding, value string, shift int) string {
	enc := e.EncodeToString([]byte(strings.Repeat("\x00", shift) + value))
	from := (8*shift + 5) / 6
	to := 8 * (shift + len(value)) / 6
	return enc[from:to]
}

// longLines covers a key of several lines that is printed line by line.
func longLines(value string) []string {
	const least = 16
	lines := strings.Split(value, "\n")
	if len(lines) < 2 {
		return nil
	}
	var out []string
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if len(l) >= least && !strings.HasPrefix(l, "-----") {
			out = append(out, l)
		}
	}
	return out
}

func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

// lowerEscapes writes %2F as %2f and leaves the rest.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(string(b[i+1:i+3])))
		}
	}
	return string(b)
}

func inJSON(s string, escapeHTML bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(escapeHTML)
	if err := e.Encode(s); err != nil {
		return s
	}
	q := strings.TrimSuffix(b.String(), "\n")
	return q[1 : len(q)-1]
}

// forSlack is how chat text carries the three characters that it escapes.
func forSlack(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
