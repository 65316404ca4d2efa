package tui

import (
	"fmt"
	"strings"

	"reasonix/internal/agent"
	"reasonix/internal/chat"
)

// Shown words an observation as whole lines; streamed text is not among them.
func Shown(o agent.Observation) string {
	switch o.Kind {
	case "call":
		return fmt.Sprintf("• %s %s\n", o.Tool, chat.Visible(oneLine(o.Text)))
	case "result":
		if !o.OK {
			return fmt.Sprintf("  %s\n", chat.Visible(oneLine(o.Text)))
		}
	case "note":
		return fmt.Sprintf("  (%s)\n", chat.Visible(oneLine(o.Text)))
	}
	return ""
}

// flow turns streamed text into lines of at most width columns, broken between words; what is not a whole line yet is kept.
type flow struct {
	width int // 0: lines are broken at newlines alone
	rest  string
}

// push returns the lines that are whole now, each with its newline.
func (f *flow) push(text string) string {
	f.rest += chat.Visible(text)
	var out strings.Builder
	for {
		line, rest, whole := strings.Cut(f.rest, "\n")
		for head, tail, broken := wrapped(line, f.width); broken; head, tail, broken = wrapped(line, f.width) {
			out.WriteString(head + "\n")
			line = tail
		}
		if !whole {
			f.rest = line
			return out.String()
		}
		out.WriteString(line + "\n")
		f.rest = rest
	}
}

// flush returns what is left, with a newline.
func (f *flow) flush() string {
	if f.rest == "" {
		return ""
	}
	out := f.rest + "\n"
	f.rest = ""
	return out
}

// wrapped cuts a line that is longer than width at its last blank before it.
func wrapped(line string, width int) (head, tail string, broken bool) {
	runes := []rune(line)
	if width <= 0 || len(runes) <= width {
		return line, "", false
	}
	for i := width; i > 0; i-- {
		if runes[i] == ' ' {
			return string(runes[:i]), string(runes[i+1:]), true
		}
	}
	return string(runes[:width]), string(runes[width:]), true
}
