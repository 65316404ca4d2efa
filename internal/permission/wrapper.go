package permission

import "strings"

// wrapper is a program that runs the rest of its words as a program.
type wrapper struct {
	grammar
	operands    int  // words before the inner program
	transparent bool // changes nothing about what the inner program may do
	numeric     bool // -10 is an option
}

var wrapperSpecs = map[string]wrapper{
	"timeout": {grammar: grammar{valued: "ks", flags: "vfp", long: set("--kill-after --signal")}, operands: 1, transparent: true},
	"nice":    {grammar: grammar{valued: "n", flags: "-", long: set("--adjustment")}, transparent: true, numeric: true},
	"nohup":   {grammar: grammar{flags: "-"}, transparent: true},
	"stdbuf":  {grammar: grammar{valued: "ioe", flags: "-", long: set("--input --output --error")}, transparent: true},
	"time":    {grammar: grammar{valued: "fo", flags: "apvqV", long: set("--format --output")}, transparent: true},
	"ionice":  {grammar: grammar{valued: "cnpPu", flags: "t", long: set("--class --classdata --pid")}, transparent: true},
	"chrt":    {grammar: grammar{valued: "TPD", flags: "abdfiomprvR", long: set("--sched-runtime --sched-period --sched-deadline")}, operands: 1},
	"taskset": {grammar: grammar{flags: "apc"}, operands: 1},
	"setsid":  {grammar: grammar{flags: "cfw"}},
	"setarch": {grammar: grammar{flags: "vRFZLXBI3S"}, operands: 1},
	"builtin": {grammar: grammar{flags: "-"}, transparent: true},
	"exec":    {grammar: grammar{valued: "a", flags: "cl"}, transparent: true},
	"doas":    {grammar: grammar{valued: "uC", flags: "nL"}},
	"chroot":  {grammar: grammar{flags: "-", long: set("--userspec --groups")}, operands: 1},
	"strace ltrace": {grammar: grammar{valued: "aeEoOpPsSuUbIX", flags: "cCdfFhiknqrtTvVxyzwDZ",
		long: set("--trace --output --attach --env --user")}},
	"valgrind":               {grammar: grammar{flags: "dhqv"}},
	"unbuffer":               {grammar: grammar{flags: "p"}, transparent: true},
	"fakeroot":               {grammar: grammar{valued: "lsib", flags: "uvh", long: set("--lib --faked")}},
	"caffeinate":             {grammar: grammar{valued: "tw", flags: "disum"}, transparent: true},
	"chronic":                {grammar: grammar{flags: "ve"}, transparent: true},
	"rlwrap":                 {grammar: grammar{valued: "bCDfHjlMoOpPqsSwXZ", flags: "acdehimnNrtuvwz"}},
	"xvfb-run":               {grammar: grammar{valued: "efnpsw", flags: "adhl", long: set("--server-num --server-args --error-file --auth-file")}},
	"dbus-run-session":       {grammar: grammar{flags: "-", long: set("--config-file --dbus-daemon")}},
	"softlimit setuidgid":    {grammar: grammar{flags: "-"}, operands: 1},
	"proxychains torsocks":   {grammar: grammar{valued: "f", flags: "q"}},
	"linux32 linux64 i386":   {grammar: grammar{flags: "vRFZLXBI3S"}},
	"catchsegv":              {grammar: grammar{flags: "-"}},
	"choom":                  {grammar: grammar{valued: "np", flags: "hV", long: set("--adjust --pid")}},
	"prlimit":                {grammar: grammar{valued: "po", flags: "hVcdefilmnqrstuvxy", long: set("--pid --output")}},
	"uclampset":              {grammar: grammar{valued: "mMp", flags: "asRvhV", long: set("--pid")}},
	"ssh-agent":              {grammar: grammar{valued: "aEOPt", flags: "cDdks"}},
	"numactl":                {grammar: grammar{valued: "iNCmpPwM", flags: "aslbH", long: set("--interleave --cpunodebind --physcpubind --membind --preferred")}},
	"cpulimit":               {grammar: grammar{valued: "lcpe", flags: "vzim", long: set("--limit --exe --pid")}},
	"systemd-inhibit":        {grammar: grammar{flags: "-", long: set("--what --who --why --mode")}},
	"systemd-cat":            {grammar: grammar{valued: "tp", flags: "-", long: set("--identifier --priority")}},
	"faketime":               {grammar: grammar{flags: "m", long: set("--exclude-monotonic")}, operands: 1},
	"gosu su-exec":           {grammar: grammar{flags: "-"}, operands: 1},
	"tini dumb-init":         {grammar: grammar{valued: "per", flags: "svgwlch", long: set("--rewrite")}},
	"tsocks trickle sshpass": {grammar: grammar{valued: "dfpPuwLt", flags: "seh"}},
	"gtimeout":               {grammar: grammar{valued: "ks", flags: "vfp", long: set("--kill-after --signal")}, operands: 1, transparent: true},
	"gnice":                  {grammar: grammar{valued: "n", flags: "-", long: set("--adjustment")}, transparent: true, numeric: true},
	"gnohup":                 {grammar: grammar{flags: "-"}, transparent: true},
	"gstdbuf":                {grammar: grammar{valued: "ioe", flags: "-", long: set("--input --output --error")}, transparent: true},
	"ld.so":                  {grammar: grammar{flags: "-", long: set("--library-path --glibc-hwcaps-prepend --glibc-hwcaps-mask --inhibit-rpath --audit --preload --argv0")}},
	"toybox":                 {grammar: grammar{flags: "-"}},
	"busybox":                {grammar: grammar{flags: "-"}},
	"eatmydata":              {grammar: grammar{flags: "-"}, transparent: true},
}

