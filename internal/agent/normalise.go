package agent

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"reasonix/internal/provider"
	"reasonix/internal/tool"
)

// maxCalls bounds how many calls of one message run; the others get a result that says so.
const maxCalls = 128

var (
	goodID   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)
	badInstr = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
)

// assistant turns what the model sent into a message that every vendor takes back: call ids are unique in the session, names
// are well formed, arguments are a JSON object.
func (l *Loop) assistant(text string, calls []provider.ToolCall) *provider.Message {
	m := &provider.Message{Role: provider.RoleAssistant, Content: l.redact(text)}
	fresh := map[string]bool{}
	for _, c := range calls {
		if !goodID.MatchString(c.ID) || l.ids[c.ID] || fresh[c.ID] {
			c.ID = l.newID(fresh)
		}
		fresh[c.ID] = true
		c.Name = cleanName(c.Name)
		c.Arguments = cleanArguments(l.redact(c.Arguments))
		m.ToolCalls = append(m.ToolCalls, c)
	}
	return m
}

// newID has nine characters, which the strictest vendor asks for.
func (l *Loop) newID(fresh map[string]bool) string {
	for n := len(l.ids) + len(fresh) + 1; ; n++ {
		if id := fmt.Sprintf("c%08d", n); !l.ids[id] && !fresh[id] {
			return id
		}
	}
}

func cleanName(name string) string {
	name = badInstr.ReplaceAllString(strings.TrimSpace(name), "_")
	if name == "" {
		return "unnamed_tool"
	}
	return name[:min(len(name), 64)]
}

// unparsed is the only field of arguments that were no JSON object. No tool has such a field, so decoding refuses it again
// whenever the call is judged.
const unparsed = "unparsed_arguments"

func cleanArguments(raw string) string {
	if strings.TrimSpace(raw) == "" {
		return "{}"
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(raw), &fields); err == nil && fields != nil {
		return raw
	}
	b, err := json.Marshal(map[string]string{unparsed: tool.Bound(raw, 2<<10)})
	if err != nil { // a map of strings always encodes
		return "{}"
	}
	return string(b)
}

// isUnparsed tells whether cleanArguments had to wrap what the model wrote.
func isUnparsed(arguments string) bool {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &fields); err != nil {
		return true
	}
	_, wrapped := fields[unparsed]
	return wrapped && len(fields) == 1
}
