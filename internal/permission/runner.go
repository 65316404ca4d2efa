package permission

import "strings"

// runner is for programs that run one of their later words as a program, in a place of their own: shells and
// interpreters among the words are judged, and what follows the verb is shown to deny and ask.
func runner(operands int, verbs ...string) judge {
	return func(w *walker, words []word) {
		w.innerShells(words)
		for i := 1; i < len(words); i++ {
			for _, v := range verbs {
				if words[i].text == v {
					w.afterVerb(words[i+1:], operands)
					return
				}
			}
		}
	}
}

// container judges what starts a program elsewhere: an image or a pod stands before the program.
func (w *walker) container(words []word) {
	for i, x := range words[1:] {
		if name, v, _ := given(words, i+1); name == "--entrypoint" {
			w.named(v, "starts a container with a program")
		}
		if x.text == "run" || x.text == "exec" {
			w.innerShells(words)
			w.afterVerb(words[i+2:], 1)
			return
		}
	}
	w.innerShells(words)
}

// afterVerb records, for deny and ask, the program that follows options and the given number of operands. The word behind an option may be
// its value, so what stands behind that is recorded too.
func (w *walker) afterVerb(rest []word, operands int) {
	valued := false
	for len(rest) > 0 && strings.HasPrefix(rest[0].text, "-") {
		end := rest[0].text == "--"
		valued = !end && !strings.Contains(rest[0].text, "=")
		rest = rest[1:]
		if end {
			operands = 0
			break
		}
		if valued && len(rest) > 1 && strings.HasPrefix(rest[1].text, "-") {
			rest = rest[1:] // the value of an option with another one behind it
		}
	}
	most := operands
	if valued {
		most++
	}
	for i := 0; i <= most && i < len(rest); i++ {
		if rest[i].text == "--" {
			w.afterVerb(rest[i:], 0)
			return
		}
		w.part(SimpleCommand{Words: texts(rest[i:]), Seen: true})
	}
}

// innerShells judges the first shell or interpreter among the words.
func (w *walker) innerShells(words []word) {
	for i := 1; i < len(words); i++ {
		base := strings.ToLower(baseName(words[i].text))
		if words[i].dynamic() || strings.HasPrefix(base, "-") || !codeRunner(base) {
			continue
		}
		if i == len(words)-1 && !shellNames[base] {
			return // an image or a package of that name
		}
		w.program(words[i:], false)
		return
	}
}

var shellNames = set("sh bash dash zsh ksh ash fish csh tcsh")

// codeRunner tells that a name is a shell, an interpreter or awk and the like.
func codeRunner(base string) bool {
	trimmed := strings.TrimRight(base, "0123456789.")
	return runnerNames[base] || trimmed != "" && runnerNames[trimmed]
}

// runsFiles tells that a name is a shell or an interpreter, whose operand is a program.
func runsFiles(base string) bool { return codeRunner(base) && !indirect[base] }

var runnerNames = set(`sh bash dash zsh ksh ash fish csh tcsh busybox pwsh powershell cmd python pypy ipython node nodejs deno bun perl ruby php lua luajit
	env sudo timeout nice nohup xargs awk sed eval tclsh Rscript julia find su`)

var indirect = set("env sudo timeout nice nohup xargs awk sed eval find su")

func (w *walker) npm(words []word) {
	for i, x := range words[1:] {
		if x.text == "--" {
			break
		}
		if setting := strings.TrimLeft(x.text, "-"); strings.HasPrefix(setting, "script-shell") || strings.HasPrefix(setting, "node-options") && i > 0 {
			w.raiseOpaque(phrase(words), "npm hands its scripts to something else")
			return
		}
	}
	for i, x := range words[1:] {
		name, v, _ := given(words, i+1)
		switch {
		case name == "--script-shell" || name == "--node-options" || name == "--shell" || name == "--git":
			w.raiseOpaque(phrase(words), "npm hands its scripts to something else")
			return
		case longOf(name, "--call", 4), name == "-c" && x.static():
			w.shellString(v, "npm hands a string to a shell")
			return
		case x.text == "explore":
			w.raiseOpaque(phrase(words), "npm hands its words to a shell")
			return
		case x.text == "exec" || x.text == "x" || x.text == "dlx" || x.text == "node":
			w.innerShells(words)
			if x.text == "node" && i == 0 {
				return
			}
			w.npxRest(words[i+1:])
			return
		case x.text == "--" || npmScripts[x.text]:
			return
		case i == 0 && baseName(words[0].text) == "yarn" && x.static() && !strings.HasPrefix(x.text, "-"):
			w.part(SimpleCommand{Words: texts(words[1:]), Seen: true})
			return
		}
	}
}

// npmScripts are subcommands after which words belong to a script or name packages.
var npmScripts = set("run run-script test t start stop restart install i ci add remove uninstall publish view pack ls audit outdated update version init create")

func (w *walker) npx(words []word) {
	w.innerShells(words)
	w.npxRest(words)
}

// npxRest judges the words after npx or npm exec.
func (w *walker) npxRest(words []word) {
	for i, x := range words[1:] {
		name, v, _ := given(words, i+1)
		switch {
		case name == "-c" || longOf(name, "--call", 4):
			w.shellString(v, "a string for a shell")
			return
		case name == "-p" || name == "--package" || !strings.HasPrefix(x.text, "-") || x.text == "--":
			w.afterVerb(words[i+1:], 0)
			return
		}
	}
}
