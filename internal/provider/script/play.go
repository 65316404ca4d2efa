package script

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"reasonix/internal/provider"
)

// updateGoal is the tool through which a scenario that cannot go on says so (goal.ToolName; this package stands above goal).
const updateGoal = "update_goal"

// filled is a beat with its captures put in.
type filled struct {
	say   string
	calls []provider.ToolCall
}

// scene is what a step sees.
type scene struct {
	results []string // of the calls of the last assistant message
	asked   string   // latest user message
	turns   int      // assistant messages so far
}

// player walks the conversation again at every request: the transcript is its only memory, so it survives any restart.
type player struct {
	*scenario
	at       int // next step
	over     bool
	captures map[string]string
}

// next is the turn that follows the conversation. It never claims what it did not see.
func (s *scenario) next(messages []provider.Message, tools []provider.ToolSchema) filled {
	p := player{scenario: s, captures: map[string]string{}}
	var now scene
	for _, m := range messages {
		switch m.Role {
		case provider.RoleUser:
			now.asked = m.Content
		case provider.RoleTool:
			now.results = append(now.results, m.Content)
		case provider.RoleAssistant:
			p.advance(now)
			now.results, now.turns = nil, now.turns+1
		}
	}
	b := p.advance(now)
	if b == nil {
		return p.stuck(now, tools)
	}
	out, err := b.fill(func(name string) (string, bool) { v, ok := p.captures[name]; return v, ok })
	if err != nil {
		return blocked(now, tools, "The scenario cannot go on: "+err.Error()+".")
	}
	for i := range out.calls {
		out.calls[i].ID = fmt.Sprintf("s%d_%d", now.turns+1, i+1)
	}
	return out
}

// advance finds the beat that fits and moves on; nil: none does, and the step stays.
func (p *player) advance(now scene) *beat {
	if p.over || p.at >= len(p.Steps) {
		return nil
	}
	st := &p.Steps[p.at]
	for _, b := range append([]*beat{&st.beat}, pointers(st.Or)...) {
		if found, ok := b.match(now); ok {
			maps.Copy(p.captures, found)
			p.at, p.over = p.at+1, b.End
			return b
		}
	}
	return nil
}

func (b *beat) match(now scene) (map[string]string, bool) {
	found := map[string]string{}
	results := strings.Join(now.results, "\n")
	for _, p := range b.asked {
		if !capture(p, now.asked, found) {
			return nil, false
		}
	}
	for _, p := range b.expect {
		if !capture(p, results, found) {
			return nil, false
		}
	}
	return found, true
}

func capture(p *regexp.Regexp, text string, into map[string]string) bool {
	m := p.FindStringSubmatch(text)
	for i, name := range p.SubexpNames() {
		if m != nil && name != "" {
			into[name] = m[i]
		}
	}
	return m != nil
}

// stuck says honestly what was expected and what came.
func (p *player) stuck(now scene, tools []provider.ToolSchema) filled {
	if p.over || p.at >= len(p.Steps) {
		return blocked(now, tools, "The scripted scenario has no further step: this model is a script and cannot answer anything else.")
	}
	st := p.Steps[p.at]
	text := fmt.Sprintf("The scripted scenario stops at step %d of %d.", p.at+1, len(p.Steps))
	if _, ok := (&beat{asked: st.asked}).match(now); !ok {
		text += fmt.Sprintf(" It answers only requests like %q.", st.Asked)
	} else {
		text += fmt.Sprintf(" It expected %q in the last results, which are:\n%s", st.Expect, short(strings.Join(now.results, "\n")))
	}
	return blocked(now, tools, text)
}

func short(s string) string {
	const most = 400
	if s == "" {
		return "(nothing)"
	}
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// blocked ends the turn without a claim of success, through update_goal where the goal can be reported blocked.
func blocked(now scene, tools []provider.ToolSchema, why string) filled {
	out := filled{say: why}
	for _, t := range tools {
		if t.Name != updateGoal {
			continue
		}
		args, err := json.Marshal(map[string]string{"status": "blocked", "reason": why})
		if err == nil { // a map of strings always encodes
			out.calls = []provider.ToolCall{{ID: fmt.Sprintf("s%d_1", now.turns+1), Name: updateGoal, Arguments: string(args)}}
		}
	}
	return out
}

var reference = regexp.MustCompile(`\$?\$\{([^}]*)\}`)

// fill puts captures in; "$${" is a literal "${".
func (b *beat) fill(value func(name string) (string, bool)) (filled, error) {
	var bad error
	put := func(s string) string {
		return reference.ReplaceAllStringFunc(s, func(m string) string {
			if strings.HasPrefix(m, "$$") {
				return m[1:]
			}
			name := m[2 : len(m)-1]
			v, ok := value(name)
			if !ok && bad == nil {
				bad = fmt.Errorf("${%s} was captured by no pattern (write $${ for a literal ${)", name)
			}
			return v
		})
	}
	out := filled{say: put(b.Say)}
	for _, c := range b.Calls {
		args := c.Args
		if args == nil {
			args = map[string]any{}
		}
		raw, err := json.Marshal(walk(args, put))
		if err != nil {
			return out, fmt.Errorf("arguments of %s: %w", c.Tool, err)
		}
		out.calls = append(out.calls, provider.ToolCall{Name: c.Tool, Arguments: string(raw)})
	}
	return out, bad
}

// walk copies a tree with every string put through f.
func walk(v any, f func(string) string) any {
	switch t := v.(type) {
	case string:
		return f(t)
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, e := range t {
			out[k] = walk(e, f)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = walk(e, f)
		}
		return out
	case []map[string]any: // how TOML gives tables in a list
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = walk(e, f)
		}
		return out
	}
	return v
}
