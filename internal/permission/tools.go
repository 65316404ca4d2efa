package permission

import "strings"

// toolJudges looks into everyday programs whose options start other programs.
var toolJudges = map[string]judge{
	"git":                              (*walker).git,
	"go":                               (*walker).golang,
	"make gmake gnumake bmake":         (*walker).make,
	"tar gtar bsdtar":                  (*walker).tar,
	"sort gsort":                       argv("sort packs with a program", "--compress-program"),
	"rg":                               (*walker).ripgrep,
	"ag ugrep":                         spawning("unpacks with programs from PATH", "-z", "--search-zip", "--decompress"),
	"man":                              (*walker).man,
	"ssh autossh mosh":                 (*walker).ssh,
	"scp sftp":                         (*walker).scp,
	"rsync":                            (*walker).rsync,
	"gcc g++ cc c++ clang clang++ cpp": (*walker).compiler,
	"wget":                             (*walker).wget,
	"tcpdump":                          argv("tcpdump packs with a program", "-z"),
	"svn":                              argv("svn starts a program", "--diff-cmd", "--diff3-cmd", "--editor-cmd"),
	"install ginstall":                 argv("install starts a program", "--strip-program"),
	"cargo":                            contains("a setting that names a program", "wrapper", "runner", "linker"),
	"npm pnpm yarn":                    (*walker).npm,
	"npx pnpx bunx":                    (*walker).npx,
	"mvn gradle gradlew mvnw ant":      spawning("runs build code that the line names", "-I", "--init-script"),
	"docker podman nerdctl kubectl oc": (*walker).container,
	"uvx":                              (*walker).npx,
	"uv poetry pipenv pdm hatch rye pixi conda mamba pipx":      runner(0, "run", "tool", "exec"),
	"bundle bundler rbenv pyenv mise asdf volta nvm fnm dotenv": runner(0, "exec", "run", "x"),
	"cmake ctest":   runner(0, "env"),
	"perf coverage": runner(0, "record", "stat", "run"),
}

// argv is for options whose value is a program, run without a shell.
func argv(why string, options ...string) judge {
	return func(w *walker, words []word) {
		eachValue(words, options, func(v word) { w.named(v, why) })
	}
}

// eachValue calls f with the value of every given option up to --; long options may be shortened to four letters.
func eachValue(words []word, options []string, f func(word)) {
	for i, x := range words[1:] {
		if x.text == "--" {
			return
		}
		name, v, _ := given(words, i+1)
		for _, o := range options {
			if name == o || len(name) > 3 && strings.HasPrefix(o, name) {
				f(v)
			}
		}
	}
}

// spawning is for options that make the program start others by itself.
func spawning(why string, options ...string) judge {
	return func(w *walker, words []word) {
		for _, x := range words[1:] {
			for _, o := range options {
				if x.text == o || strings.HasPrefix(x.text, o+"=") || len(o) == 2 && isCluster(x.text, o[1]) {
					w.raise(DynamicOrdinary, x.src, why)
				}
			}
		}
	}
}

func isCluster(s string, letter byte) bool {
	return len(s) > 1 && s[0] == '-' && s[1] != '-' && strings.IndexByte(s, letter) > 0
}

func (w *walker) golang(words []word) {
	for i := 1; i < len(words); i++ {
		x := words[i]
		t := strings.TrimPrefix(x.text, "-")
		if t == x.text {
			if x.text == "env" {
				w.goEnv(words[i:])
				return
			}
			continue
		}
		t = strings.TrimPrefix(t, "-")
		name, value, has := strings.Cut(t, "=")
		switch name {
		case "exec", "toolexec", "vettool", "compiler":
		case "args", "":
			return
		default:
			continue
		}
		v := word{text: value, masked: value, src: x.src, traits: x.traits}
		if !has && i+1 < len(words) {
			v = words[i+1]
		}
		if name != "compiler" || v.text != "gc" && v.text != "gccgo" {
			w.named(v, "go hands its work to a program")
		}
	}
}

func (w *walker) goEnv(words []word) {
	for _, x := range words[1:] {
		if name, value, ok := splitAssign(x.text); ok {
			w.raise(DynamicOrdinary, x.src, "an assignment")
			w.assigned(name, x.src, value)
		}
	}
}

