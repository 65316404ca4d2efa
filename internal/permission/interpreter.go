package permission

import "strings"

// shellJudges looks into shells: what they run comes from a file, a string or a pipe.
var shellJudges = map[string]judge{
	"sh bash dash zsh ksh ksh93 mksh lksh pdksh ash fish csh tcsh rbash yash hush posh elvish nu xonsh oksh": (*walker).shell,
	"pwsh powershell":         (*walker).powershell,
	"cmd command.com":         human("a string for the Windows shell"),
	"wsl":                     opaque("hands its words to a shell"),
	"su runuser":              (*walker).su,
	"sg newgrp login":         opaque("starts a shell"),
	"script":                  (*walker).script,
	"cscript wscript":         human("runs a script of Windows"),
	"mshta rundll32 regsvr32": opaque("runs code that it is given"),
}

// stdinFiles are operands that mean the standard input.
var stdinFiles = set("- /dev/stdin /dev/fd/0 /proc/self/fd/0")

// shellOptions is what the options of a shell ask for; rest is the index of the first operand.
type shellOptions struct {
	command, stdin, quiet, startup, computed bool
	attached                                 *word
	rest                                     int
}

// readShellOptions reads options as bash does: letters of one word share it, and each o or O takes a further word.
func readShellOptions(words []word) (o shellOptions) {
	for o.rest = 1; o.rest < len(words); o.rest++ {
		x := words[o.rest]
		if x.dynamic() && (x.traits&(splits|globs|braces) != 0 || strings.HasPrefix(x.masked, hole)) {
			o.computed = true
			return o
		}
		switch t := x.text; {
		case t == "--" || t == "-":
			o.rest++
			return o
		case strings.HasPrefix(t, "--"):
			o.long(t, x)
		case len(t) > 1 && (t[0] == '-' || t[0] == '+'):
			for _, letter := range t[1:] {
				o.letter(letter)
			}
		default:
			return o
		}
	}
	return o
}

func (o *shellOptions) letter(r rune) {
	switch r {
	case 'c':
		o.command = true
	case 's':
		o.stdin = true
	case 'o', 'O':
		o.rest++
	}
}

func (o *shellOptions) long(t string, x word) {
	name, value, has := strings.Cut(t, "=")
	switch name {
	case "--version", "--help":
		o.quiet = true
	case "--command":
		o.command = true
		if has {
			v := word{text: value, masked: value, src: x.src, traits: x.traits}
			o.attached = &v
		}
	case "--rcfile", "--init-file", "--init-command":
		o.startup = true
	}
}

func (w *walker) shell(words []word) {
	src := phrase(words)
	o := readShellOptions(words)
	switch {
	case o.quiet:
	case o.computed:
		w.raiseOpaque(src, "computed options of a shell")
	case o.startup, baseName(words[0].text) == "fish" && len(words) > 1 && words[1].text == "-C":
		w.raiseOpaque(src, "code that a shell reads first")
	case o.attached != nil:
		w.shellString(*o.attached, "a string for a shell")
	case o.command && o.rest < len(words):
		w.shellString(words[o.rest], "a string for a shell")
	case o.command:
		w.raiseOpaque(src, "a string for a shell")
	case o.stdin, o.rest >= len(words), fromInput(words[min(o.rest, len(words)-1)].text):
		w.raiseOpaque(src, "a shell that reads its program from its input")
	default: // a script may be a program that rules name
		w.part(SimpleCommand{Words: texts(words[o.rest:]), Seen: true})
	}
}

func fromInput(name string) bool {
	return stdinFiles[name] || strings.HasPrefix(name, "/dev/fd/") || strings.HasPrefix(name, "/proc/")
}

