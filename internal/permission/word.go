package permission

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wordUse is where a word stands; it decides which expansions bash does there.
type wordUse int

const (
	asArgument wordUse = iota
	asAssigned         // right side of an assignment, here-string: no splitting, no globs
	asPattern          // case and [[ ]]: patterns match text, not files
	asHeredoc          // body of a here-document: quotes are text
)

// trait is what bash would still do to a word after quote removal.
type trait uint

const (
	expands     trait = 1 << iota // parameter or arithmetic expansion, substitution
	splits                        // unquoted: may become several words or none
	globs                         // names files
	braces                        // brace expansion
	tilde                         // home directory
	ansi                          // $'…': decoded, so static, but no name of a program is written so in good faith
	placeholder                   // {} of find: a path
)

// hole stands for a dynamic piece in the masked text of a word.
const hole = "\ue000"

// word is one word after quote removal.
type word struct {
	text   string // dynamic pieces as they are written
	masked string // dynamic pieces as holes
	src    string
	traits trait
}

func (x word) dynamic() bool { return x.traits&(expands|splits|globs|braces|tilde|placeholder) != 0 }
func (x word) static() bool  { return !x.dynamic() }

func literal(s string) word { return word{text: s, masked: s, src: s} }

func texts(words []word) []string {
	out := make([]string, len(words))
	for i, x := range words {
		out[i] = x.text
	}
	return out
}

// wordBuf gathers a word: its text, the text with holes, and its shape, in which everything quoted or dynamic is an x.
type wordBuf struct {
	text, masked, shape []byte
	traits              trait
}

func (b *wordBuf) quoted(s string) {
	b.text, b.masked = append(b.text, s...), append(b.masked, s...)
	b.shape = append(b.shape, 'x')
}

func (b *wordBuf) dynamic(src string, t trait) {
	b.text, b.masked = append(b.text, src...), append(b.masked, hole...)
	b.shape = append(b.shape, 'x')
	b.traits |= t
}

// word judges one word and returns it after quote removal.
func (w *walker) word(x *syntax.Word, use wordUse) word {
	if x == nil {
		return word{}
	}
	var b wordBuf
	for _, p := range x.Parts {
		w.wordPart(&b, p, use, false)
	}
	src := w.text(x)
	out := word{text: string(b.text), src: src, traits: b.traits}
	out.masked = out.text
	if b.traits&(expands|splits) != 0 {
		out.masked = string(b.masked)
	}
	if use == asArgument || use == asAssigned {
		out.traits |= shapeTraits(b.shape, use)
	}
	switch {
	case out.traits&(expands|splits) != 0:
		w.raise(DynamicOrdinary, src, "an expansion")
	case out.traits&globs != 0:
		w.raise(DynamicOrdinary, src, "a file name pattern")
	case out.traits&braces != 0:
		w.raise(DynamicOrdinary, src, "a brace expansion")
	case out.traits&tilde != 0:
		w.raise(DynamicOrdinary, src, "a home directory expansion")
	}
	if w.hides == "" && hidesSubstitution(out.masked) {
		w.hides = src
	}
	return out
}

func hidesSubstitution(s string) bool {
	return strings.Contains(s, "$(") || strings.Contains(s, "`") || strings.Contains(s, "${") || strings.Contains(s, "$[")
}

// shapeTraits finds globs, braces and tildes among the unquoted characters. Where it cannot tell it says yes.
func shapeTraits(shape []byte, use wordUse) trait {
	s := string(shape)
	var t trait
	if strings.HasPrefix(s, "~") || strings.Contains(s, "=~") || strings.Contains(s, ":~") {
		t |= tilde
	}
	if use != asArgument {
		return t
	}
	if strings.ContainsAny(s, "*?") {
		t |= globs
	}
	if i := strings.IndexByte(s, '['); i >= 0 && strings.IndexByte(s[i:], ']') > 1 {
		t |= globs
	}
	if i := strings.IndexByte(s, '{'); i >= 0 {
		j := strings.LastIndexByte(s, '}')
		if j > i && (strings.Contains(s[i:j], ",") || strings.Contains(s[i:j], "..")) {
			t |= braces
		}
	}
	return t
}

func (w *walker) wordPart(b *wordBuf, part syntax.WordPart, use wordUse, quoted bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		w.lit(b, p.Value, use, quoted)
	case *syntax.SglQuoted:
		if !p.Dollar {
			b.quoted(p.Value)
			return
		}
		b.traits |= ansi
		s, ok := decodeANSI(p.Value)
		if !ok {
			w.raiseOpaque(w.text(p), "an escape that is not understood")
		}
		b.quoted(s)
	case *syntax.DblQuoted:
		if p.Dollar {
			w.raise(DynamicOrdinary, w.text(p), "a translated string")
			b.traits |= expands
		}
		b.shape = append(b.shape, 'x')
		for _, q := range p.Parts {
			w.wordPart(b, q, use, true)
		}
	case *syntax.ParamExp:
		w.param(p)
		b.dynamic(w.text(p), unquotedSplits(use, quoted)|expands)
	case *syntax.ArithmExp:
		w.arithmetic(w.text(p), p.X)
		b.dynamic(w.text(p), unquotedSplits(use, quoted)|expands)
	case *syntax.CmdSubst:
		w.substitution(p)
		b.dynamic(w.text(p), unquotedSplits(use, quoted)|expands)
	case *syntax.ProcSubst:
		w.raise(HumanRequired, w.text(p), "a process substitution")
		w.stmts(p.Stmts)
		b.dynamic(w.text(p), expands)
	default: // extended globs, which bash does not read by default, and forms of other shells
		w.raiseOpaque(w.text(p), "a form that is not understood")
		b.dynamic(w.text(p), expands|splits)
	}
}