var wrapperJudges = map[string]judge{
	"env genv":          (*walker).env,
	"run-parts":         opaque("runs every program of a folder"),
	"sudo":              (*walker).sudo,
	"command":           (*walker).commandBuiltin,
	"xargs gxargs":      (*walker).xargs,
	"find gfind":        (*walker).find,
	"fd fdfind":         (*walker).fd,
	"flock":             (*walker).flock,
	"watch":             (*walker).watch,
	"entr":              (*walker).entr,
	"start-stop-daemon": opaque("starts a program of its own"),
	"unshare nsenter setpriv capsh systemd-run bwrap firejail proot runcon pkexec": opaque("changes the box that a program runs in"),
	"parallel rush": opaque("hands its words to a shell"),
	"xterm gnome-terminal konsole screen tmux": opaque("hands its words to a shell elsewhere"),
	"at batch": opaque("runs what it reads later"),
}

// wrapper judges a program of wrapperSpecs.
func (w *walker) wrapper(words []word, spec wrapper) {
	args := words
	if spec.numeric && len(words) > 1 && len(words[1].text) > 1 && words[1].text[0] == '-' && digits(strings.TrimPrefix(words[1].text[1:], "-")) && words[1].static() {
		args = words[1:]
	}
	_, first, ok := spec.parse(args)
	first += len(words) - len(args)
	if !ok {
		w.raiseOpaque(phrase(words), "options of a wrapper that are not understood")
		return
	}
	for i := first; i < min(first+spec.operands, len(words)); i++ {
		if words[i].dynamic() {
			w.raiseOpaque(words[i].src, "what a wrapper runs is computed")
			return
		}
	}
	if first+spec.operands >= len(words) {
		return // prints something, or fails
	}
	w.wrap(words, first+spec.operands, spec.transparent)
}

// env judges env, whose assignments count as assignments.
func (w *walker) env(words []word) {
	g := grammar{valued: "uCSa", flags: "i0v", long: set("--unset --chdir --split-string --argv0")}
	opts, first, ok := g.parse(words)
	for _, o := range opts {
		if o.name == "-S" || strings.HasPrefix("--split-string", o.name) && len(o.name) > 2 {
			w.shellString(o.value, "env splits this string into a command")
			w.out.Opaque = true
		}
	}
	if !ok {
		w.raiseOpaque(phrase(words), "options of env that are not understood")
		return
	}
	if first < len(words) && words[first].text == "-" {
		first++
	}
	next, clean := w.assignments(words, first)
	if next < len(words) {
		w.wrap(words, next, clean && len(opts) == 0)
	}
}

// assignments judges NAME=value words from i on; clean means there were none.
func (w *walker) assignments(words []word, i int) (next int, clean bool) {
	clean = true
	for ; i < len(words); i++ {
		name, value, ok := strings.Cut(words[i].text, "=")
		if !ok || words[i].dynamic() && !validName(name) {
			return i, clean
		}
		clean = false
		w.raise(DynamicOrdinary, words[i].src, "an assignment")
		w.assigned(name, words[i].src, value)
	}
	return i, clean
}

func (w *walker) sudo(words []word) {
	g := grammar{valued: "ughpCrtTUDRac", flags: "nEHSbAkKPvlNVBei" + "s",
		long: set("--user --group --host --prompt --close-from --role --type --command-timeout --other-user --chdir --chroot")}
	opts, first, ok := g.parse(words)
	if !ok {
		w.raiseOpaque(phrase(words), "options of sudo that are not understood")
		return
	}
	for _, o := range opts {
		switch o.name {
		case "-i", "-s", "--login", "--shell", "-e", "--edit":
			w.raiseOpaque(phrase(words), "a shell or an editor for another user")
		}
	}
	next, _ := w.assignments(words, first)
	if next < len(words) {
		w.wrap(words, next, false)
	}
}

// commandBuiltin judges the builtin command, which only looks a name up with -v and -V.
func (w *walker) commandBuiltin(words []word) {
	opts, first, ok := grammar{flags: "pvV"}.parse(words)
	if !ok {
		w.raiseOpaque(phrase(words), "options of command that are not understood")
		return
	}
	for _, o := range opts {
		if o.name == "-v" || o.name == "-V" {
			return
		}
	}
	if first < len(words) {
		w.wrap(words, first, true)
	}
}