func (w *walker) wget(words []word) {
	argv("wget asks a program", "--use-askpass")(w, words)
	contains("a setting that names a program", "use_askpass")(w, words)
}

// compiler judges -wrapper, whose value is a program and its arguments with commas between.
func (w *walker) compiler(words []word) {
	for i, x := range words[1:] {
		if x.text != "-wrapper" || i+2 >= len(words) {
			continue
		}
		v := words[i+2]
		v.text = strings.ReplaceAll(v.text, ",", " ")
		w.named(v, "the compiler starts its parts with a program")
	}
}

func (w *walker) make(words []word) {
	for i, x := range words[1:] {
		name, value, has := strings.Cut(x.text, "=")
		switch {
		case has && (namingNames[strings.TrimRight(name, ":?+")] || strings.TrimRight(name, ":?+") == "MAKE"):
			w.makeProgram(word{text: value, masked: value, src: x.src, traits: x.traits})
		case strings.Contains(x.masked, "$(") || strings.Contains(x.masked, "`") || strings.Contains(x.masked, "${") || strings.Contains(x.text, "!="):
			w.raiseOpaque(x.src, "make expands this and can run a shell")
		case len(name) > 3 && strings.HasPrefix("--eval", name), x.text == "-E":
			w.raiseOpaque(phrase(words), "make evaluates this")
		case (name == "-f" || longIs(name, "--file") || longIs(name, "--makefile")) && (has && fromInput(value) || !has && i+2 < len(words) && fromInput(words[i+2].text)),
			strings.HasPrefix(x.text, "-f") && fromInput(x.text[2:]):
			w.raiseOpaque(phrase(words), "make reads its program from its input")
		case has && strings.TrimRight(name, ":?+") == "SHELL":
			w.shellOrNamed(word{text: value, masked: value, src: x.src, traits: x.traits}, "every recipe line goes to this program")
		case has && strings.TrimRight(name, ":?+") == ".SHELLFLAGS", has && strings.TrimRight(name, ":?+") == "MAKEFLAGS":
			w.raiseOpaque(x.src, "make hands its recipes to something else")
		}
	}
}

func (w *walker) tar(words []word) {
	for i := range words[1:] {
		name, v, _ := given(words, i+1)
		switch {
		case len(name) > 5 && strings.HasPrefix("--to-command", name), longOf(name, "--info-script", 6), longOf(name, "--new-volume-script", 6), longOf(name, "--rsh-command", 5),
			longOf(name, "--rmt-command", 5):
			w.shellString(v, "tar hands this to a shell")
		case longOf(name, "--checkpoint-action", 12) && (strings.Contains(v.text, "exec") || v.dynamic()):
			w.raiseOpaque(phrase(words), "tar hands this to a shell")
		case longOf(name, "--use-compress-program", 6):
			w.shellOrNamed(v, "tar packs with a program")
		}
	}
	w.tarClusters(words)
}

// tarClusters judges I and F among the short options, with and without the dash of the first word.
func (w *walker) tarClusters(words []word) {
	for i, x := range words[1:] {
		old := i == 0 && x.text != "" && x.text[0] != '-'
		if !old && (len(x.text) < 2 || x.text[0] != '-' || x.text[1] == '-') {
			continue
		}
		taken := i + 2
		for at, letter := range strings.TrimPrefix(x.text, "-") {
			if !strings.ContainsRune("bCFfgHIKLNTVX", letter) {
				continue
			}
			rest := strings.TrimPrefix(x.text, "-")[at+1:]
			v := word{text: rest, masked: rest, src: x.src, traits: x.traits}
			if old || rest == "" {
				if taken >= len(words) {
					break
				}
				v = words[taken]
				taken++
			}
			switch letter {
			case 'I':
				w.shellOrNamed(v, "tar packs with a program")
			case 'F':
				w.shellString(v, "tar hands this to a shell")
			}
			if !old {
				break
			}
		}
	}
}

func longOf(given, full string, least int) bool {
	return len(given) >= least && strings.HasPrefix(full, given)
}

