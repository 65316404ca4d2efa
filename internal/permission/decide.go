package permission

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// Decide judges one call: deny > ask > what always needs a person > allow > fallback (Spec, section 3.7).
func (p *Policy) Decide(c Call, s Situation) Decision {
	if s.Posture == "" {
		s.Posture = PostureAsk
	}
	sub, err := p.subject(c)
	if err != nil {
		return Decision{Verdict: Refuse, Posture: s.Posture, Reason: "the arguments cannot be decoded: " + err.Error()}
	}
	d := p.judge(sub, s)
	d.Class, d.Offending, d.Posture = sub.class.Class, sub.class.Offending, s.Posture
	return d
}

// subject decodes a call as far as rules look into it.
func (p *Policy) subject(c Call) (*subject, error) {
	s := &subject{call: c, home: p.home, fold: p.fold, paths: c.Paths}
	raw := strings.TrimSpace(string(c.Args))
	if raw == "" {
		raw = "{}"
	}
	if err := json.Unmarshal([]byte(raw), &s.args); err != nil {
		return nil, err
	}
	if s.args == nil {
		return nil, fmt.Errorf("not an object")
	}
	if c.Tool == "bash" {
		raw, ok := s.args["command"]
		if !ok {
			return nil, fmt.Errorf("command is missing")
		}
		if err := json.Unmarshal(raw, &s.line); err != nil {
			return nil, fmt.Errorf("command: %w", err)
		}
		s.class = p.classify(s.line)
	}
	if len(s.paths) == 0 {
		for _, raw := range argPaths(s.args) {
			s.paths = append(s.paths, Path{Raw: raw})
		}
	}
	return s, nil
}

// pathKeys are the argument names that hold a path.
var pathKeys = []string{"path", "file_path", "notebook_path", "source_path", "destination_path", "source", "destination", "from", "to", "old_path", "new_path"}

func argPaths(args map[string]json.RawMessage) []string {
	var out []string
	for _, k := range pathKeys {
		var v string
		if raw, ok := args[k]; ok && json.Unmarshal(raw, &v) == nil && v != "" {
			out = append(out, v)
		}
	}
	return out
}

func (p *Policy) judge(sub *subject, s Situation) Decision {
	if s.Hook == HookBlocks {
		return Decision{Verdict: Deny, Reason: strings.TrimSuffix("a PreToolUse hook blocked the call: "+s.HookReason, ": ")}
	}
	bash := sub.call.Tool == "bash"
	catches := func(r *Rule) bool { return r.catches(sub) }
	if r := first(p.deny, catches); r != nil {
		return ruled(Deny, r, "denied by "+named(r)+", in every posture"+sub.of())
	}
	if bash && sub.class.Opaque && s.Posture == PostureYolo && hasBash(p.deny) {
		return Decision{Verdict: Deny, Reason: "yolo, but there are deny rules for commands and what this line would run cannot be seen: " + sub.class.Why}
	}
	if why := sub.neverWritten(); why != "" {
		return Decision{Verdict: Deny, Kind: KindWrite, Reason: why}
	}
	if r := first(p.ask, catches); r != nil {
		if s.Posture != PostureYolo {
			return p.person(sub, s, ruled(Ask, r, "asked for by "+named(r)+sub.of()))
		}
		if need, ok := sub.always(); ok {
			return p.person(sub, s, need)
		}
		return ruled(Allow, r, "posture yolo counts "+named(r)+" as answered")
	}
	if need, ok := sub.always(); ok {
		return p.person(sub, s, need)
	}
	if d, ok := p.allowed(sub); ok {
		return d
	}
	d := p.fallback(sub, s)
	d.Fallback = string(p.mode)
	if sub.call.ReadOnly && sub.call.Tool != "bash" {
		d.Fallback = "allow, it only reads"
	}
	return d
}

func ruled(v Verdict, r *Rule, reason string) Decision {
	return Decision{Verdict: v, Rule: r.Text, Source: r.Source, Reason: reason}
}

