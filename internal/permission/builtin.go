package permission

import "strings"

// builtinJudges looks into bash's own commands that run or prepare code.
var builtinJudges = map[string]judge{
	"eval":           (*walker).eval,
	"source .":       opaque("reads commands from a file into this shell"),
	"alias":          (*walker).alias,
	"trap":           (*walker).trap,
	"enable":         (*walker).enable,
	"hash":           (*walker).hash,
	"set":            (*walker).setBuiltin,
	"shopt":          (*walker).shopt,
	"mapfile":        (*walker).mapfile,
	"readarray":      (*walker).mapfile,
	"compgen":        (*walker).completion,
	"complete":       (*walker).completion,
	"compopt":        human("changes what completion runs"),
	"bind":           human("binds keys to commands"),
	"fc":             human("runs commands from the history"),
	"jobs":           (*walker).jobs,
	"coproc":         opaque("a coprocess"),
	"printf":         (*walker).printf,
	"read":           (*walker).read,
	"getopts":        (*walker).getopts,
	"unset":          (*walker).unset,
	"test [":         (*walker).testBuiltin,
	"wait":           (*walker).wait,
	"let":            (*walker).let,
	"tee":            (*walker).tee,
	"export declare": (*walker).declareWords,
	"typeset local":  (*walker).declareWords,
	"readonly":       (*walker).declareWords,
	"nameref":        (*walker).declareWords,
}

func (w *walker) eval(words []word) {
	args := words[1:]
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	line := word{text: strings.Join(texts(args), " "), src: phrase(words)}
	for _, x := range args {
		line.traits |= x.traits
	}
	w.shellString(line, "eval runs its words as a line")
}

func (w *walker) alias(words []word) {
	for _, x := range words[1:] {
		if x.dynamic() || strings.Contains(x.text, "=") {
			w.raiseOpaque(phrase(words), "an alias can stand in for any program")
		}
	}
	w.raise(HumanRequired, phrase(words), "an alias can stand in for any program")
}

func (w *walker) trap(words []word) {
	if len(words) > 2 && words[1].text != "-" && words[1].text != "" {
		args := words[1:]
		if args[0].text == "--" {
			args = args[1:]
		}
		w.shellString(args[0], "a trap runs this later")
	}
	w.raise(HumanRequired, phrase(words), "a trap runs something later")
}

func (w *walker) enable(words []word) {
	for _, x := range words[1:] {
		if x.dynamic() || x.text != "-a" && x.text != "-p" {
			w.raiseOpaque(phrase(words), "changes which commands are builtins")
		}
	}
}

func (w *walker) hash(words []word) {
	for _, x := range words[1:] {
		if x.dynamic() || strings.HasPrefix(x.text, "-") && strings.Contains(x.text, "p") {
			w.raiseOpaque(phrase(words), "changes which file a name runs")
		}
	}
}

func (w *walker) setBuiltin(words []word) {
	for i, x := range words[1:] {
		if x.text != "--" && i > 0 {
			w.smuggled.given(x.masked, phrase(words))
		}
	}
	for i, x := range words[1:] {
		if x.text == "--" || x.text == "-" {
			break
		}
		if x.dynamic() {
			w.raiseOpaque(phrase(words), "computed options of the shell")
		}
		next := ""
		if i+2 < len(words) {
			next = words[i+2].text
		}
		isFlag := len(x.text) > 1 && (x.text[0] == '-' || x.text[0] == '+')
		if !isFlag {
			continue
		}
		if strings.Contains(x.text, "k") || strings.HasSuffix(x.text, "o") && (next == "keyword" || next == "history" || next == "posix") {
			w.raiseOpaque(phrase(words), "changes how the shell reads words")
		}
	}
}

func (w *walker) shopt(words []word) {
	for _, x := range words[1:] {
		switch {
		case x.dynamic():
			w.raiseOpaque(phrase(words), "computed options of the shell")
		case x.text == "expand_aliases", x.text == "extglob", x.text == "extdebug", x.text == "keyword", strings.HasPrefix(x.text, "compat"):
			w.raiseOpaque(phrase(words), "changes how the shell reads words")
		}
	}
}

func (w *walker) mapfile(words []word) {
	opts, first, ok := grammar{valued: "dnOsuCc", flags: "t"}.parse(words)
	for _, o := range opts {
		if o.name == "-C" {
			w.shellString(o.value, "a callback that bash evaluates")
			w.out.Opaque = true
		}
	}
	w.names(words, first, ok, "mapfile")
}