func (w *walker) powershell(words []word) {
	if len(words) == 1 {
		w.raiseOpaque(phrase(words), "a shell that reads its program from its input")
		return
	}
	for i, x := range words[1:] {
		t := strings.ToLower(strings.TrimLeft(x.text, "-/"))
		isFlag := x.text != t && len(t) > 0
		switch {
		case x.dynamic():
			w.raiseOpaque(phrase(words), "a computed argument of PowerShell")
			return
		case isFlag && (strings.HasPrefix("version", t) || t == "help" || t == "?"):
			return
		case isFlag && len(t) >= 1 && strings.HasPrefix("file", t) && i+2 < len(words):
			return
		case isFlag && (t == "noprofile" || t == "nologo" || t == "nop" || t == "noninteractive" || t == "noni" || t == "noexit"):
			continue
		case !isFlag && strings.HasSuffix(t, ".ps1") && strings.HasPrefix(baseName(words[0].text), "pwsh"):
			return
		}
		w.raiseOpaque(phrase(words), "a string for PowerShell")
		return
	}
	w.raiseOpaque(phrase(words), "a shell that reads its program from its input")
}

func (w *walker) su(words []word) {
	for i, x := range words[1:] {
		if (x.text == "-c" || x.text == "--command") && i+2 < len(words) {
			w.shellString(words[i+2], "a string for another user's shell")
			return
		}
	}
	if baseName(words[0].text) == "runuser" && len(words) > 3 && words[1].text == "-u" && words[2].static() {
		rest := words[3:]
		if rest[0].text == "--" {
			rest = rest[1:]
		}
		if len(rest) > 0 {
			w.wrap(words, len(words)-len(rest), false)
			return
		}
	}
	w.raiseOpaque(phrase(words), "a shell of another user")
}

func (w *walker) script(words []word) {
	opts, _, _ := grammar{valued: "cEIOBTmo", attached: "t", flags: "aefqV", long: set("--command"), permute: true}.parse(words)
	for _, o := range opts {
		if o.name == "-c" || len(o.name) > 3 && strings.HasPrefix("--command", o.name) {
			w.shellString(o.value, "script hands a string to a shell")
			return
		}
	}
	w.raiseOpaque(phrase(words), "starts a shell")
}

// interpreter is how a language runtime takes code.
type interpreter struct {
	grammar
	code     string          // short options that take code
	longCode map[string]bool // long options that take code
	quiet    map[string]bool // options after which nothing runs
	verbs    map[string]bool // first operands that take code: deno eval
	harmless bool            // without a program it does nothing or asks for one by file
}

var interpreters = map[string]interpreter{
	"python pypy ipython jython micropython": {grammar: grammar{valued: "cmWXQ", flags: "bBdEhiIOPqRsStuvVx?3", long: set("--check-hash-based-pycs")},
		code: "c", quiet: set("-V --version -h --help -?")},
	"node nodejs iojs": {grammar: grammar{valued: "erpC", flags: "chiv",
		long: set("--eval --print --require --import --loader --experimental-loader --conditions --env-file --input-type --title --inspect-port --test-reporter --test-name-pattern")},
		code: "ep", longCode: set("--eval --print"), quiet: set("-v --version -h --help --test --run")},
	"deno": {grammar: grammar{valued: "c"}, verbs: set("eval repl"), quiet: set("-V --version -h --help")},
	"bun":  {grammar: grammar{valued: "erp", long: set("--eval --print --preload")}, code: "ep", longCode: set("--eval --print"), verbs: set("repl exec"), harmless: true},
	"perl raku perl6": {grammar: grammar{valued: "eEI", attached: "iFCDVxMmd", flags: "acfghlnpsStTuUvwWX01234567"},
		code: "eE", quiet: set("-v --version -h --help -V")},
	"ruby jruby truffleruby mruby": {grammar: grammar{valued: "erIEC", attached: "ixFKTW", flags: "acdhlnpsSuUvwy01234567", long: set("--require --encoding")},
		code: "e", quiet: set("-v --version -h --help")},
	"php": {grammar: grammar{valued: "rRBEFfcdtSz", flags: "aimnqlsvwHCh", long: set("--run --process-code --process-begin --process-end --file --define")},
		code: "rRBE", longCode: set("--run --process-code --process-begin --process-end"), quiet: set("-v --version -h --help -i -m -f --file -S")},
	"lua luajit":        {grammar: grammar{valued: "elj", flags: "iEWv", long: nil}, code: "e", quiet: set("-v")},
	"Rscript R r":       {grammar: grammar{valued: "e", long: set("--file")}, code: "e", quiet: set("--version --help CMD")},
	"julia":             {grammar: grammar{valued: "eELptJCHm", flags: "qihv", long: set("--eval --print --load")}, code: "eE", longCode: set("--eval --print"), quiet: set("-v --version -h --help")},
	"tclsh wish expect": {grammar: grammar{valued: "cf", flags: "bdDinNv"}, code: "c", quiet: set("-v")},
	"osascript":         {grammar: grammar{valued: "els"}, code: "e"},
	"elixir":            {grammar: grammar{valued: "erS", long: set("--eval --require --erl")}, code: "e", longCode: set("--eval --erl"), quiet: set("--version -v")},
	"groovy scala ghc clojure clj bb guile racket sbcl ecl clisp chicken gosh ocaml octave crystal swift kotlin": {
		grammar: grammar{valued: "ecfglrE", long: set("--eval --load --expr")}, code: "eE", longCode: set("--eval --expr"), verbs: set("eval"), quiet: set("--version -v --help -h"), harmless: true},
	"erl iex irb pry ghci gforth gst swipl prolog gp jshell": {code: "egt", longCode: set("--eval")},
}

