package console

import (
	"bytes"
	"encoding/json"
	"strings"

	"reasonix/internal/chat"
)

const (
	openLines  = 6     // a result up to this long stands open
	maxRowText = 48000 // bytes of one row on the page
)

// feedRow is one item of a feed as it is drawn.
type feedRow struct {
	chat.FeedItem
	Summary string
	Args    []chat.Field // of a call
	Body    string
	Lines   int
	Open    bool
}

func row(it chat.FeedItem) feedRow {
	r := feedRow{FeedItem: it, Body: bound(it.Text)}
	switch it.Kind {
	case "call":
		r.Args = arguments(it.Text)
		r.Summary = summary(r.Args, it.Text)
	case "result", "output":
		r.Body = strings.TrimRight(r.Body, "\n")
		r.Lines = countLines(r.Body)
		r.Summary = firstLine(r.Body)
		r.Open = r.Body != "" && (!it.OK || r.Lines <= openLines)
	}
	return r
}

// bound keeps head and tail of what would make the page unusable.
func bound(s string) string {
	if len(s) <= maxRowText {
		return s
	}
	half := maxRowText / 2
	return strings.ToValidUTF8(s[:half], "") + "\n… left out here, the transcript has it …\n" + strings.ToValidUTF8(s[len(s)-half:], "")
}

// arguments reads a call's JSON object in its own order; nil when it is none.
func arguments(text string) []chat.Field {
	dec := json.NewDecoder(strings.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var out []chat.Field
	for dec.More() {
		name, err := dec.Token()
		var raw json.RawMessage
		if err != nil || dec.Decode(&raw) != nil {
			return nil
		}
		label, _ := name.(string)
		out = append(out, chat.Field{Label: label, Value: bound(plainValue(raw))})
	}
	return out
}

func plainValue(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// telling are the arguments that say most about a call, best first.
var telling = []string{"command", "step", "path", "file_path", "pattern", "from", "question", "query", "url"}

func summary(args []chat.Field, text string) string {
	for _, name := range telling {
		for _, a := range args {
			if a.Label == name {
				return firstLine(a.Value)
			}
		}
	}
	if len(args) > 0 {
		return firstLine(args[0].Label + ": " + args[0].Value)
	}
	return firstLine(text)
}

func firstLine(s string) string {
	s = strings.TrimLeft(s, "\n")
	first, rest, more := strings.Cut(s, "\n")
	if more && strings.TrimSpace(rest) != "" {
		return cut(first, 160) + " …"
	}
	return cut(first, 160)
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
