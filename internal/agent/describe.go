package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"reasonix/internal/tool"
)

// describer is a Tool that words its own question to a person.
type describer interface {
	Describe(args json.RawMessage) (title, text string)
}

// describe words a call for the person who must approve it. The text is whole: nobody approves what was not shown.
func describe(t tool.Tool, args json.RawMessage) (title, text string) {
	if d, ok := t.(describer); ok {
		return d.Describe(args)
	}
	title = "Allow " + t.Name() + "?"
	var fields map[string]any
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	if err := dec.Decode(&fields); err != nil {
		return title, string(args)
	}
	if line, ok := fields["command"].(string); ok {
		if len(fields) == 1 {
			return title, line
		}
		delete(fields, "command")
		return title, line + "\n\n" + list(fields)
	}
	return title, list(fields)
}

// list writes one field per line; text of several lines follows its name, indented, so that it cannot pose as another field.
func list(fields map[string]any) string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	sort.Strings(names)
	var b strings.Builder
	for _, name := range names {
		switch v := fields[name].(type) {
		case string:
			if !strings.ContainsAny(v, "\r\n") {
				fmt.Fprintf(&b, "%s: %s\n", name, v)
				continue
			}
			fmt.Fprintf(&b, "%s:\n    %s\n", name, strings.ReplaceAll(v, "\n", "\n    "))
		default:
			fmt.Fprintf(&b, "%s: %s\n", name, plainJSON(v))
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

func plainJSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("    ", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimRight(b.String(), "\n")
}