// names judges words that are names of variables to set.
func (w *walker) names(words []word, first int, ok bool, what string) {
	w.evaluates = what
	w.smuggled.source = phrase(words)
	if !ok {
		w.raiseOpaque(phrase(words), "options of "+what+" that are not understood")
		return
	}
	for _, x := range words[min(first, len(words)):] {
		if x.dynamic() {
			w.raise(HumanRequired, x.src, "the name of the variable is computed")
			w.out.Opaque = true
			continue
		}
		w.assigned(x.text, x.src, "")
	}
	w.raise(DynamicOrdinary, phrase(words), "an assignment")
}

func (w *walker) read(words []word) {
	_, first, ok := grammar{valued: "adinNptu", flags: "ersE"}.parse(words)
	for i, x := range words[:min(first, len(words))] {
		if x.text == "-a" && i+1 < len(words) {
			w.assigned(words[i+1].text, x.src, "")
		}
	}
	w.names(words, first, ok, "read")
}

func (w *walker) getopts(words []word) {
	w.evaluates = "getopts"
	if len(words) > 2 {
		w.assigned(words[2].text, words[2].src, "")
	}
	w.raise(DynamicOrdinary, phrase(words), "an assignment")
}

func (w *walker) printf(words []word) {
	if len(words) < 2 {
		return
	}
	if words[1].dynamic() && words[1].traits&splits != 0 {
		w.evaluates = "printf"
		return
	}
	name, ok := strings.CutPrefix(words[1].text, "-v")
	if !ok {
		return
	}
	x := words[1]
	if name == "" && len(words) > 2 {
		x, name = words[2], words[2].text
	}
	w.evaluates = "printf -v"
	if strings.Contains(phrase(words), `\`) {
		w.smuggled.dollar = phrase(words)
	}
	w.smuggled.source = phrase(words)
	w.raise(DynamicOrdinary, phrase(words), "an assignment")
	if x.dynamic() {
		w.raiseOpaque(x.src, "the name of the variable is computed")
	}
	w.assigned(name, x.src, "")
}

func (w *walker) unset(words []word) {
	w.evaluates = "unset"
	for _, x := range words[1:] {
		if x.static() && !strings.HasPrefix(x.text, "-") {
			w.assigned(x.text, x.src, "")
		}
	}
}

func (w *walker) testBuiltin(words []word) {
	for _, x := range words[1:] {
		if x.text == "-v" || x.text == "-R" {
			w.evaluates = "test -v"
		}
	}
}

func (w *walker) wait(words []word) {
	for _, x := range words[1:] {
		if strings.HasPrefix(x.text, "-") && strings.Contains(x.text, "p") {
			w.names(words, len(words), true, "wait -p")
		}
	}
}

func (w *walker) let(words []word) {
	w.raise(DynamicOrdinary, phrase(words), "arithmetic")
	w.evaluates = "let"
	for _, x := range words[1:] {
		if name, _, ok := splitAssign(strings.TrimSpace(x.text)); ok {
			w.assigned(name, x.src, "")
		}
	}
}

func (w *walker) completion(words []word) {
	for _, x := range words[1:] {
		flag := strings.HasPrefix(x.text, "-") && strings.ContainsAny(x.text, "CFW")
		if x.dynamic() || flag {
			w.raiseOpaque(phrase(words), "completion runs what it is given")
		}
	}
}

func (w *walker) jobs(words []word) {
	for i, x := range words[1:] {
		if strings.HasPrefix(x.text, "-") && strings.Contains(x.text, "x") {
			w.dynamicInner(words[i+2:], phrase(words), "jobs runs a program")
			return
		}
	}
}

// tee writes the files it is given, as a redirect would.
func (w *walker) tee(words []word) {
	for _, x := range words[1:] {
		if x.static() && !strings.HasPrefix(x.text, "-") {
			w.out.Targets = append(w.out.Targets, Target{Path: x.text, Write: true})
		}
	}
}

// declareWords judges a declaring builtin that the parser saw as an ordinary command (quoted, or behind command).
func (w *walker) declareWords(words []word) {
	src := phrase(words)
	if words[0].text == "nameref" {
		return // not a command of bash
	}
	for _, x := range words[1:] {
		name, value, ok := splitAssign(x.text)
		switch {
		case ok:
			w.raise(DynamicOrdinary, x.src, "an assignment")
			w.smuggled.given(value, x.src)
			w.assigned(name, x.src, value)
		case strings.Contains(x.text, "["):
			w.evaluates = "a declaration"
			w.raise(DynamicOrdinary, x.src, "an assignment")
			w.assigned(x.text, x.src, "")
		default:
			w.declareOption(src, x)
		}
	}
}
