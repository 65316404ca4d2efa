package permission

import (
	"strings"
)

// judge looks into the arguments of one kind of program.
type judge func(w *walker, words []word)

// judges by base name of the program; families with versions in their names are found by family.
var judges map[string]judge

func init() { // not a literal: the judges call program, which reads this map
	judges = map[string]judge{}
	for _, table := range []map[string]judge{builtinJudges, wrapperJudges, shellJudges, toolJudges, stringJudges} {
		for names, j := range table {
			for _, n := range strings.Fields(names) {
				judges[n] = j
			}
		}
	}
	for names, spec := range interpreters {
		for _, n := range strings.Fields(names) {
			judges[n] = func(w *walker, words []word) { w.interpreter(words, spec) }
		}
	}
	for names, spec := range wrapperSpecs {
		for _, n := range strings.Fields(names) {
			judges[n] = func(w *walker, words []word) { w.wrapper(words, spec) }
		}
	}
}

// program judges a simple command and records it. words[0] is its name.
func (w *walker) program(words []word, top bool) {
	if len(words) == 0 {
		return
	}
	if w.chain >= maxChain {
		w.raiseOpaque(shown(words[0].src), "too many wrappers around one program")
		return
	}
	w.chain++
	defer func() { w.chain-- }()
	w.part(SimpleCommand{Words: texts(words), Seen: !top})
	name := words[0]
	switch {
	case name.dynamic():
		w.raiseOpaque(name.src, "the name of the program is computed")
		return
	case name.traits&ansi != 0:
		w.raiseOpaque(name.src, "the name of the program is written in escapes")
		return
	case name.text == "":
		w.raiseOpaque(phrase(words), "no name of a program")
		return
	}
	if name.text == "echo" || name.text == "printf" {
		w.smuggled.printed(words)
	}
	if j := judgeOf(name.text); j != nil {
		w.computedOptions(words)
		w.streamed(words)
		j(w, words)
	}
}

// judgeOf finds the judge for a program, whatever its path, version or .exe suffix.
func judgeOf(name string) judge {
	base := baseName(name)
	if strings.HasPrefix(base, "ld-linux") || strings.HasPrefix(base, "ld-musl") || strings.HasPrefix(base, "ld-2") || strings.HasPrefix(base, "ld64.so") {
		base = "ld.so" // the loader runs the program that it is given
	}
	if j, ok := judges[base]; ok {
		return j
	}
	lower := strings.ToLower(base)
	if j, ok := judges[lower]; ok {
		return j
	}
	trimmed := strings.TrimRight(lower, "0123456789.-")
	if trimmed == lower || trimmed == "" {
		return nil
	}
	return judges[trimmed]
}

// baseName is the program without its folder and without .exe.
func baseName(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	if len(name) > 4 && strings.EqualFold(name[len(name)-4:], ".exe") {
		name = name[:len(name)-4]
	}
	return name
}

// wrap marks the part just recorded as a wrapper of words[n:], and judges what it wraps.
func (w *walker) wrap(words []word, n int, transparent bool) {
	if last := len(w.out.Parts) - 1; last >= 0 {
		w.out.Parts[last].Wraps = n
		w.out.Parts[last].Transparent = transparent
	}
	seen := len(w.out.Parts) > 0 && w.out.Parts[len(w.out.Parts)-1].Seen
	w.program(words[n:], !seen)
}

// dynamicInner judges a program that another one starts by argv: no rule can be reused, deny and ask look at it.
func (w *walker) dynamicInner(words []word, src, why string) {
	w.raise(DynamicOrdinary, src, why)
	w.program(words, false)
}

// named judges a value that names a program, alone or with arguments split at blanks.
func (w *walker) named(value word, why string) {
	w.raise(DynamicOrdinary, value.src, why)
	if value.dynamic() {
		w.raiseOpaque(value.src, why+", and it is computed")
		return
	}
	fields := strings.Fields(value.text)
	words := make([]word, len(fields))
	for i, f := range fields {
		words[i] = literal(strings.Trim(f, `"'`))
	}
	if len(words) > 0 {
		w.program(words, false)
	}
}

// shellString judges a value that a shell will read: always human_required, and looked into for deny and ask.
func (w *walker) shellString(value word, why string) {
	w.raise(HumanRequired, value.src, why)
	if value.dynamic() {
		w.out.Opaque = true
		return
	}
	w.inner(value.text)
}

