package evidence

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"reasonix/internal/chat"
	"reasonix/internal/session"
)

// Facts are what the host saw in the entries of a session. They stand beside the model's claims and are never rewritten by them.
type Facts struct {
	Tools     []Count    // calls that ran, by tool name
	Commands  []Command  // every command line, with its last outcome, in the order of first use
	Checks    []Check    // test, build and lint commands among them, with their last outcome
	Todos     []Todo     // the last list
	Refusals  []Refusal  // calls that policy, a hook or a person refused
	Unknown   []string   // calls found started without a result
	Files     []string   // paths that file tools changed, sorted
	Approvals []Approval // who let which action run
}

// Count is how often a tool ran, and how often it failed.
type Count struct {
	Tool   string
	Calls  int
	Failed int
}

// Command is a command line with its last outcome.
type Command struct {
	Line     string
	OK       bool
	ExitCode int
	Runs     int
}

// Refusal is one call that did not run.
type Refusal struct {
	Tool   string
	What   string // command line or paths
	Reason string // first line of what the model was told
}

// Approval is one action that a person let run.
type Approval struct {
	Tool   string
	By     string
	Digest string
}

// maxText bounds each text of a fact in bytes.
const maxText = 300

// changers are the file tools whose paths are changed by a call.
var changers = map[string]bool{"write_file": true, "edit_file": true, "multi_edit": true, "move_file": true}

// Collect reads the facts from the entries of a session, in their order.
func Collect(entries []session.Entry) Facts {
	c := collector{counts: map[string]*Count{}, commands: map[string]int{}, files: map[string]bool{}, checks: map[string]int{}}
	for _, e := range entries {
		switch {
		case e.Kind == session.KindNote && e.Name == NoteTodos:
			c.todos(e.Data)
		case e.Kind == session.KindResult && e.Fact != nil:
			c.result(e)
		}
	}
	return c.done()
}

type collector struct {
	facts    Facts
	counts   map[string]*Count
	commands map[string]int // line → index in facts.Commands
	checks   map[string]int // check → index in facts.Checks
	files    map[string]bool
}

func (c *collector) todos(data json.RawMessage) {
	if todos, err := ParseTodos(data); err == nil { // an unreadable note changes nothing
		c.facts.Todos = todos
	}
}

func (c *collector) result(e session.Entry) {
	f := *e.Fact
	if f.Refused {
		c.facts.Refusals = append(c.facts.Refusals, Refusal{f.Tool, what(f), reason(e)})
		return
	}
	if f.Approved != "" {
		c.facts.Approvals = append(c.facts.Approvals, Approval{f.Tool, f.Approved, f.Digest})
	}
	if f.Unknown {
		c.facts.Unknown = append(c.facts.Unknown, short(strings.TrimSpace(f.Tool+" "+what(f))))
		c.stale() // it may have changed anything
		return
	}
	n := c.counts[f.Tool]
	if n == nil {
		n = &Count{Tool: f.Tool}
		c.counts[f.Tool] = n
	}
	n.Calls++
	if !f.OK {
		n.Failed++
	}
	if f.Command != "" {
		c.command(f)
	}
	if changers[f.Tool] && f.OK {
		c.stale()
		for _, p := range f.Paths {
			c.files[p] = true
		}
	}
}

func (c *collector) command(f session.Fact) {
	line := strings.TrimSpace(f.Command)
	i, known := c.commands[line]
	if !known {
		i = len(c.facts.Commands)
		c.commands[line] = i
		c.facts.Commands = append(c.facts.Commands, Command{Line: line})
	}
	cmd := &c.facts.Commands[i]
	cmd.OK, cmd.ExitCode = f.OK, f.ExitCode
	cmd.Runs++
	for _, found := range checksIn(line) {
		c.check(found, f)
	}
}