func (w *walker) ripgrep(words []word) {
	argv("rg starts a program for every file", "--pre", "--hostname-bin")(w, words)
	for _, x := range words[1:] {
		if x.text == "--" {
			return
		}
		if x.text == "--search-zip" || isCluster(x.text, 'z') && !strings.ContainsAny(x.text[:strings.IndexByte(x.text, 'z')], "efgtTmABCEMrjd") {
			w.raise(DynamicOrdinary, x.src, "unpacks with programs from PATH")
		}
	}
}

func (w *walker) man(words []word) {
	opts, _, _ := grammar{valued: "PpCRLmMSserEH", flags: "adDfhikKlwWtTXZ7?uIV", long: set("--pager --preprocessor --html --config-file"), permute: true}.parse(words)
	for _, o := range opts {
		if o.name == "-P" || longOf(o.name, "--pager", 4) || o.name == "-H" || longOf(o.name, "--html", 4) {
			w.shellOrNamed(o.value, "man shows its page with a program")
		}
	}
}

var sshGrammar = grammar{valued: "BbcDEeFIiJLlmOoPpRSWw", flags: "1246AaCfGgKkMNnqsTtVvXxYy"}

// sshOption judges -o name=value.
func (w *walker) sshOption(v word) {
	name := strings.ToLower(v.text)
	for _, k := range []string{"proxycommand", "localcommand", "knownhostscommand", "permitlocalcommand", "include", "match", "proxyusefdpass", "pkcs11provider", "securitykeyprovider", "xauthlocation"} {
		if strings.HasPrefix(name, k) {
			w.raiseOpaque(v.src, "ssh hands this to a shell")
		}
	}
}

func (w *walker) ssh(words []word) {
	opts, first, ok := sshGrammar.parse(words)
	for _, o := range opts {
		switch o.name {
		case "-o":
			w.sshOption(o.value)
		case "-I", "-F":
			w.raise(HumanRequired, phrase(words), "settings that can run a program")
		}
	}
	if !ok {
		w.raiseOpaque(phrase(words), "options of ssh that are not understood")
		return
	}
	if first+1 < len(words) { // options may stand behind the host too
		rest := append([]word{words[0]}, words[first+1:]...)
		more, n, _ := sshGrammar.parse(rest)
		for _, o := range more {
			if o.name == "-o" {
				w.sshOption(o.value)
			}
		}
		if n < len(rest) {
			line := word{text: strings.Join(texts(rest[n:]), " "), src: phrase(words)}
			for _, x := range rest[n:] {
				line.traits |= x.traits
			}
			w.shellString(line, "a line for a shell on another machine")
		}
	}
}

func (w *walker) scp(words []word) {
	opts, _, _ := grammar{valued: "cDFiJloPSXbBR", flags: "346ABCOpqrTvafN", permute: true}.parse(words)
	for _, o := range opts {
		switch o.name {
		case "-o":
			w.sshOption(o.value)
		case "-S", "-D":
			w.named(o.value, "a program for the connection")
		}
	}
}

func (w *walker) rsync(words []word) {
	for i, x := range words[1:] {
		name, v, has := given(words, i+1)
		switch {
		case longOf(name, "--rsync-path", 5):
			w.raiseOpaque(phrase(words), "a line for a shell on another machine")
		case longOf(name, "--rsh", 4) || isCluster(x.text, 'e') && strings.HasSuffix(x.text, "e") && !has:
			w.named(v, "rsync connects with a program")
		case isCluster(x.text, 'e') && strings.IndexByte(x.text, 'e') < len(x.text)-1:
			v.text = x.text[strings.IndexByte(x.text, 'e')+1:]
			w.named(v, "rsync connects with a program")
		}
	}
}

// makeProgram judges the value of a variable that recipes run: deny and ask look at it, and signs of the shell make it a line.
func (w *walker) makeProgram(value word) {
	if value.dynamic() || strings.ContainsAny(value.text, ";|&<>`$()\n") {
		w.shellString(value, "recipes hand this to a shell")
		return
	}
	if fields := strings.Fields(value.text); len(fields) > 0 {
		w.part(SimpleCommand{Words: fields, Seen: true})
	}
}
