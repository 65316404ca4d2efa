package permission

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (w *walker) stmts(list []*syntax.Stmt) {
	if len(list) > 1 {
		w.out.Ops = true
	}
	for _, s := range list {
		w.stmt(s)
	}
}

func (w *walker) stmt(s *syntax.Stmt) {
	if s == nil {
		return
	}
	if s.Background {
		w.out.Ops, w.out.detached = true, true
	}
	if s.Coprocess || s.Disown {
		w.raiseOpaque(w.text(s), "a form that bash does not know")
	}
	if s.Negated {
		w.out.Ops = true
	}
	for _, r := range s.Redirs {
		w.redirect(r)
	}
	if s.Cmd != nil {
		w.command(s.Cmd)
	}
}

func (w *walker) command(cmd syntax.Command) {
	switch c := cmd.(type) {
	case *syntax.CallExpr:
		w.call(c)
		return
	case *syntax.DeclClause:
		w.declare(c)
		return
	case *syntax.TestClause:
		w.test(c.X)
		return
	case *syntax.TimeClause:
		if t := strings.Fields(w.text(c)); len(t) > 1 && strings.HasPrefix(t[1], "-") && (t[1] != "-p" || len(t) > 2 && strings.HasPrefix(t[2], "-")) {
			w.raiseOpaque(w.text(c), "options of time, which bash reads in its own way")
		}
		w.stmt(c.Stmt)
		return
	case *syntax.LetClause:
		w.raise(DynamicOrdinary, w.text(c), "arithmetic")
		w.evaluates = "let"
		for _, e := range c.Exprs {
			w.arith(e)
		}
		return
	case *syntax.ArithmCmd:
		w.arithmetic(w.text(c), c.X)
		return
	}
	w.out.Ops = true
	w.compound(cmd)
}

// compound visits groups and control flow; they are plain over static commands.
func (w *walker) compound(cmd syntax.Command) {
	switch c := cmd.(type) {
	case *syntax.BinaryCmd:
		w.stmt(c.X)
		w.stmt(c.Y)
	case *syntax.Subshell:
		w.stmts(c.Stmts)
	case *syntax.Block:
		w.stmts(c.Stmts)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			w.stmts(c.Cond)
			w.stmts(c.Then)
		}
	case *syntax.WhileClause:
		w.stmts(c.Cond)
		w.stmts(c.Do)
	case *syntax.ForClause:
		w.loop(c)
	case *syntax.CaseClause:
		w.cases(c)
	case *syntax.FuncDecl:
		w.raise(HumanRequired, w.text(c), "a function can stand in for any program")
		w.stmt(c.Body)
	case *syntax.CoprocClause:
		w.raise(HumanRequired, w.text(c), "a coprocess")
		w.stmt(c.Stmt)
	default:
		w.raiseOpaque(w.text(cmd), "a form that is not understood")
	}
}

func (w *walker) loop(c *syntax.ForClause) {
	if c.Braces {
		w.raiseOpaque(w.text(c), "an old form of loop")
	}
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		w.assigned(l.Name.Value, w.text(l), "")
		if !l.InPos.IsValid() {
			w.raise(DynamicOrdinary, w.text(l), "a loop over the positional parameters")
		}
		for _, item := range l.Items {
			w.smuggled.given(w.word(item, asArgument).masked, w.text(item))
		}
	case *syntax.CStyleLoop:
		w.arithmetic(w.text(l), l.Init, l.Cond, l.Post)
	default:
		w.raiseOpaque(w.text(c), "a form of loop that is not understood")
	}
	w.stmts(c.Do)
}

func (w *walker) cases(c *syntax.CaseClause) {
	if c.Braces {
		w.raiseOpaque(w.text(c), "a form that bash does not know")
	}
	w.word(c.Word, asPattern)
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			w.word(p, asPattern)
		}
		w.stmts(item.Stmts)
	}
}

// call visits a simple command: its assignments, then its words.
func (w *walker) call(c *syntax.CallExpr) {
	for _, a := range c.Assigns {
		w.assign(a)
	}
	if len(c.Args) == 0 {
		return
	}
	words := make([]word, len(c.Args))
	for i, a := range c.Args {
		words[i] = w.word(a, asArgument)
	}
	w.program(words, true)
}

// declare visits export, declare, typeset, local, readonly and nameref.
func (w *walker) declare(c *syntax.DeclClause) {
	part := []string{c.Variant.Value}
	for _, a := range c.Args {
		if a.Name == nil {
			if a.Value == nil {
				continue
			}
			v := w.word(a.Value, asArgument)
			part = append(part, v.text)
			w.declareOption(w.text(c), v)
			continue
		}
		part = append(part, w.text(a))
		if a.Naked && a.Index == nil {
			continue
		}
		w.assign(a)
	}
	if c.Variant.Value == "nameref" {
		w.raiseOpaque(w.text(c), "a name that stands for another variable")
	}
	w.part(SimpleCommand{Words: part})
}

