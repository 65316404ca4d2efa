package permission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// caseRoot stands for the workspace in cases; ${WS} in arguments becomes it.
const caseRoot = "/workspace"

// Case is one line of a policy test: its own rules, a situation, a call, and what it should come to.
type Case struct {
	Name             string          `json:"name,omitempty"`
	Allow            []string        `json:"allow,omitempty"`
	Ask              []string        `json:"ask,omitempty"`
	Deny             []string        `json:"deny,omitempty"`
	Mode             Mode            `json:"mode,omitempty"`
	Posture          Posture         `json:"posture,omitempty"`
	Surface          Surface         `json:"surface,omitempty"`
	AllowDynamicBash bool            `json:"allow_dynamic_bash,omitempty"`
	PlanWindow       bool            `json:"plan_window,omitempty"`
	Hook             string          `json:"hook,omitempty"` // none, allows, blocks
	Tool             string          `json:"tool"`
	Args             json.RawMessage `json:"args"`
	ReadOnly         bool            `json:"read_only,omitempty"`
	Want             Verdict         `json:"want,omitempty"`
}

// CaseResult is what a case came to.
type CaseResult struct {
	Name string `json:"name,omitempty"`
	Decision
	Want     Verdict  `json:"want,omitempty"`
	Differs  bool     `json:"differs,omitempty"`
	Problems []string `json:"problems,omitempty"`
}

// StrictArgs decodes arguments the way calls of a run are decoded; its error refuses the case's call.
type StrictArgs func(tool string, args json.RawMessage) error

// EvaluateCase evaluates one JSON line. The error is about the line itself (unknown field, unknown posture), never about the
// decision; compare CaseResult.Differs for that. strict may be nil: then any JSON object will do.
func EvaluateCase(line []byte, strict StrictArgs) (CaseResult, error) {
	var c Case
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return CaseResult{}, fmt.Errorf("read case: %w", err)
	}
	if dec.More() {
		return CaseResult{}, fmt.Errorf("read case: more than one value on the line")
	}
	s, err := c.situation()
	if err != nil {
		return CaseResult{}, err
	}
	p := NewPolicy(Config{Allow: c.rules("allow", c.Allow), Ask: c.rules("ask", c.Ask), Deny: c.rules("deny", c.Deny),
		Mode: c.Mode, AllowDynamicBash: c.AllowDynamicBash})
	out := CaseResult{Name: c.Name, Want: c.Want}
	for _, problem := range p.Problems() {
		out.Problems = append(out.Problems, problem.String())
	}
	out.Decision = c.decide(p, s, strict)
	out.Differs = c.Want != "" && c.Want != out.Verdict
	return out, nil
}

func (c *Case) decide(p *Policy, s Situation, strict StrictArgs) Decision {
	args := c.args()
	if strict != nil {
		if err := strict(c.Tool, args); err != nil {
			return Decision{Verdict: Refuse, Posture: s.Posture, Reason: "the arguments cannot be decoded: " + err.Error()}
		}
	}
	call := Call{Tool: c.Tool, Args: args, ReadOnly: c.ReadOnly, Root: caseRoot}
	var decoded map[string]json.RawMessage
	if json.Unmarshal(args, &decoded) == nil {
		for _, raw := range argPaths(decoded) {
			abs := raw
			if !path.IsAbs(raw) {
				abs = path.Join(caseRoot, raw)
			}
			call.Paths = append(call.Paths, Path{Raw: raw, Resolved: path.Clean(abs)})
		}
	}
	return p.Decide(call, s)
}

// args is the argument object; a JSON string is the raw text that a model sent.
func (c *Case) args() json.RawMessage {
	raw := []byte(c.Args)
	var text string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		raw = []byte(text)
	}
	if c.Tool == "bash" {
		return raw // there ${WS} is bash's own
	}
	return json.RawMessage(strings.ReplaceAll(string(raw), "${WS}", caseRoot))
}

func (c *Case) rules(list string, texts []string) []Rule {
	out := make([]Rule, len(texts))
	for i, t := range texts {
		out[i] = Rule{Text: t, Source: fmt.Sprintf("%s[%d]", list, i)}
	}
	return out
}

func (c *Case) situation() (Situation, error) {
	s := Situation{Posture: c.Posture, Surface: c.Surface, PlanWindow: c.PlanWindow}
	switch c.Posture {
	case "":
		s.Posture = PostureAsk
	case PostureAsk, PostureAuto, PostureYolo:
	default:
		return s, fmt.Errorf("read case: unknown posture %q: write ask, auto or yolo", c.Posture)
	}
	switch c.Surface {
	case "", "interactive":
		s.Surface = Attended
	case Attended, Headless:
	default:
		return s, fmt.Errorf("read case: unknown surface %q: write attended or headless", c.Surface)
	}
	switch c.Hook {
	case "", "none":
	case string(HookAllows), string(HookBlocks):
		s.Hook = HookVerdict(c.Hook)
	default:
		return s, fmt.Errorf("read case: unknown hook %q: write none, allows or blocks", c.Hook)
	}
	switch c.Mode {
	case "", ModeAsk, ModeAllow, ModeDeny:
	default:
		return s, fmt.Errorf("read case: unknown mode %q: write ask, allow or deny", c.Mode)
	}
	switch c.Want {
	case "", Allow, Ask, AskHuman, Deny, Refuse:
	default:
		return s, fmt.Errorf("read case: unknown want %q", c.Want)
	}
	if c.Tool == "" {
		return s, fmt.Errorf("read case: tool is missing")
	}
	return s, nil
}
