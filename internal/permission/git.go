package permission

import "strings"

// gitGlobals are the options of git before its subcommand.
var gitGlobals = grammar{valued: "Cc", flags: "pPvh", long: set("--git-dir --work-tree --namespace --super-prefix --config-env --attr-source --list-cmds")}

// gitSubcommand returns the index of the subcommand, len(words) when there is none.
func gitSubcommand(words []word) int {
	_, first, _ := gitGlobals.parse(words)
	return first
}

func (w *walker) git(words []word) {
	opts, first, ok := gitGlobals.parse(words)
	if !ok && first < len(words) && words[first].dynamic() && words[first].traits&splits != 0 {
		w.raise(DynamicOrdinary, words[first].src, "a computed option of git")
	}
	for _, o := range opts {
		switch {
		case o.name == "-c":
			w.gitSetting(o.value)
		case o.name == "--config-env":
			w.gitSetting(o.value)
		case o.name == "--exec-path" && o.has:
			w.raiseOpaque(phrase(words), "the folder of git's own programs")
		}
	}
	for _, x := range words[min(first, len(words)):] {
		if strings.Contains(x.text, "ext::") {
			w.raiseOpaque(x.src, "a transport that runs a shell")
		}
	}
	if first < len(words) {
		w.gitCommand(words[first:])
	}
}

// programSettings are keys whose value git runs; a trailing dot means any key below.
var shellSettings = []string{"alias.", "pager.", "credential.", "difftool.", "mergetool.", "browser.", "man.", "guitool.", "trailer.", "include.", "includeif.",
	"sendemail.", "remote.", "url.", "submodule.", "merge.", "filter.", "diff.", "tar."}

var shellKeys = set(`core.sshcommand core.pager core.editor core.askpass core.gitproxy sequence.editor diff.external interactive.difffilter
	uploadpack.packobjectshook protocol.ext.allow instaweb.browser core.alternaterefscommand web.browser init.templatedir receive.procreceiverefs`)

var argvKeys = set("core.fsmonitor core.hookspath gpg.program gpg.openpgp.program gpg.x509.program gpg.ssh.program gpg.ssh.defaultkeycommand")

// gitSetting judges key=value of git -c.
func (w *walker) gitSetting(x word) {
	key, value, _ := strings.Cut(x.text, "=")
	if x.dynamic() && strings.Contains(strings.Split(x.masked, "=")[0], hole) {
		w.raiseOpaque(x.src, "a computed setting of git")
		return
	}
	w.gitKey(strings.ToLower(key), word{text: value, masked: value, src: x.src, traits: x.traits})
}

func (w *walker) gitKey(key string, value word) {
	switch {
	case argvKeys[key]:
		if value.text == "true" || value.text == "false" {
			return
		}
		w.shellOrNamed(value, "a setting that names a program")
	case shellKeys[key] || runsBelow(key):
		w.raiseOpaque(value.src, "a setting of git that a shell runs")
	}
}

func runsBelow(key string) bool {
	for _, p := range shellSettings {
		if !strings.HasPrefix(key, p) {
			continue
		}
		last := key[strings.LastIndexByte(key, '.')+1:]
		switch p {
		case "alias.", "pager.", "include.", "includeif.", "guitool.":
			return true
		case "url.":
			return false
		}
		switch last {
		case "helper", "cmd", "path", "command", "textconv", "driver", "clean", "smudge", "process", "uploadpack", "receivepack", "update", "smtpserver",
			"tocmd", "cccmd", "sendmailcmd", "headercmd", "vcs", "cmds":
			return true
		}
	}
	return false
}

// commandOptions are options of git subcommands whose value a shell runs.
var commandOptions = map[string][]string{
	"clone":      {"--upload-pack", "-u"},
	"fetch":      {"--upload-pack"},
	"pull":       {"--upload-pack"},
	"fetch-pack": {"--upload-pack", "--exec"},
	"ls-remote":  {"--upload-pack", "--exec"},
	"push":       {"--receive-pack", "--exec"},
	"send-pack":  {"--receive-pack", "--exec"},
	"archive":    {"--exec"},
	"rebase":     {"--exec", "-x"},
	"difftool":   {"--extcmd", "-x"},
	"send-email": {"--sendmail-cmd", "--to-cmd", "--cc-cmd", "--header-cmd", "--smtp-server"},
	"svn":        {"--exec"},
	"daemon":     {"--access-hook"},
}