// declareOption judges one option (or a computed argument) of a declaring builtin.
func (w *walker) declareOption(src string, v word) {
	if v.dynamic() {
		w.raiseOpaque(src, "a declaration with a computed argument")
		return
	}
	if len(v.text) < 2 || v.text[0] != '-' && v.text[0] != '+' {
		return
	}
	for _, flag := range v.text[1:] {
		switch flag {
		case 'n':
			w.raiseOpaque(src, "a name that stands for another variable")
		case 'i', 'a', 'A':
			w.evaluates = "a declaration"
		}
	}
}

func (w *walker) part(p SimpleCommand) {
	if len(w.out.Parts) >= maxParts {
		w.raiseOpaque(w.src, "too many commands in one line")
		return
	}
	w.out.Parts = append(w.out.Parts, p)
}

// assign judges name=value, wherever bash takes it as an assignment.
func (w *walker) assign(a *syntax.Assign) {
	src := w.text(a)
	value := ""
	if a.Value != nil {
		v := w.word(a.Value, asAssigned)
		value = v.text
		w.smuggled.given(v.masked, src)
	}
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				w.evaluates = "an array index"
				w.arith(e.Index)
			}
			if e.Value != nil {
				w.smuggled.given(w.word(e.Value, asAssigned).masked, src)
			}
		}
	}
	if a.Index != nil {
		w.evaluates = "an array index"
		w.arith(a.Index)
	}
	w.raise(DynamicOrdinary, src, "an assignment")
	if a.Name != nil {
		w.assigned(a.Name.Value, src, value)
	}
}

// assigned judges only the name that gets a value.
func (w *walker) assigned(name, src, value string) {
	switch variableKind(name) {
	case evaluated:
		w.raiseOpaque(src, "bash runs the value of "+name)
	case renaming:
		w.raiseOpaque(src, name+" can make any name run another program")
	case naming:
		w.raise(HumanRequired, src, name+" decides which code runs")
		if value == "" || strings.ContainsAny(value, "$`") {
			w.out.Opaque = true
			return
		}
		w.inner(value)
	case steering:
		w.raise(HumanRequired, src, name+" decides which code runs")
		w.out.Opaque = w.out.Opaque || strings.Contains(value, "exec") || cargoProgram(name)
	case ordinary:
	}
}

// redirect judges one redirect and remembers the file it names.
func (w *walker) redirect(r *syntax.Redirect) {
	src := w.text(r)
	if r.N != nil && len(r.N.Value) > 0 && r.N.Value[0] == '{' {
		w.raise(DynamicOrdinary, src, "a redirect that assigns")
		w.assigned(braced(r.N.Value), src, "")
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		w.heredoc(r, src)
		return
	case syntax.WordHdoc:
		w.smuggled.input(w.word(r.Word, asAssigned).masked, src)
		w.raise(DynamicOrdinary, src, "a here-string")
		return
	}
	target := w.word(r.Word, asArgument)
	if target.static() {
		if target.text == "/dev/null" && provable(r.Op) {
			return
		}
		if r.Op == syntax.DplOut && (target.text == "1" || target.text == "2") {
			return
		}
		if r.Op != syntax.DplIn && (r.Op != syntax.DplOut || !digits(target.text)) {
			w.out.Targets = append(w.out.Targets, Target{Path: target.text, Write: r.Op != syntax.RdrIn})
		}
	}
	w.computedTarget = w.computedTarget || target.dynamic() && r.Op != syntax.RdrIn && r.Op != syntax.DplIn
	w.raise(DynamicOrdinary, src, "a redirect")
}

func braced(s string) string {
	if len(s) < 2 {
		return s
	}
	return s[1 : len(s)-1]
}

func digits(s string) bool {
	for _, r := range s {
		if r < '0' || r > '9' {
			return s == "-"
		}
	}
	return true
}

func provable(op syntax.RedirOperator) bool {
	switch op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrIn, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.DplOut:
		return true
	}
	return false
}

// heredoc judges a here-document; only the simple delimiters are read alike by everyone.
func (w *walker) heredoc(r *syntax.Redirect, src string) {
	simple := len(r.Word.Parts) == 1
	if simple {
		switch p := r.Word.Parts[0].(type) {
		case *syntax.Lit:
			simple = plainName(strings.TrimPrefix(p.Value, `\`))
		case *syntax.SglQuoted:
			simple = !p.Dollar && plainName(p.Value)
		case *syntax.DblQuoted:
			lit, ok := single(p.Parts)
			simple = ok && !p.Dollar && plainName(lit)
		default:
			simple = false
		}
	}
	if !simple {
		w.raiseOpaque(src, "a here-document with an unusual delimiter")
	}
	if r.Hdoc != nil {
		w.smuggled.input(w.word(r.Hdoc, asHeredoc).masked, src)
	}
	w.raise(DynamicOrdinary, src, "a here-document")
}

func single(parts []syntax.WordPart) (string, bool) {
	if len(parts) != 1 {
		return "", false
	}
	lit, ok := parts[0].(*syntax.Lit)
	if !ok {
		return "", false
	}
	return lit.Value, true
}

// plainName: letters, digits, dash, dot and underscore only.
func plainName(s string) bool {
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.') {
			return false
		}
	}
	return s != ""
}
