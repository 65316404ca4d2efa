package evidence

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"reasonix/internal/permission"
)

// maxParsed bounds what the shell parser gets, in bytes: deep nesting costs it stack.
const maxParsed = 8 << 10

// part is one simple command of a line.
type part struct {
	text   string // its words
	check  bool   // a test, build or lint command
	proves bool   // success of the line means success of the part
	alone  bool   // failure of the line means failure of the part
	at     uint   // offset in the line
}

// read is a command line as far as the host understands it.
type read struct {
	parts   []part
	ok      bool // it could be parsed
	opaque  bool // it holds loops, conditions or functions: what runs there is not known
	ended   bool // so far it may have ended, or changed what words mean: what stands behind proves nothing
	changes bool // something in it may change files
	last    uint // where the last such command begins
}

// readLine takes a line apart. What cannot be parsed may have done anything.
func readLine(line string) read {
	r := read{changes: true, last: ^uint(0)}
	if len(line) > maxParsed || strings.ContainsAny(line, "\v\f\x00") || !utf8.ValidString(line) {
		return r // printing a word would lose these, and two commands would look the same
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return r
	}
	// A line that sets PATH or the like, or hides what it runs, may run other programs than its words name.
	r = read{ok: true, ended: permission.Classify(line).Class == permission.HumanRequired}
	r.walkAll(file.Stmts, true, true)
	r.effects(file)
	return r
}

// changedBehind tells whether something behind the part may change files.
func (r read) changedBehind(p part) bool { return r.changes && r.last > p.at }

// walk collects the parts. proves and alone hold for the line's exit code as long as nothing in between hides it.
func (r *read) walk(s *syntax.Stmt, proves, alone bool) {
	if s == nil || s.Cmd == nil {
		return
	}
	if s.Background || s.Negated || s.Coprocess {
		proves, alone = false, false
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		r.call(c, proves, alone)
	case *syntax.BinaryCmd:
		r.binary(c, proves, alone)
	case *syntax.TimeClause:
		r.walk(c.Stmt, proves, alone)
	case *syntax.Subshell:
		r.walkAll(c.Stmts, proves, alone)
	case *syntax.Block:
		r.walkAll(c.Stmts, proves, alone)
	case *syntax.DeclClause, *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause: // they run nothing
	case *syntax.FuncDecl: // a function may bear the name of any program
		r.opaque, r.ended = true, true
	default:
		r.opaque = true
		syntax.Walk(s, func(n syntax.Node) bool {
			if c, ok := n.(*syntax.CallExpr); ok && ends(literals(c)) {
				r.ended = true
			}
			return true
		})
	}
}

// enders are builtins behind which a line may not go on, or not with the programs that its words name.
var enders = set("exit", "exec", "return", "trap", "alias", "eval", "source", ".", "enable", "break", "continue", "logout", "kill", "builtin", "hash", "suspend", "")

func ends(words []string) bool {
	for len(words) > 0 && words[0] == "command" {
		words = words[1:]
		for len(words) > 0 && strings.HasPrefix(words[0], "-") {
			words = words[1:]
		}
	}
	if len(words) == 0 {
		return false
	}
	if strings.Contains(words[0], `\`) {
		return true // some other name, or a builtin in disguise
	}
	if words[0] == "set" || words[0] == "shopt" { // set -n reads commands and runs none
		return slices.ContainsFunc(words[1:], func(w string) bool {
			return w == "" || w == "noexec" || w == "expand_aliases" || strings.HasPrefix(w, "-") && strings.Contains(w, "n")
		})
	}
	return enders[words[0]]
}

func (r *read) binary(c *syntax.BinaryCmd, proves, alone bool) {
	switch c.Op {
	case syntax.AndStmt:
		r.walk(c.X, proves, false)
		r.walk(c.Y, proves, alone && isQuiet(c.X))
	case syntax.Pipe, syntax.PipeAll: // the exit code is that of the last part, unless somebody set pipefail
		r.walk(c.X, false, false)
		r.walk(c.Y, proves, false)
	default: // || hides the first, and the second may not have run
		r.walk(c.X, false, false)
		r.walk(c.Y, false, false)
	}
}

func (r *read) walkAll(stmts []*syntax.Stmt, proves, alone bool) {
	for i, s := range stmts {
		last := i == len(stmts)-1
		r.walk(s, proves && last, alone && last && len(stmts) == 1)
	}
}

// isQuiet tells whether a part before && is one whose failure would not be taken for the check's: cd and the like.
func isQuiet(s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	return ok && len(c.Args) > 0 && c.Args[0].Lit() == "cd"
}

func (r *read) call(c *syntax.CallExpr, proves, alone bool) {
	if len(c.Args) == 0 {
		return
	}
	words := literals(c)
	if ends(words) {
		r.ended = true
	}
	if r.ended {
		proves, alone = false, false
	}
	at := skipWrapper(words)
	check := at < len(words) && isCheck(words[at:])
	if !check {
		at = 0
	}
	if text, ok := printed(c.Args[at:]); ok {
		r.parts = append(r.parts, part{text, check, proves, alone, c.Pos().Offset()})
		return
	}
	r.opaque = true
}

// literals are the words of a call; "" stands for anything that is not plain text.
func literals(c *syntax.CallExpr) []string {
	words := make([]string, len(c.Args))
	for i, w := range c.Args {
		words[i] = w.Lit()
	}
	return words
}

func printed(words []*syntax.Word) (string, bool) {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if err := syntax.NewPrinter().Print(&b, w); err != nil {
			return "", false
		}
	}
	return b.String(), true
}

// effects looks everywhere, substitutions, loops and functions included.
func (r *read) effects(file *syntax.File) {
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 && mayChange(n) {
				r.changed(n)
			}
		case *syntax.Redirect:
			if writes(n) {
				r.changed(n)
			}
		}
		return true
	})
}

func (r *read) changed(n syntax.Node) {
	if at := n.Pos().Offset(); !r.changes || at > r.last {
		r.changes, r.last = true, at
	}
}

func writes(n *syntax.Redirect) bool {
	switch n.Op {
	case syntax.RdrIn, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return false
	case syntax.DplOut:
		return n.Word == nil || strings.Trim(n.Word.Lit(), "0123456789-") != "" || n.Word.Lit() == ""
	}
	return n.Word == nil || n.Word.Lit() != "/dev/null"
}
