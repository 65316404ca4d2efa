package permission

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// smuggling is what a line needs to bring an option to a program by way of an expansion: a text that can be an option, and a program
// that takes a computed word where an option may stand. Either half alone is harmless.
type smuggling struct {
	source     string // a text that is an option, or text that was made in ways that are not followed
	hyphen     string // a text that holds a hyphen inside, which a cut or a replacement can bring to the front
	cuts       bool   // an expansion cuts or replaces
	into, name string // the computed word and its program
	dollar     string // a text that holds a $ or a backquote, which a second reading may expand
	fed        string // a text that holds an option and goes to the input of something
	reads      bool   // a program gets words from its input
}

// unmoved are programs and builtins whose options run nothing, or whose judge looks at computed words itself.
var unmoved = set(`printf read mapfile readarray test [ let export declare typeset local readonly nameref unset getopts wait tee set shopt alias trap eval
	source . enable hash jobs compgen complete coproc cd echo`)

// operandOptions are options whose value, in the next word, is never an option itself.
var operandOptions = map[string]map[string]bool{
	"git":  set("-m -am -F -S -G -C -L --message --file --author --date --grep --format --since --until"),
	"find": set("-name -iname -path -ipath -wholename -regex -iregex -type -size -mtime -atime -ctime -mmin -newer -user -group -perm -maxdepth -mindepth -samefile -lname -printf"),
	"rg":   set("-e -f -g -t -T -A -B -C -m -r --regexp --glob --type"),
	"tar":  set("-C -f -X --directory --file --exclude"),
	"sort": set("-k -t -o -S -T --key --output"),
	"make": set("-C -j -f --directory"),
	"go":   set("-run -bench -o -tags -timeout -count -ldflags"),
	"gh":   set("-t -b -F --title --body --body-file"),
}

// textMakers print text that stands in the line itself, or change text.
var textMakers = regexp.MustCompile(`\b(echo|printf|awk|gawk|mawk|sed|perl|python[0-9.]*|ruby|node|tr|rev|cut|base64|xxd|jq)\b|<<`)

// given records a text that a variable, a loop or the positional parameters get.
func (s *smuggling) given(text, src string) {
	if strings.ContainsAny(text, "$`") {
		s.dollar = src
	}
	switch dashIn(text) {
	case atStart:
		s.source = src
	case inside:
		s.hyphen = src
	}
}

// input records a text that goes to the input of another program.
func (s *smuggling) input(text, src string) {
	if dashIn(text) == atStart || strings.Contains(text, `\`) && strings.Contains(text, "5") {
		s.fed = src
	}
}

// printed is input for the words of echo and printf.
func (s *smuggling) printed(words []word) {
	rest := words[1:]
	for len(rest) > 0 && (rest[0].text == "-n" || rest[0].text == "-e" || rest[0].text == "-ne" || rest[0].text == "-E" || rest[0].text == "--") {
		rest = rest[1:]
	}
	for _, x := range rest {
		s.input(x.masked, phrase(words))
	}
}

type dash int

const (
	nowhere dash = iota
	inside       // after a letter or digit: foo-bar
	atStart      // where a word may begin
)

func dashIn(text string) dash {
	found := nowhere
	for i := range len(text) {
		if text[i] != '-' {
			continue
		}
		if i > 0 && (text[i-1] == '_' || text[i-1] >= '0' && text[i-1] <= '9' || text[i-1] >= 'A' && text[i-1] <= 'Z' || text[i-1] >= 'a' && text[i-1] <= 'z') {
			found = inside
			continue
		}
		return atStart
	}
	return found
}

// computedOptions looks for computed words where options of a program may stand.
func (w *walker) computedOptions(words []word) {
	base := baseName(words[0].text)
	if unmoved[base] || judgeOf(words[0].text) == nil {
		return
	}
	for i, x := range words[1:] {
		if x.text == "--" {
			return
		}
		if x.traits&braces != 0 && dashIn(x.text) == atStart {
			w.smuggled.source, w.smuggled.into, w.smuggled.name = x.src, x.src, words[0].text
			return
		}
		if x.traits&(expands|splits) == 0 {
			continue
		}
		before := words[i]
		quoted := x.traits&splits == 0
		if quoted && i > 0 && before.static() && operandOptions[base][before.text] {
			continue
		}
		switch at := strings.Index(x.masked, hole); {
		case at < 0:
		case at > 0 && x.masked[0] == '-' && !strings.Contains(x.masked[:at], "=") && (x.masked[1] == '-' || base == "find"):
			w.smuggled.into, w.smuggled.name = x.src, words[0].text
			w.smuggled.source = x.src
		case at == 0, x.traits&splits != 0 && !strings.Contains(x.masked, "="):
			w.smuggled.into, w.smuggled.name = x.src, words[0].text
		}
	}
}

// streamed finds a program text that comes out of a process substitution.
func (w *walker) streamed(words []word) {
	base := strings.ToLower(baseName(words[0].text))
	if !runsFiles(base) && instructed[base] == nil {
		return
	}
	for _, x := range words[1:] {
		if strings.Contains(x.text, "<(") && x.traits&expands != 0 {
			w.raiseOpaque(x.src, "a program that comes out of a process substitution")
		}
	}
}

// reshaped judges the operator of an expansion: what it cuts off, puts in or decodes.
func (w *walker) reshaped(p *syntax.ParamExp, src string) {
	s := &w.smuggled
	if p.Excl {
		w.evaluates = "an indirect expansion"
	}
	s.cuts = s.cuts || p.Slice != nil || p.Repl != nil
	if p.Repl != nil && p.Repl.With != nil {
		s.given(w.text(p.Repl.With), src)
	}
	if p.Exp == nil {
		return
	}
	switch p.Exp.Op {
	case syntax.OtherParamOps:
		s.source = src
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if p.Exp.Word != nil {
			s.given(strings.Trim(w.text(p.Exp.Word), `"'\`), src)
		}
	default:
		s.cuts = true
	}
}

// settleOptions raises the class when both halves are there.
func (w *walker) settleOptions() {
	s := w.smuggled
	if s.source == "" && s.reads {
		s.source = s.fed
	}
	if s.source == "" && s.cuts {
		s.source = s.hyphen
	}
	if s.source != "" && s.into != "" {
		w.raiseOpaque(s.into, "an option for "+s.name+" may be computed here")
	}
}

// spawners are words by which code in a language starts programs, or makes code from text.
var spawners = regexp.MustCompile("system|shell script|exec|spawn|popen|subprocess|child_process|qx|backtick|`|fork|pty|eval|__import__|importlib|getattr|ctypes|syscall|dlopen|Process|Command|open[ (]*[\"'|]|\\|")

// code judges program text for an interpreter: text that can start programs hides what runs from deny rules.
func (w *walker) code(src, text string) {
	w.raise(HumanRequired, src, "code on the command line")
	if spawners.MatchString(text) {
		w.out.Opaque = true
	}
}

// readsCode judges an interpreter that reads its program from its input; what the line holds may be that program.
func (w *walker) readsCode(src string) {
	w.raise(HumanRequired, src, "an interpreter that reads its program from its input")
	if spawners.MatchString(strings.ReplaceAll(w.src, "|", "")) {
		w.out.Opaque = true
	}
}