// shellOrNamed: one bare program is argv, anything more is a string for a shell.
func (w *walker) shellOrNamed(value word, why string) {
	if value.static() && !strings.ContainsAny(value.text, " \t\n|&;<>()$`\\\"'*?[]{}!#~") {
		w.named(value, why)
		return
	}
	w.shellString(value, why)
}

// human is for a judge whose every call needs a person.
func human(why string) judge {
	return func(w *walker, words []word) { w.raise(HumanRequired, phrase(words), why) }
}

// opaque is human for programs that hide what they run.
func opaque(why string) judge {
	return func(w *walker, words []word) { w.raiseOpaque(phrase(words), why) }
}

func phrase(words []word) string {
	src := make([]string, len(words))
	for i, x := range words {
		src[i] = x.src
	}
	return strings.Join(src, " ")
}

// option is one argument that is an option, with its value where it has one.
type option struct {
	name  string // with its dashes, long names whole
	value word
	has   bool
}

// grammar is how a program reads its options.
type grammar struct {
	valued   string          // short options that take a value, attached or next
	attached string          // short options whose optional value is attached only
	flags    string          // short options without a value; empty: any other letter
	long     map[string]bool // long options that take the next word; others carry =value or none
	single   bool            // long options with one dash (go, java)
	permute  bool            // options may follow operands
}

// parse reads options from words[1:]. It returns them, the index of the first operand (len(words) when there is none),
// and false when a dynamic word stood where an option may stand or an option is unknown.
func (g grammar) parse(words []word) (opts []option, first int, ok bool) {
	ok, first = true, len(words)
	for i := 1; i < len(words); i++ {
		x := words[i]
		if x.dynamic() && (len(x.text) == 0 || x.traits&splits != 0 || strings.HasPrefix(x.masked, hole) || x.traits&(globs|braces) != 0) {
			if first > i {
				return opts, i, false
			}
			continue
		}
		if x.text == "--" {
			return opts, min(first, i+1), ok
		}
		if len(x.text) < 2 || x.text[0] != '-' {
			if first > i {
				first = i
			}
			if !g.permute {
				return opts, first, ok
			}
			continue
		}
		var used int
		var known bool
		opts, used, known = g.one(opts, words, i)
		ok = ok && known
		i += used
	}
	return opts, first, ok
}

// one reads the option at words[i]; used counts the following words it took.
func (g grammar) one(opts []option, words []word, i int) (out []option, used int, known bool) {
	x := words[i]
	if strings.HasPrefix(x.text, "--") || g.single {
		name, value, has := strings.Cut(x.text, "=")
		if g.single && !strings.HasPrefix(name, "--") {
			name = "-" + name
		}
		o := option{name: name, has: has, value: word{text: value, masked: value, src: x.src, traits: x.traits}}
		if !has && g.takes(name) && i+1 < len(words) {
			o.has, o.value, used = true, words[i+1], 1
		}
		return append(opts, o), used, true
	}
	known = true
	for j := 1; j < len(x.text); j++ {
		c := x.text[j : j+1]
		o := option{name: "-" + c}
		rest := x.text[j+1:]
		switch {
		case strings.Contains(g.valued, c):
			o.has = true
			if rest != "" {
				o.value = word{text: rest, masked: rest, src: x.src, traits: x.traits}
			} else if i+1 < len(words) {
				o.value, used = words[i+1], 1
			}
			return append(opts, o), used, known
		case strings.Contains(g.attached, c):
			o.has, o.value = true, word{text: rest, masked: rest, src: x.src, traits: x.traits}
			return append(opts, o), used, known
		case g.flags != "" && !strings.Contains(g.flags, c):
			known = false
		}
		opts = append(opts, o)
	}
	return opts, used, known
}

// takes tells whether a long option takes the next word; getopt accepts unique beginnings of a name.
func (g grammar) takes(name string) bool {
	if g.long[name] || g.single {
		return g.long[name]
	}
	for full := range g.long {
		if strings.HasPrefix(full, name) {
			return true
		}
	}
	return false
}

// given takes the argument at i apart as --name=value; without a value of its own, the next word is the value.
func given(words []word, i int) (name string, v word, has bool) {
	x := words[i]
	name, value, has := strings.Cut(x.text, "=")
	v = word{text: value, masked: value, src: x.src, traits: x.traits}
	if !has && i+1 < len(words) {
		v = words[i+1]
	}
	return name, v, has
}