func (w *walker) xargs(words []word) {
	g := grammar{valued: "adEInPsLJRS", attached: "eil", flags: "0rtpxo",
		long: set("--arg-file --delimiter --replace --max-lines --max-args --max-procs --max-chars --process-slot-var --eof")}
	opts, first, ok := g.parse(words)
	w.raise(DynamicOrdinary, phrase(words), "runs a program with what it reads")
	if !ok {
		w.raiseOpaque(phrase(words), "options of xargs that are not understood")
		return
	}
	if first >= len(words) {
		return // echo
	}
	replace := ""
	for _, o := range opts {
		switch o.name {
		case "-I", "-J":
			replace = o.value.text
		case "-i", "--replace":
			replace = o.value.text
			if replace == "" {
				replace = "{}"
			}
		}
	}
	w.smuggled.reads = true
	inner := append([]word(nil), words[first:]...)
	for i := range inner {
		if replace != "" && strings.Contains(inner[i].text, replace) {
			inner[i].traits |= expands | splits
			inner[i].masked = hole
		}
	}
	if replace == "" {
		inner = append(inner, word{text: "…", masked: hole, src: "…", traits: expands | splits})
	}
	w.program(inner, false)
}

// find judges -exec and its kin; {} is a path that find names, never an option.
func (w *walker) find(words []word) {
	for i := 1; i < len(words); i++ {
		switch words[i].text {
		case "-exec", "-execdir", "-ok", "-okdir":
		default:
			continue
		}
		end := i + 1
		for end < len(words) && words[end].text != ";" && !(words[end].text == "+" && words[end-1].text == "{}") {
			end++
		}
		if end >= len(words) || end == i+1 {
			w.raiseOpaque(phrase(words[i:]), "what find runs has no end")
			return
		}
		inner := append([]word(nil), words[i+1:end]...)
		for j := range inner {
			if strings.Contains(inner[j].text, "{}") {
				inner[j].traits |= placeholder
				inner[j].masked = "./" + hole
			}
		}
		w.dynamicInner(inner, phrase(words[i:end]), "find runs a program")
		i = end
	}
}

func (w *walker) fd(words []word) {
	for i := 1; i < len(words); i++ {
		name, value, has := strings.Cut(words[i].text, "=")
		inner := words[i+1:]
		switch at := strings.IndexAny(name, "xX"); {
		case name == "--exec" || name == "--exec-batch":
		case at > 0 && (isCluster(name, 'x') || isCluster(name, 'X')) && !strings.ContainsAny(name[:at], "dtegESocjC"):
			if rest := words[i].text[at+1:]; rest != "" {
				inner = append([]word{literal(rest)}, inner...)
			}
			has = false
		default:
			continue
		}
		if has {
			inner = append([]word{literal(value)}, inner...)
		}
		if len(inner) == 0 {
			w.raiseOpaque(phrase(words), "what fd runs is missing")
			return
		}
		w.dynamicInner(inner, phrase(words[i:]), "fd runs a program")
		return
	}
}

func (w *walker) flock(words []word) {
	g := grammar{valued: "wE", flags: "sxeunoFcv", long: set("--timeout --wait --conflict-exit-code")}
	_, first, ok := g.parse(words)
	if !ok {
		w.raiseOpaque(phrase(words), "options of flock that are not understood")
		return
	}
	rest := words[min(first+1, len(words)):]
	if len(rest) == 0 {
		return
	}
	if rest[0].text == "-c" || rest[0].text == "--command" {
		w.raise(HumanRequired, phrase(words), "flock hands a string to a shell")
		if len(rest) > 1 {
			w.shellString(rest[1], "flock hands a string to a shell")
		}
		return
	}
	w.wrap(words, first+1, false)
}

func (w *walker) watch(words []word) {
	g := grammar{valued: "nq", attached: "d", flags: "bcegprtwx", long: set("--interval --equexit")}
	opts, first, ok := g.parse(words)
	if !ok || first >= len(words) {
		w.raiseOpaque(phrase(words), "watch hands its words to a shell")
		return
	}
	for _, o := range opts {
		if o.name == "-x" || o.name == "--exec" {
			w.dynamicInner(words[first:], phrase(words), "watch runs a program again and again")
			return
		}
	}
	line := word{text: strings.Join(texts(words[first:]), " "), src: phrase(words)}
	for _, x := range words[first:] {
		line.traits |= x.traits
	}
	w.shellString(line, "watch hands its words to a shell")
}

func (w *walker) entr(words []word) {
	opts, first, ok := grammar{flags: "acdnprsxz"}.parse(words)
	if !ok || first >= len(words) {
		w.raiseOpaque(phrase(words), "what entr runs is not understood")
		return
	}
	for _, o := range opts {
		if o.name == "-s" {
			w.shellString(words[first], "entr hands a string to a shell")
			return
		}
	}
	w.dynamicInner(words[first:], phrase(words), "entr runs a program when files change")
}