func named(r *Rule) string {
	if r.Source == "" {
		return "rule " + r.Text
	}
	return "rule " + r.Text + " (" + r.Source + ")"
}

// of names the class for reasons about bash lines.
func (s *subject) of() string {
	if s.class.Class == "" || s.class.Class == Plain {
		return ""
	}
	return fmt.Sprintf("; the line is %s: %s in %q", s.class.Class, s.class.Why, s.class.Offending)
}

// person turns a decision into a question, or into a refusal where nobody can be asked.
func (p *Policy) person(sub *subject, s Situation, d Decision) Decision {
	if d.Kind == "" {
		d.Kind = KindApproval
	}
	switch {
	case s.Surface == Headless:
		d.Verdict = Refuse
		d.Reason += "; headless, so nobody can be asked"
	case sub.class.Class == HumanRequired:
		d.Verdict = AskHuman
	default:
		d.Verdict = Ask
	}
	return d
}

// always finds what needs a person in every posture: plans, questions, writes outside the roots, managed configuration.
func (s *subject) always() (Decision, bool) {
	switch s.call.Tool {
	case "exit_plan_mode":
		return Decision{Kind: KindPlan, Reason: "a plan always waits for a person"}, true
	case "ask":
		return Decision{Kind: KindQuestion, Reason: "a question always waits for a person"}, true
	case "bash":
		if dirs := s.extraWrites(); len(dirs) > 0 {
			return s.writeAsk(dirs), true
		}
		return Decision{}, false
	}
	if !editTools[s.call.Tool] || s.call.Root == "" {
		return Decision{}, false
	}
	var outside []string
	for _, p := range s.paths {
		for _, raw := range []string{p.Raw, p.Resolved} {
			if raw == "" {
				continue
			}
			abs := s.absolute(raw)
			if s.managed(abs) {
				return Decision{Kind: KindConfig, Reason: "a change of managed configuration always needs a person: " + raw}, true
			}
			if !s.writable(abs) {
				outside = append(outside, abs)
			}
		}
	}
	if len(outside) > 0 {
		return s.writeAsk(outside), true
	}
	return Decision{}, false
}

func (s *subject) writable(abs string) bool {
	for _, root := range append(s.roots(), s.call.WriteRoots...) {
		if within(filepath.ToSlash(root), abs) {
			return true
		}
	}
	return false
}

// managed: the project's own configuration, and what the caller names.
func (s *subject) managed(abs string) bool {
	for _, root := range s.roots() {
		for _, name := range []string{"reasonix.toml", ".reasonix", ".mcp.json"} {
			if within(path.Join(root, name), abs) {
				return true
			}
		}
	}
	for _, m := range s.call.Managed {
		if within(filepath.ToSlash(m), abs) {
			return true
		}
	}
	return false
}

func within(root, abs string) bool {
	root = path.Clean(root)
	return root != "." && (abs == root || root == "/" || strings.HasPrefix(abs, root+"/"))
}

// allowed applies the allow rules.
func (p *Policy) allowed(s *subject) (Decision, bool) {
	if s.call.Tool != "bash" {
		if r := first(p.allow, func(r *Rule) bool { return r.covers(s) }); r != nil {
			return ruled(Allow, r, "allowed by "+named(r)), true
		}
		return Decision{}, false
	}
	literal := func(r *Rule) bool { return r.tool == familyBash && r.form == formLiteral && r.spec == s.line }
	if r := first(p.allow, literal); r != nil {
		return ruled(Allow, r, "allowed by "+named(r)+", which is this very line"), true
	}
	if s.class.Class != Plain {
		return Decision{}, false
	}
	whole := func(r *Rule) bool {
		return r.tool == familyBash && r.form == formExact && r.toks == nil && r.spec == strings.TrimSpace(s.line)
	}
	if r := first(p.allow, whole); r != nil {
		return ruled(Allow, r, "allowed by "+named(r)), true
	}
	return p.coveredParts(s)
}

