package permission

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Mode is what happens to a call that changes something when no rule matches ([permissions].mode).
type Mode string

// The modes.
const (
	ModeAsk   Mode = "ask"
	ModeAllow Mode = "allow"
	ModeDeny  Mode = "deny"
)

// Config is what a policy is built from.
type Config struct {
	Allow, Ask, Deny []Rule // only Text and Source are read
	Mode             Mode   // empty: ask
	AllowDynamicBash bool   // an Allow fallback covers human_required lines too
	Tools            []string
	Home             string // absolute, for rules that start with ~/
	ForeignShell     string // the shell that bash lines are for, when it is no bash: no rule can look into them
	FoldCase         bool   // the disk does not tell upper from lower case: deny and ask ignore case
}

// Policy decides about calls. It is immutable and safe for concurrent use.
type Policy struct {
	allow, ask, deny []Rule
	mode             Mode
	dynamic          bool
	home             string
	fold             bool
	foreign          string
	tools            map[string]bool
	problems         []Problem
}

// NewPolicy builds a policy. Rules that cannot be read match nothing and are listed by Problems.
func NewPolicy(c Config) *Policy {
	p := &Policy{mode: c.Mode, dynamic: c.AllowDynamicBash, home: c.Home, fold: c.FoldCase, foreign: c.ForeignShell, tools: map[string]bool{}}
	for _, t := range c.Tools {
		p.tools[t] = true
	}
	switch c.Mode {
	case "":
		p.mode = ModeAsk
	case ModeAsk, ModeAllow, ModeDeny:
	default:
		p.mode = ModeAsk
		p.problems = append(p.problems, Problem{Rule: Rule{Text: string(c.Mode)}, Why: "unknown mode, ask is used; write ask, allow or deny"})
	}
	p.deny = p.read(c.Deny, Deny)
	p.ask = p.read(c.Ask, Ask)
	p.allow = p.read(c.Allow, Allow)
	return p
}

// read parses rules and keeps the problems of those that do not work.
func (p *Policy) read(rules []Rule, as Verdict) []Rule {
	var out []Rule
	for _, raw := range rules {
		r, err := ParseRule(raw.Text, raw.Source)
		if err != nil {
			p.problems = append(p.problems, Problem{Rule: r, Why: err.Error()})
			continue
		}
		if why := p.useless(&r, as); why != "" {
			p.problems = append(p.problems, Problem{Rule: r, Why: why})
		}
		out = append(out, r)
	}
	return out
}

// useless says why a well-formed rule can still never do what it says.
func (p *Policy) useless(r *Rule, as Verdict) string {
	family := r.tool == familyBash || r.tool == familyEdit || r.tool == familyRead || strings.HasPrefix(r.tool, "mcp__")
	if !family && !builtinTools[r.tool] && !p.tools[r.tool] {
		return fmt.Sprintf("unknown tool %q; %s", r.tool, suggestion(r.tool))
	}
	if as != Allow {
		return ""
	}
	switch {
	case r.tool == "exit_plan_mode" || r.tool == "ask":
		return "this always waits for a person; no rule can allow it"
	case r.tool == familyBash && (r.form == formExact || r.form == formPrefix):
		if c := Classify(r.spec); c.Class != Plain {
			return "such a line is " + string(c.Class) + " (" + c.Why + "), which only Bash=<the whole line> can allow"
		}
	}
	return ""
}

func suggestion(tool string) string {
	switch strings.ToLower(tool) {
	case "write", "multiedit", "notebookedit":
		return "file changes are the family Edit"
	case "grep", "glob", "ls":
		return "reading is the family Read"
	}
	return fmt.Sprintf("for a command write Bash(%s:*)", tool)
}

// Problems lists the rules that can never match, in the order deny, ask, allow.
func (p *Policy) Problems() []Problem { return slices.Clone(p.problems) }

// With returns a policy with further allow rules, such as grants.
func (p *Policy) With(rules ...Rule) *Policy {
	q := *p
	q.problems = slices.Clone(p.problems)
	q.allow = append(slices.Clip(slices.Clone(p.allow)), q.read(rules, Allow)...)
	return &q
}

// Digest identifies everything that decisions depend on besides the situation: rules (in any order), mode and options.
func (p *Policy) Digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "mode=%s dynamic=%t home=%q fold=%t\n", p.mode, p.dynamic, p.home, p.fold)
	for _, list := range []struct {
		name  string
		rules []Rule
	}{{"deny", p.deny}, {"ask", p.ask}, {"allow", p.allow}} {
		texts := make([]string, 0, len(list.rules))
		for _, r := range list.rules {
			texts = append(texts, r.Text)
		}
		slices.Sort(texts)
		for _, t := range slices.Compact(texts) {
			fmt.Fprintf(h, "%s %q\n", list.name, t)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Rules lists the rules in force, for people: deny, ask and allow.
func (p *Policy) Rules() (deny, ask, allow []Rule) {
	return slices.Clone(p.deny), slices.Clone(p.ask), slices.Clone(p.allow)
}

func first(rules []Rule, match func(*Rule) bool) *Rule {
	for i := range rules {
		if match(&rules[i]) {
			return &rules[i]
		}
	}
	return nil
}

// hasBash tells whether any rule is about commands.
func hasBash(rules []Rule) bool {
	return first(rules, func(r *Rule) bool { return r.tool == familyBash }) != nil
}

// classify is Classify where lines are bash. Lines for another shell are not read as what they are not.
func (p *Policy) classify(line string) Classification {
	if p.foreign != "" {
		return unseen(line, "it is for "+p.foreign+", which no rule can read")
	}
	return Classify(line)
}