func unquotedSplits(use wordUse, quoted bool) trait {
	if use == asArgument && !quoted {
		return splits
	}
	return 0
}

func (w *walker) substitution(p *syntax.CmdSubst) {
	src := w.text(p)
	w.raise(HumanRequired, src, "a command substitution")
	if textMakers.MatchString(src) {
		w.smuggled.source = src
	}
	if p.TempFile || p.ReplyVar || p.Backquotes && strings.Contains(src, `\`) {
		w.out.Opaque = true // bash versions and the parser differ on these
	}
	w.stmts(p.Stmts)
}

// lit appends literal text with its backslashes removed as bash would.
func (w *walker) lit(b *wordBuf, s string, use wordUse, quoted bool) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' || i+1 >= len(s) {
			b.text, b.masked = append(b.text, c), append(b.masked, c)
			if !quoted && use != asHeredoc {
				b.shape = append(b.shape, c)
			}
			continue
		}
		next := s[i+1]
		literalBackslash := (quoted || use == asHeredoc) && strings.IndexByte("$`\"\\\n", next) < 0
		if literalBackslash {
			b.quoted(`\`)
			continue
		}
		i++
		if next != '\n' {
			b.quoted(string(next))
		}
	}
}

// param judges a parameter expansion and everything nested in it.
func (w *walker) param(p *syntax.ParamExp) {
	src := w.text(p)
	if p.NestedParam != nil || p.Flags != nil || p.Width || p.IsSet || len(p.Modifiers) > 0 {
		w.raiseOpaque(src, "a form that bash does not know")
	}
	w.reshaped(p, src)
	if p.Index != nil {
		w.evaluates = "an array index"
		w.arith(p.Index)
	}
	if p.Slice != nil {
		w.evaluates = "a substring"
		w.arith(p.Slice.Offset)
		w.arith(p.Slice.Length)
	}
	if p.Repl != nil {
		w.word(p.Repl.Orig, asPattern)
		w.word(p.Repl.With, asPattern)
	}
	if p.Exp == nil {
		return
	}
	value := w.word(p.Exp.Word, asPattern)
	switch p.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if p.Param != nil {
			w.assigned(p.Param.Value, src, value.text)
		}
	case syntax.OtherParamOps:
		if value.text == "P" || value.text == "" {
			w.raiseOpaque(src, "prompt expansion runs what the value holds")
		}
	case syntax.MatchEmpty, syntax.ArrayExclude, syntax.ArrayIntersect:
		w.raiseOpaque(src, "a form that bash does not know")
	}
}

var ansiSimple = map[byte]byte{'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'n': '\n', 'r': '\r', 't': '\t', 'v': 11, '\\': '\\', '\'': '\'', '"': '"', '?': '?'}

// decodeANSI decodes the inside of $'…'. It refuses what ends the string early (NUL) and what it does not know.
func decodeANSI(s string) (string, bool) {
	if !strings.Contains(s, `\`) {
		return s, true
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out.WriteByte(s[i])
			continue
		}
		i++
		if i >= len(s) {
			return out.String(), false
		}
		if c, ok := ansiSimple[s[i]]; ok {
			out.WriteByte(c)
			continue
		}
		n, ok := ansiNumber(&out, s[i:])
		if !ok {
			return out.String(), false
		}
		i += n - 1
	}
	return out.String(), true
}

// ansiNumber decodes \nnn, \xHH, \uHHHH and \UHHHHHHHH; s starts after the backslash. It returns the bytes used.
func ansiNumber(out *strings.Builder, s string) (int, bool) {
	base, start, most := 8, 0, 3
	switch s[0] {
	case 'x':
		base, start, most = 16, 1, 2
	case 'u':
		base, start, most = 16, 1, 4
	case 'U':
		base, start, most = 16, 1, 8
	}
	end := start
	for end < len(s) && end < start+most && isDigit(s[end], base) {
		end++
	}
	n, err := strconv.ParseUint(s[start:end], base, 32)
	if err != nil || n == 0 || n > 0x10ffff {
		return 0, false
	}
	if most > 3 {
		out.WriteRune(rune(n))
		return end, true
	}
	out.WriteByte(byte(n))
	return end, n < 256
}

func isDigit(c byte, base int) bool {
	if base == 8 {
		return c >= '0' && c <= '7'
	}
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
