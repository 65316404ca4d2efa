package permission

import (
	"fmt"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// Limits of the classifier. A longer line is human_required without being parsed.
const (
	maxLine  = 8 << 10 // bytes; the parser needs time and stack out of proportion beyond this
	maxNest  = 48      // open brackets or compound commands within one another
	maxInner = 4       // strings for a shell inside strings for a shell
	maxChain = 16      // wrappers around one program
	maxParts = 2000    // simple commands that one line may hold
	maxShown = 200     // bytes of the offending part that are kept
)

// Classification is what a bash line is, part by part.
type Classification struct {
	Class     Class
	Offending string          // the part of the line that decided the class; empty for plain
	Why       string          // what that part is, in words; empty for plain
	Parts     []SimpleCommand // every simple command, in order of appearance, those behind wrappers and in substitutions too
	Ops       bool            // more than one command, or operators: no rule covers the line as a whole
	Opaque    bool            // some of what would run cannot be seen, so no deny rule can be trusted to have looked at it
	Targets   []Target        // files that redirects name, where they are static
	detached  bool            // something runs in the background
	halves    halves
}

// SimpleCommand is one program with its arguments.
type SimpleCommand struct {
	Words []string // after quote removal; a dynamic piece stays as it is written
	// Wraps is the number of leading words that only wrap the next part (timeout 5, env); 0 when this part is the program itself.
	Wraps int
	// Transparent: the wrapper changes nothing about what the wrapped program may do, so a rule for the inner program covers it.
	Transparent bool
	// Seen parts serve deny and ask only (a program that a runner starts in its own world); allow looks at the part before.
	Seen bool
}

// Target is a file that a redirect or tee names.
type Target struct {
	Path  string
	Write bool
}

// Classify tells what a bash line is. It never panics, runs nothing and touches nothing; what it does not understand is human_required.
func Classify(line string) (c Classification) {
	return classify(line, 0)
}

func classify(line string, depth int) (c Classification) {
	defer func() {
		if r := recover(); r != nil {
			c = unseen(line, fmt.Sprintf("the parser gave up: %v", r))
		}
	}()
	if why := precheck(line); why != "" {
		return unseen(line, why)
	}
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	file, err := p.Parse(strings.NewReader(line), "")
	if err != nil {
		return unseen(line, "not parsable as bash: "+err.Error())
	}
	w := &walker{src: line, depth: depth, out: Classification{Class: Plain}}
	w.stmts(file.Stmts)
	return w.finish()
}

var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// unseen is the classification of a line that could not be looked into.
func unseen(line, why string) Classification {
	return Classification{Class: HumanRequired, Offending: shown(line), Why: why, Opaque: true, Ops: true}
}

func shown(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}

// walker visits one parsed line and raises the class as it meets things.
type walker struct {
	src   string
	depth int // strings for a shell that this line lies within
	chain int // wrappers around the program being judged
	out   Classification

	halves
	computedTarget bool // it writes a file whose name is computed
}

// halves are what is harmless alone; a string for a shell in the line may hold the other half.
type halves struct {
	// Bash evaluates some strings a second time (arithmetic, test -v, prompts).
	hides     string // a static string that holds a substitution
	evaluates string // a construct that evaluates strings

	smuggled smuggling
}

func (h *halves) join(o halves) {
	for _, f := range []struct {
		to   *string
		from string
	}{
		{&h.hides, o.hides}, {&h.evaluates, o.evaluates}, {&h.smuggled.source, o.smuggled.source}, {&h.smuggled.hyphen, o.smuggled.hyphen}, {&h.smuggled.into, o.smuggled.into},
		{&h.smuggled.name, o.smuggled.name}, {&h.smuggled.dollar, o.smuggled.dollar}, {&h.smuggled.fed, o.smuggled.fed},
	} {
		if *f.to == "" {
			*f.to = f.from
		}
	}
	h.smuggled.cuts = h.smuggled.cuts || o.smuggled.cuts
	h.smuggled.reads = h.smuggled.reads || o.smuggled.reads
}

// finish closes the books over the whole line.
func (w *walker) finish() Classification {
	if w.hides == "" {
		w.hides = w.smuggled.dollar
	}
	if w.hides != "" && w.evaluates != "" {
		w.raise(HumanRequired, w.hides, "bash evaluates this string again in "+w.evaluates)
		w.out.Opaque = true
	}
	w.settleOptions()
	w.freshPrograms()
	w.out.halves = w.halves
	return w.out
}

var rank = map[Class]int{Plain: 0, DynamicOrdinary: 1, HumanRequired: 2}

// raise lifts the class; the first part that reached the highest class is the offending one.
func (w *walker) raise(c Class, part, why string) {
	if rank[c] <= rank[w.out.Class] {
		return
	}
	w.out.Class, w.out.Offending, w.out.Why = c, shown(part), why
}

// raiseOpaque is raise to human_required for something that hides what runs.
func (w *walker) raiseOpaque(part, why string) {
	w.raise(HumanRequired, part, why)
	w.out.Opaque = true
}

// text is the source of a node.
func (w *walker) text(n syntax.Node) string {
	from, to := n.Pos(), n.End()
	if !from.IsValid() || !to.IsValid() {
		return ""
	}
	a, b := int(from.Offset()), int(to.Offset())
	if a > b || b > len(w.src) {
		return ""
	}
	return w.src[a:b]
}

// inner classifies a string that a shell would run, and takes over what it runs.
func (w *walker) inner(line string) {
	if w.depth+1 >= maxInner {
		w.raiseOpaque(line, "strings for a shell nested too deeply")
		return
	}
	c := classify(line, w.depth+1)
	if len(w.out.Parts)+len(c.Parts) > maxParts {
		w.raiseOpaque(line, "too many commands in one line")
		return
	}
	for i := range c.Parts {
		c.Parts[i].Seen = true
	}
	w.out.Parts = append(w.out.Parts, c.Parts...)
	w.out.Targets = append(w.out.Targets, c.Targets...)
	w.out.Opaque = w.out.Opaque || c.Opaque
	w.join(c.halves)
	w.raise(c.Class, c.Offending, c.Why)
}