func (w *walker) gitCommand(words []word) {
	name := words[0].text
	if words[0].dynamic() {
		return // dynamic_ordinary already: the program is git
	}
	for _, opt := range commandOptions[name] {
		w.gitOption(words, opt)
	}
	switch name {
	case "grep":
		w.gitGrep(words)
	case "bisect":
		if len(words) > 2 && words[1].text == "run" {
			w.dynamicInner(words[2:], phrase(words), "git bisect runs a program")
		}
	case "submodule":
		w.gitForeach(words)
	case "filter-branch", "shell", "remote-ext", "instaweb", "for-each-repo":
		w.raiseOpaque(phrase(words), "git "+name+" hands its arguments to a shell")
	case "config":
		w.gitConfig(words)
	case "clone", "init":
		for i, x := range words {
			if (x.text == "-c" || x.text == "--config") && i+1 < len(words) {
				w.gitSetting(words[i+1])
			}
			if v, ok := strings.CutPrefix(x.text, "-c"); ok && v != "" {
				w.gitSetting(word{text: v, masked: v, src: x.src, traits: x.traits})
			}
			if v, ok := strings.CutPrefix(x.text, "--config="); ok {
				w.gitSetting(word{text: v, masked: v, src: x.src, traits: x.traits})
			}
		}
	}
}

// gitOption judges one option that takes a command; git accepts any unique beginning of a long name.
func (w *walker) gitOption(words []word, opt string) {
	for i, x := range words[1:] {
		if x.text == "--" {
			return
		}
		name, value, has := strings.Cut(x.text, "=")
		long := len(name) > 3 && strings.HasPrefix(opt, "--") && strings.HasPrefix(opt, name)
		at := -1
		if len(opt) == 2 && isCluster(x.text, opt[1]) {
			at = strings.IndexByte(x.text, opt[1])
		}
		short := at > 0
		if !long && !short {
			continue
		}
		v := word{text: value, masked: value, src: x.src, traits: x.traits}
		switch {
		case short && len(x.text) > at+1:
			v.text = x.text[at+1:]
		case !has && i+2 < len(words):
			v = words[i+2]
		}
		w.shellString(v, "git hands "+opt+" to a shell")
	}
}

func (w *walker) gitGrep(words []word) {
	for _, x := range words[1:] {
		if x.text == "--" {
			return
		}
		ok := isCluster(x.text, 'O') && !strings.ContainsAny(x.text[:strings.IndexByte(x.text, 'O')], "efmABC")
		value := ""
		if ok {
			value = x.text[strings.IndexByte(x.text, 'O')+1:]
		} else {
			name, v, _ := strings.Cut(x.text, "=")
			ok, value = len(name) > 4 && strings.HasPrefix("--open-files-in-pager", name), v
		}
		if !ok {
			continue
		}
		w.raise(DynamicOrdinary, x.src, "opens what it finds with a program")
		if value != "" {
			w.shellOrNamed(word{text: value, masked: value, src: x.src, traits: x.traits}, "opens what it finds with a program")
		}
	}
}

func (w *walker) gitForeach(words []word) {
	for i, x := range words[1:] {
		if x.text != "foreach" {
			continue
		}
		rest := words[i+2:]
		for len(rest) > 0 && strings.HasPrefix(rest[0].text, "-") {
			rest = rest[1:]
		}
		line := word{text: strings.Join(texts(rest), " "), src: phrase(words)}
		for _, y := range rest {
			line.traits |= y.traits
		}
		w.shellString(line, "git submodule foreach hands its words to a shell")
		return
	}
}

// gitConfig judges git config, which can store a command for later.
func (w *walker) gitConfig(words []word) {
	_, first, ok := grammar{valued: "ft", flags: "lezh", long: set("--file --blob --type --default --value --comment")}.parse(words)
	if !ok && first < len(words) && words[first].dynamic() {
		w.raiseOpaque(phrase(words), "a computed setting of git")
		return
	}
	rest := words[min(first, len(words)):]
	if len(rest) > 0 && (rest[0].text == "set" || rest[0].text == "edit") {
		_, n, _ := grammar{}.parse(rest)
		rest = rest[n:]
	}
	if len(rest) > 1 {
		if rest[0].dynamic() {
			w.raiseOpaque(phrase(words), "a computed setting of git")
			return
		}
		value := rest[1]
		value.src = phrase(words)
		w.gitKey(strings.ToLower(rest[0].text), value)
	}
}
