package permission

import (
	"regexp"
	"strings"
)

// stringJudges looks into programs that have a language of their own which can start others.
var stringJudges = map[string]judge{
	"awk gawk mawk nawk original-awk goawk": (*walker).awk,
	"sed gsed":                              (*walker).sed,
	"vi vim nvim view gvim vimdiff rvim ex": (*walker).vim,
	"ed red":                                opaque("an editor that can run a shell"),
	"emacs emacsclient":                     (*walker).emacs,
	"less more most":                        (*walker).less,
	"gdb lldb":                              opaque("a debugger that runs commands"),
	"sqlite3 duckdb":                        contains("a shell command of the database client", ".shell", ".system", ".sh ", ".sy", ".import", "load_extension", "edit(", "writefile", ".excel", ".www", ".once", ".output"),
	"psql mysql mariadb":                    contains("a shell command of the database client", `\!`, "program", `\copy`, "system ", `\g`, `\o`),
	"dc bc":                                 contains("a shell command of the calculator", "!"),
	"socat":                                 contains("starts a program", "exec:", "system:", "shell:"),
	"m4 dialog":                             opaque("a language that can run a shell"),
	"nc ncat netcat":                        (*walker).netcat,
	"zip":                                   flagged("a string for a shell", "-TT", "--unzip-command"),
	"split":                                 flagged("a string for a shell", "--filter"),
	"fzf sk":                                flagged("a string for a shell", "--preview", "--bind", "--with-shell"),
	"nodemon concurrently hyperfine watchexec onchange chokidar foreman": opaque("hands strings to a shell"),
	"apt apt-get aptitude dpkg": contains("a hook that a shell runs", "invoke", "dpkg::", "--pre-", "--post-", "--path-"),
	"ansible ansible-console":   flagged("a command elsewhere", "-a", "--args", "-m"),
	"gcloud vagrant":            flagged("a string for a shell", "--command", "-c"),
	"nix-shell nix":             flagged("a string for a shell", "--run", "--command", "-c", "--expr", "-E"),
	"direnv":                    human("runs what a folder says"),
	"hg":                        contains("a setting that runs a program", "--config"),
	"gh glab":                   (*walker).gh,
}

// contains is for programs where some text in an argument starts another program.
func contains(why string, parts ...string) judge {
	return func(w *walker, words []word) {
		for _, x := range words[1:] {
			for _, p := range parts {
				if strings.Contains(strings.ToLower(x.text), p) {
					w.raiseOpaque(x.src, why)
				}
			}
		}
	}
}

// flagged is for programs where an option takes a string for a shell; long options may be shortened.
func flagged(why string, options ...string) judge {
	return func(w *walker, words []word) {
		eachValue(words, options, func(v word) {
			w.shellString(v, why)
			w.out.Opaque = true
		})
	}
}

func (w *walker) gh(words []word) {
	for i, x := range words {
		if x.text == "alias" && i+1 < len(words) && words[i+1].text == "set" {
			w.raiseOpaque(phrase(words), "an alias can stand in for any program")
		}
	}
}

func (w *walker) netcat(words []word) {
	for i, x := range words[1:] {
		switch {
		case strings.HasPrefix(x.text, "--sh-exec"), strings.HasPrefix(x.text, "--lua"), x.text == "-c":
			w.raiseOpaque(phrase(words), "a string for a shell")
		case (x.text == "-e" || x.text == "--exec") && i+2 < len(words):
			w.named(words[i+2], "a connection starts a program")
		case strings.HasPrefix(x.text, "-e") || strings.HasPrefix(x.text, "--exec"):
			w.raiseOpaque(phrase(words), "a connection starts a program")
		}
	}
}

func (w *walker) less(words []word) {
	for _, x := range words[1:] {
		if strings.HasPrefix(x.text, "+") || strings.HasPrefix(x.text, "-k") || strings.HasPrefix(x.text, "--lesskey") {
			w.raiseOpaque(x.src, "commands for the pager")
		}
	}
}

func (w *walker) vim(words []word) {
	for _, x := range words[1:] {
		t := x.text
		if t == "--" {
			return
		}
		short := len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.ContainsAny(t[1:], "cesSuW")
		if short || strings.HasPrefix(t, "+") && strings.TrimLeft(t[1:], "0123456789") != "" || t == "--cmd" || t == "--remote-expr" || t == "--remote-send" ||
			t == "-" || strings.HasPrefix(t, "--clean") {
			w.raiseOpaque(phrase(words), "commands for the editor")
			return
		}
	}
	if baseName(words[0].text) == "ex" {
		w.raiseOpaque(phrase(words), "an editor that reads commands")
	}
}

func (w *walker) emacs(words []word) {
	for _, x := range words[1:] {
		switch strings.TrimLeft(x.text, "-") {
		case "eval", "execute", "f", "funcall", "l", "load", "batch", "script", "e":
			w.raiseOpaque(phrase(words), "code for the editor")
			return
		}
		if strings.Contains(x.text, "-eval=") || strings.Contains(x.text, "-funcall=") || strings.Contains(x.text, "-load=") {
			w.raiseOpaque(phrase(words), "code for the editor")
			return
		}
	}
}

var awkGrammar = grammar{valued: "Fvfmieo" + "lEW", flags: "bcCgGhknOpPrsStVdDL", long: set("--field-separator --assign --file --exec --source --load --include")}

// awk judges the program text of awk.
func (w *walker) awk(words []word) {
	src := phrase(words)
	opts, first, ok := awkGrammar.parse(words)
	fromFile := false
	for _, o := range opts {
		switch o.name {
		case "-f", "--file", "-E", "--exec":
			fromFile = true
			if o.value.dynamic() || fromInput(o.value.text) {
				w.raiseOpaque(src, "a program that is read from elsewhere")
			}
		case "-e", "--source":
			fromFile = true
			w.awkText(o.value)
		case "-l", "--load", "-i", "--include", "-W":
			w.raiseOpaque(src, "an extension of awk")
		case "--version", "--help", "-V", "-h":
			return
		}
	}
	switch {
	case !ok:
		w.raiseOpaque(src, "options of awk that are not understood")
	case fromFile:
	case first < len(words):
		w.awkText(words[first])
	}
}

// awkText raises for program text that may start a shell.
func (w *walker) awkText(x word) {
	if !strings.ContainsFunc(strings.ReplaceAll(x.masked, hole, ""), func(r rune) bool { return r > ' ' }) {
		w.raiseOpaque(x.src, "a computed awk program")
		return
	}
	if awkRuns(x.masked) {
		w.raiseOpaque(x.src, "an awk program that can run a shell")
	}
}

// awkSpans are regular expressions and strings that every awk reads alike: no quotes in the one, no slashes in the other.
var awkSpans = regexp.MustCompile("(^|[(,{;!~&=\n}])[ \t]*/[^/\"\\\\\\[\n]*(\\\\.[^/\"\\\\\\[\n]*)*/|\"[^\"/\\\\\n]*\"")

var awkSystem = regexp.MustCompile(`system\s*\(`)

// awkRuns tells that a program may start another. It looks for the words anywhere, and for pipes outside awkSpans.
func awkRuns(s string) bool {
	if awkSystem.MatchString(s) || strings.Contains(s, "@") || strings.Contains(s, "SYMTAB") || strings.Contains(s, "\\\n") {
		return true
	}
	s = strings.ReplaceAll(s, "||", "  ")
	return strings.Contains(s, "|") && strings.Contains(awkSpans.ReplaceAllString(s, "$1 "), "|")
}
