package evidence

import (
	"sort"
	"strings"

	"reasonix/internal/session"
	"reasonix/internal/tool"
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
	Claims    []Claim    // completed todos of this request that nothing the host saw speaks for
	Unsigned  []string   // completed todos of this request that were never signed off

	seen    receipts
	checked bool // a step was verified with a command, whatever program that is
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

// Collect reads the facts from the entries of a session, in their order.
func Collect(entries []session.Entry) Facts { return Since(entries, "") }

// Since reads the facts of one request: what happened after the user message with that key. The todo list goes on from what stood before.
// A key that no message has means the whole session.
func Since(entries []session.Entry, request string) Facts {
	c := newCollector()
	for _, e := range entries {
		switch {
		case request != "" && e.Kind == session.KindUser && e.Name == request:
			c = c.next()
		case e.Kind == session.KindNote:
			c.note(e)
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
	signed   signed
}

func newCollector() *collector {
	return &collector{counts: map[string]*Count{}, commands: map[string]int{}, files: map[string]bool{}, checks: map[string]int{},
		facts: Facts{seen: newReceipts()}, signed: newSigned()}
}

// next begins another request: only the todo list stays.
func (c *collector) next() *collector {
	n := newCollector()
	n.facts.Todos = c.facts.Todos
	n.signed.before = completed(c.facts.Todos)
	return n
}

func (c *collector) note(e session.Entry) {
	switch e.Name {
	case NoteTodos:
		if todos, err := ParseTodos(e.Data); err == nil { // an unreadable note changes nothing
			c.facts.Todos = todos
			c.signed.list(todos)
		}
	case NoteStep:
		c.signed.note(e.Data)
	case tool.NoteSeen:
		c.facts.seen.file(e.Data)
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
		c.stale(short(strings.TrimSpace(f.Tool + " " + what(f)))) // it may have changed anything
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
	switch {
	case f.Command != "":
		c.command(f)
	case f.Changes && len(f.Paths) > 0 && f.OK: // a file tool that failed changed nothing
		c.stale("")
		for _, p := range f.Paths {
			c.files[p] = true
		}
		c.facts.seen.changed(f)
	case f.Changes && len(f.Paths) == 0:
		c.stale(f.Tool)
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
	r := readLine(line)
	if r.changes {
		c.stale(short(line))
	}
	for _, p := range r.parts {
		if p.check {
			c.check(p, r, f)
		}
	}
	c.facts.seen.ran(line, r, f)
}

func (c *collector) check(p part, r read, f session.Fact) {
	i, known := c.checks[p.text]
	if !known {
		i = len(c.facts.Checks)
		c.checks[p.text] = i
		c.facts.Checks = append(c.facts.Checks, Check{Command: p.text})
	}
	k := &c.facts.Checks[i]
	*k = Check{Command: p.text, Outcome: outcomeOf(p, f), ExitCode: f.ExitCode}
	if r.changedBehind(p) {
		k.Stale, k.After = true, short(f.Command)
	}
}

func outcomeOf(p part, f session.Fact) Outcome {
	switch {
	case !p.proves:
		return Unproven
	case f.OK:
		return Passed
	case p.alone:
		return Failed
	}
	return Unproven // some part of the line failed, nobody knows which
}

// stale marks earlier checks and runs: files were changed after them, by file tools or perhaps by a command.
func (c *collector) stale(command string) {
	for i := range c.facts.Checks {
		if k := &c.facts.Checks[i]; !k.Stale {
			k.Stale, k.After = true, command
		}
	}
	c.facts.seen.stale(command)
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
	c.facts.Claims, c.facts.Unsigned = c.signed.open(c.facts.Todos)
	c.facts.checked = c.signed.checked
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