// evaluatingModules are Python modules that run code from their arguments.
var evaluatingModules = set("timeit code codeop pdb bdb IPython idlelib runpy asyncio")

func (w *walker) interpreter(words []word, spec interpreter) {
	src := phrase(words)
	opts, first, ok := spec.parse(words)
	quiet := false
	for _, o := range opts {
		short := strings.TrimPrefix(o.name, "-")
		switch {
		case len(short) == 1 && strings.Contains(spec.code, short), longMatches(spec.longCode, o.name):
			w.code(src, src)
			w.out.Opaque = w.out.Opaque || o.value.dynamic()
			return
		case o.name == "-m" && o.has && strings.HasPrefix(strings.ToLower(baseName(words[0].text)), "py"):
			w.module(words, o.value, src)
			return
		case o.name == "-M" || o.name == "-m" || o.name == "-d" || o.name == "--define" || o.name == "--import" || o.name == "--require" || o.name == "-r":
			w.loaded(o, src)
		}
		quiet = quiet || spec.quiet[o.name]
	}
	switch {
	case !ok:
		w.raise(HumanRequired, src, "options of an interpreter that are not understood")
		w.out.Opaque = true
	case quiet:
	case first >= len(words):
		if !spec.harmless || len(words) > 1 {
			w.readsCode(src)
		}
	case stdinFiles[words[first].text] || strings.HasPrefix(words[first].text, "data:"):
		w.readsCode(src)
	case spec.verbs == nil && words[first].static():
		w.part(SimpleCommand{Words: texts(words[first:]), Seen: true})
	case baseName(words[0].text) == "bun" && words[first].text == "x":
		w.afterVerb(words[first+1:], 0)
	case spec.verbs[words[first].text]:
		w.code(src, src)
	case spec.verbs != nil && words[first].text == "run":
		rest := append([]word{words[0]}, words[first+1:]...)
		spec.verbs, spec.harmless = nil, true
		w.interpreter(rest, spec)
	}
}

func longMatches(names map[string]bool, given string) bool {
	if names[given] {
		return true
	}
	return len(given) > 3 && strings.HasPrefix(given, "--") && anyHasPrefix(names, given)
}

func anyHasPrefix(names map[string]bool, prefix string) bool {
	for n := range names {
		if strings.HasPrefix(n, prefix) {
			return true
		}
	}
	return false
}

func (w *walker) module(words []word, m word, src string) {
	name, _, _ := strings.Cut(m.text, ".")
	switch {
	case m.dynamic():
		w.raiseOpaque(src, "a computed module")
	case evaluatingModules[name]:
		w.raise(HumanRequired, src, "a module that evaluates its arguments")
		w.out.Opaque = w.out.Opaque || spawners.MatchString(src)
	}
}

// loaded judges a library that an option loads; a name is like a script file, anything more is code.
func (w *walker) loaded(o option, src string) {
	if strings.HasPrefix(o.value.text, "data:") || o.value.dynamic() ||
		o.name == "-M" && strings.ContainsAny(o.value.text, ";(){}\"' \n$`") ||
		(o.name == "-d" || o.name == "--define") && strings.Contains(o.value.text, "_file") {
		w.code(src, o.value.text)
	}
}