// coveredParts allows a plain line whose every simple command some rule covers.
func (p *Policy) coveredParts(s *subject) (Decision, bool) {
	if len(s.class.Parts) == 0 || s.class.detached && first(p.allow, func(r *Rule) bool { return r.tool == familyBash && r.form == formAny }) == nil {
		return Decision{}, false
	}
	var by []*Rule
	for i := 0; i < len(s.class.Parts); i++ {
		part := s.class.Parts[i]
		if part.Seen {
			continue
		}
		r := first(p.allow, func(r *Rule) bool { return r.coversPart(part) })
		if r == nil && part.Wraps > 0 && part.Transparent {
			continue // the wrapped part must be covered itself
		}
		if r == nil {
			return Decision{}, false
		}
		by = append(by, r)
		for i < len(s.class.Parts)-1 && s.class.Parts[i].Wraps > 0 {
			i++ // the rule reached into what is wrapped
		}
	}
	if len(by) == 0 {
		return Decision{}, false
	}
	d := ruled(Allow, by[0], "allowed by "+named(by[0]))
	for _, r := range by[1:] {
		if !strings.Contains(d.Reason, named(r)) {
			d.Reason += " and " + named(r)
		}
	}
	return d, true
}

// fallback applies where no rule matched.
func (p *Policy) fallback(sub *subject, s Situation) Decision {
	bash := sub.call.Tool == "bash"
	if sub.call.ReadOnly && !bash {
		return Decision{Verdict: Allow, Reason: "no rule matched; it only reads"}
	}
	if p.mode == ModeDeny {
		return Decision{Verdict: Deny, Reason: "no rule matched; mode is deny"}
	}
	if s.Posture == PostureYolo && !(sub.call.Tool == "remember" || sub.call.Tool == "forget") {
		return Decision{Verdict: Allow, Reason: "no rule matched; posture yolo" + sub.of()}
	}
	allows, why := p.allows(sub, s)
	if sub.class.Class == HumanRequired {
		return p.humanLine(sub, s, allows, why)
	}
	if allows {
		return Decision{Verdict: Allow, Reason: "no rule matched; " + why + sub.of()}
	}
	if s.Hook == HookAllows && !(sub.call.Tool == "remember" || sub.call.Tool == "forget") {
		return Decision{Verdict: Allow, Reason: "no rule matched; a PreToolUse hook allowed it" + sub.of()}
	}
	return p.person(sub, s, Decision{Reason: "no rule matched; " + why + sub.of()})
}

// allows tells whether the fallback for writers is Allow, and why or why not.
func (p *Policy) allows(sub *subject, s Situation) (bool, string) {
	if sub.call.Tool == "remember" || sub.call.Tool == "forget" {
		if s.Surface == Headless {
			return false, "memory changes need their own controller"
		}
		return s.Posture != PostureAsk, "memory changes under posture " + string(s.Posture)
	}
	switch {
	case p.mode == ModeAllow:
		return true, "mode is allow"
	case s.Posture == PostureAuto:
		return true, "posture auto lets ordinary changes through"
	case s.PlanWindow:
		return true, "the window of an approved plan is open"
	}
	return false, "posture ask, mode ask"
}

// humanLine judges a human_required line that no rule decided. Hooks, guardians and plan windows cannot answer for a person.
func (p *Policy) humanLine(sub *subject, s Situation, allows bool, why string) Decision {
	only := p.mode == ModeAllow || s.Posture == PostureAuto
	hidden := sub.class.Opaque && (hasBash(p.deny) || hasBash(p.ask))
	if p.dynamic && allows && only && !hidden {
		return Decision{Verdict: Allow, Reason: "no rule matched; " + why + " and allow_dynamic_bash is on" + sub.of()}
	}
	reason := "only a person may answer for this line" + strings.TrimPrefix(sub.of(), "; the line is human_required")
	if p.dynamic && hidden {
		reason += "; allow_dynamic_bash does not reach past deny and ask rules where the line hides what it runs"
	}
	return p.person(sub, s, Decision{Reason: reason})
}