func (c *collector) check(found foundCheck, f session.Fact) {
	i, known := c.checks[found.text]
	if !known {
		i = len(c.facts.Checks)
		c.checks[found.text] = i
		c.facts.Checks = append(c.facts.Checks, Check{Command: found.text})
	}
	k := &c.facts.Checks[i]
	k.Stale = false
	switch {
	case !found.proves:
		k.Outcome = Unproven
	case f.OK:
		k.Outcome = Passed
	case found.alone:
		k.Outcome = Failed
	default:
		k.Outcome = Unproven // some part of the line failed, nobody knows which
	}
	k.ExitCode = f.ExitCode
}

// stale marks earlier checks: files were changed after them.
func (c *collector) stale() {
	for i := range c.facts.Checks {
		c.facts.Checks[i].Stale = true
	}
}

func (c *collector) done() Facts {
	for _, n := range c.counts {
		c.facts.Tools = append(c.facts.Tools, *n)
	}
	sort.Slice(c.facts.Tools, func(i, j int) bool { return c.facts.Tools[i].Tool < c.facts.Tools[j].Tool })
	for p := range c.files {
		c.facts.Files = append(c.facts.Files, p)
	}
	sort.Strings(c.facts.Files)
	return c.facts
}

// FailedCommands are the lines whose last run failed.
func (f Facts) FailedCommands() []Command {
	var out []Command
	for _, c := range f.Commands {
		if !c.OK {
			out = append(out, c)
		}
	}
	return out
}

// Lines are the facts that a reader should see beside a claim, worst first; empty when nothing speaks against it.
func (f Facts) Lines() []string {
	var out []string
	for _, u := range f.Unknown {
		out = append(out, "outcome unknown: "+u)
	}
	for _, c := range f.FailedCommands() {
		if f.passedLater(c.Line) {
			continue
		}
		out = append(out, fmt.Sprintf("failed command: %s (exit code %d)", short(c.Line), c.ExitCode))
	}
	for _, k := range f.Checks {
		if k.Outcome == Passed && k.Stale {
			out = append(out, "files changed after this check passed: "+short(k.Command))
		}
	}
	if len(f.Files) > 0 && len(f.Checks) == 0 {
		out = append(out, "files were changed and no check was run")
	}
	for _, t := range Open(f.Todos) {
		out = append(out, fmt.Sprintf("open todo: %s (%s)", short(t.Content), strings.ReplaceAll(string(t.Status), "_", " ")))
	}
	for _, r := range f.Refusals {
		out = append(out, short(strings.TrimSpace("refused: "+r.Tool+" "+r.What)))
	}
	return out
}

// passedLater tells whether a failed command is a check that passed since, perhaps as a part of another line.
func (f Facts) passedLater(line string) bool {
	return slices.ContainsFunc(f.Checks, func(k Check) bool {
		return k.Outcome == Passed && k.Command == strings.TrimSpace(line)
	})
}

// Fill puts the facts into a receipt; usage, sources and commits are the caller's.
func (f Facts) Fill(r *chat.ReceiptView) {
	for _, t := range f.Tools {
		n := fmt.Sprint(t.Calls)
		if t.Failed > 0 {
			n += fmt.Sprintf(" (%d failed)", t.Failed)
		}
		r.Tools = append(r.Tools, chat.Field{Label: t.Tool, Value: n})
	}
	for _, k := range f.Checks {
		r.Checks = append(r.Checks, chat.Field{Label: short(k.Command), Value: k.Words()})
	}
	for _, a := range f.Approvals {
		r.Approvals = append(r.Approvals, strings.TrimSpace(fmt.Sprintf("%s approved %s %s", a.By, a.Tool, a.Digest)))
	}
	r.HostFacts = append(r.HostFacts, f.Lines()...)
}

func what(f session.Fact) string {
	if f.Command != "" {
		return strings.TrimSpace(f.Command)
	}
	return strings.Join(f.Paths, ", ")
}

func reason(e session.Entry) string {
	if e.Message == nil {
		return ""
	}
	line, _, _ := strings.Cut(e.Message.Content, "\n")
	return short(line)
}

// short makes one bounded line.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}
