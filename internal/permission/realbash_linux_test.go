package permission

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The programs that may really run in the box, besides the stub called victim.
var realPrograms = strings.Fields("bash sh env timeout nice nohup stdbuf xargs find sed awk cat true false printf echo test sort setsid flock script tee head")

// boxScript runs every line with bash, each with its own victim, so that a late child cannot be blamed on another line.
const boxScript = `cd /tmp/w || exit 9
for f in lines/*; do
  n=${f#lines/}
  ( cd v/$n && ulimit -u 256 -f 2048 -v 4000000 2>/dev/null
    line=$(cat ../../lines/$n; echo x); line=${line%x}
    PATH=/tmp/w/v/$n:/tmp/w/bin HOME=/tmp exec timeout -s KILL 2 bash --norc --noprofile -c "$line" ) </dev/null >/dev/null 2>&1
done
exit 0`

// ranVictim runs the lines in a box (read-only root, no network, limited processes, 2 s a line) and tells which of them started victim.
func ranVictim(t testing.TB, lines []string) []bool {
	t.Helper()
	for _, p := range []string{"bwrap", "bash"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is missing: apt-get install -y bubblewrap bash", p)
		}
	}
	dir, err := os.MkdirTemp("", "realbash")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	prepare(t, dir, lines)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(10+3*len(lines))*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", dir, "/tmp/w",
		"--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--setenv", "PATH", os.Getenv("PATH"), "bash", "-c", boxScript)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if os.Geteuid() == 0 { // the process limit does not bind root
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%d lines did not end in time: %v", len(lines), ctx.Err())
	}
	if err != nil {
		t.Skipf("bwrap cannot make a box here (%v: %s): allow user namespaces, or apt-get install -y bubblewrap", err, out)
	}
	hit := make([]bool, len(lines))
	for i := range lines {
		_, err := os.Stat(filepath.Join(dir, "log", fmt.Sprintf("%05d", i)))
		hit[i] = err == nil
	}
	return hit
}

func prepare(t testing.TB, dir string, lines []string) {
	t.Helper()
	write := func(name, text string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/.keep", "", 0o644)
	for _, p := range realPrograms {
		if real, err := exec.LookPath(p); err == nil {
			_ = os.Symlink(real, filepath.Join(dir, "bin", p))
		}
	}
	for i, line := range lines {
		n := fmt.Sprintf("%05d", i)
		write("lines/"+n, line, 0o644)
		write("v/"+n+"/victim", "#!/bin/sh\necho >> /tmp/w/log/"+n+"\n", 0o755)
		if err := os.Chmod(filepath.Join(dir, "v", n), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "log"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, filepath.Join(dir, "log")} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
}

// permissive are the situations that allow the most; with a deny rule for victim none may allow a line that runs it.
func permissive() map[string]func(line string) Decision {
	deny := []Rule{{Text: "Bash(victim:*)"}}
	decide := func(c Config, s Situation) func(string) Decision {
		p := NewPolicy(c)
		return func(line string) Decision { return p.Decide(bashCall(line), s) }
	}
	return map[string]func(string) Decision{
		"yolo":             decide(Config{Deny: deny}, Situation{Posture: PostureYolo, Surface: Headless}),
		"auto":             decide(Config{Deny: deny}, Situation{Posture: PostureAuto, Surface: Headless, PlanWindow: true, Hook: HookAllows}),
		"auto and dynamic": decide(Config{Deny: deny, AllowDynamicBash: true}, Situation{Posture: PostureAuto, Surface: Attended}),
		"allow all":        decide(Config{Deny: deny, Allow: []Rule{{Text: "Bash"}}, Mode: ModeAllow, AllowDynamicBash: true}, Situation{Posture: PostureAsk, Surface: Attended}),
	}
}

// checkLines fails for every line that bash ran victim for although some situation would have allowed it.
func checkLines(t testing.TB, lines []string) (ran int) {
	t.Helper()
	hits := ranVictim(t, lines)
	situations := permissive()
	for i, line := range lines {
		if !hits[i] {
			continue
		}
		ran++
		for name, decide := range situations {
			if d := decide(line); d.Verdict == Allow {
				t.Errorf("%s: bash runs the denied program for %q, but it is allowed: %s", name, line, d.Reason)
			}
		}
	}
	return ran
}

// TestRealBashNeverRunsWhatIsDenied compares the classifier with a real bash over generated lines.
func TestRealBashNeverRunsWhatIsDenied(t *testing.T) {
	const count = 400
	seed := uint64(7)
	if more, err := strconv.ParseUint(os.Getenv("REALBASH_SEED"), 10, 64); err == nil {
		seed = more
	}
	g := &lineGenerator{rand.New(rand.NewPCG(seed, 11))}
	lines := append(append([]string(nil), disguises...), moreDisguises...)
	for len(lines) < count {
		lines = append(lines, g.line())
	}
	if ran := checkLines(t, lines); ran < count/4 {
		t.Errorf("only %d of %d lines ran the program; the comparison shows too little", ran, len(lines))
	}
}

// FuzzDenied looks for a line that bash runs the denied program for and that is allowed nevertheless.
func FuzzDenied(f *testing.F) {
	for _, line := range disguises[:4] {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if !strings.Contains(line, "victim") || len(line) > 2000 {
			return
		}
		allowed := false
		for _, decide := range permissive() {
			allowed = allowed || decide(line).Verdict == Allow
		}
		if allowed {
			checkLines(t, []string{line})
		}
	})
}

// disguises are known ways to hide a program.
var disguises = []string{
	"victim", "echo \"ok $\\\n(victim)\"", "cat <<EOF\n$\\\n(victim)\nEOF", "cat <\\\n(victim)",
	"cat \"$\\\n{x:-$(victim)}\"", "a='$(victim)'; echo ${a@P}", "x='a[$(victim)]'; echo $((x))", "test -v 'a[$(victim)]'", "printf -v 'a[$(victim)]' x",
	"read 'a[$(victim)]' <<< x", "[[ 'a[$(victim)]' -eq 1 ]]", "PS4='$(victim)'; set -x; :", "mapfile -C 'victim #' -c 1 m <<< x", "compgen -C 'victim' z",
	"x=victim; $x", "IFS=,; x=victim,a; $x", "./vict?m", "v$@ictim", "enable -n victim; victim", "hash -p ./victim ls; ls", "alias ls=victim\nls",
	"shopt -s expand_aliases\nalias ls=victim\nls", "trap victim EXIT", "trap -- victim DEBUG; :", "coproc victim; wait", "coproc X { victim; }; wait", "bash <<< victim", "bash <<EOF\nvictim\nEOF",
	"cat <<'EOF' | sh\nvictim\nEOF", "echo victim | bash", "echo 'victim' > s; bash s", "echo 'victim' > s; bash ./s", "echo victim | tee s; bash s", "echo victim > ./s; chmod +x s; ./s", "env -S 'victim x'", "env -Svictim", "timeout --kill 1 1 ./victim", "timeout -k1 1 victim",
	"xargs -I{} {} <<< victim", "xargs env <<< victim", "xargs <<< x victim", "xargs -a ../../lines/00000 sh -c", "find . -maxdepth 0 -exec victim {} +", "find victim -exec ./{} \\;",
	"sed '1e victim' <<< x", "sed 's/.*/victim/e' <<< x", "sed 's/[/a/;a]/x/;e victim' <<< a", "awk 'BEGIN{system(\"victim\")}'", "awk 'BEGIN{\"victim\"|getline}'", "awk 'BEGIN{print \"victim\" | \"sh\"}'",
	"command -p bash -c victim", "exec -a x victim", "nice -n1 nohup stdbuf -oL victim", "setsid -w victim", "flock l -c victim", "flock victim victim", "script -qc victim /dev/null",
	"export BASH_ENV=../../lines/00000; bash -c :", "BASH_ENV=../../lines/00000 bash -c :", "PROMPT_COMMAND=victim bash -ic :", "bash --rcfile ../../lines/00000 -ic :", "declare -n r=x; r=victim; $x",
	"f() { \"$@\"; }; f victim", "ls() { victim; }; ls", "function ls { victim; }; ls", "eval victim", "\\eval vic\\tim", "ev''al 'vic''tim'", "command eval victim", "builtin eval victim", ". ../../lines/00000", "source ../../lines/00000",
	"$'victim'", "$'\\x76ictim'", "$\"victim\"", "{victim,x}", "v{ict,}im", "~+/victim", "2>&1 victim", ">/dev/null victim", "{fd}>/dev/null victim", "! victim", "time -p victim", "if :; then victim; fi",
	"case x in x) victim;; esac", "for ((victim=1;victim<2;victim++)); do victim; done", "select x in a; do victim; done <<< 1", "until victim; do break; done", "[[ -n $(victim) ]]", "(( $(victim) 1 ))", "echo $(( $(victim) + 1 ))",
	"a[$(victim)]=1", "declare a[$(victim)]=1", "echo ${a[$(victim)]}", "echo ${a:$(victim)}", "echo ${a/$(victim)/x}", "echo ${a:-`victim`}", "`echo victim`", "cat <(victim)", "victim <(:) | cat", "tee >(victim) <<< x",
	"echo x |& victim", "victim&", "(victim)", "{ victim; }", "((1)) && victim", ": # x\nvictim", ":;victim", ":\\\n;victim", "vic\\\ntim", "vi\\ctim", "'victim'", "\"victim\"", "v'ict'im", "env -- victim", "env - victim", "env -u X victim",
	"env PATH=\"$PATH\" victim", "X=1 victim", "X=$(victim)", "X=`victim` :", "X=(`victim`)", "exec victim", "nohup ./victim", "././victim", "\"$PWD\"/victim", "bash -c 'bash -c \"bash -c victim\"'", "bash -oc errexit victim", "bash +o posix -c victim",
	"set -k; ls", "set -- victim; \"$@\"", "set -- victim; \"$1\"", "victim() { command victim; }; victim", "echo a\\\\\nvictim", "echo 'a\\\nvictim'; victim", "cat <<E\"O\"F\n$(victim)\nEOF\nvictim", "cat <<EOF\nEOF \nEOF\nvictim",
	"let 'a[$(victim)]=1'", "unset 'a[$(victim)]'", "declare -i n='a[$(victim)]'", "n='a[$(victim)]'; declare -i n; n=n", "wait -p 'a[$(victim)]'", "getopts a 'a[$(victim)]' -a", "((a[$(victim)]))", "x=y y='a[$(victim)]'; [[ x -eq 0 ]]", "a=(1); b='a[$(victim)]'; echo ${a[b]}", "echo ${PATH:'a[$(victim)]'}",
}

// moreDisguises are ways that differ in small things from known ones.
var moreDisguises = []string{
	"time -- victim", "time -p -- victim", "time ! victim", "! time victim", "time time victim", "env --chdir . victim", "env --ch . victim", "nice --adj 3 victim", "nice --5 victim", "stdbuf --out L victim", "stdbuf -o L victim",
	"xargs -L 1 victim <<< x", "xargs --max-a 1 victim <<< x", "xargs -e victim <<< x", "xargs -l victim <<< x", "xargs -i victim <<< x", "xargs -d x victim <<< y", "find . -maxdepth 0 -exec env -u X victim \\;", "setsid -f victim", "flock -w 1 l victim",
	"bash --norc -c victim", "bash -c -- victim", "bash -c -e victim", "bash -O extglob -c victim", "bash +O extglob -c victim", "bash --posix -c victim", "command -- victim", "exec -- victim", "exec -ca x victim", "builtin command victim", "builtin exec victim",
	"case x in x) ;& y) victim;; esac", "a[0]=1 victim", ">f >g victim", "<<<x victim", "<<E victim\nE", "3<&0 victim", "$(:) victim", "$nothing victim", "\\\nvictim", "vic$()tim", ":|&victim", ": ${x//y/$(victim)}${x:=$(victim)}",
	"echo \"$(echo ')'; victim)\"", "echo $(case x in x) victim;; esac)", "echo $(: # )\nvictim)", "cat <<'E' ; victim\nE", ": <<A <<B\nA\nB\nvictim", "cat <<-E\n\tE\nvictim", "cat <<' E'\n E\nvictim", ": x#y\nvictim", ":$(:)#x; victim", "''#x; victim", ":>f#x; victim", "a=#x; victim",
	"a=(#x\n); victim", "echo $#;victim", "echo ${#};victim", "((1)) #;x\nvictim", "echo $((16#f)); victim", "((1<<2)); victim", "echo $((true); victim)", "((true); victim)", "exec 3<<<victim; bash <&3", "bash /dev/fd/3 3<<<victim", ". /dev/stdin <<<victim",
	"awk -f /dev/stdin <<< 'BEGIN{system(\"victim\")}'", "sed -f /dev/stdin <<< '1e victim'", "sed -f- /dev/null <<< '1e victim'", "sed '1{e victim\n}' <<< x", "sed '/a/I,+1e victim' <<< a", "sed '1~2e victim' <<< a", "sed '0,/a/e victim' <<< a", "sed '\\,a,e victim' <<< a", "sed ':a;e victim' <<< a", "sed '}e victim' <<< a",
	"sed 's/a/b/w /dev/null\ne victim' <<< a", "sed -e 'i\\' -e '1e victim' <<< a", "sed -s --expr='1e victim' f /dev/stdin <<< a", "sed --posix 1evictim <<< a", "sed -n -- '1e victim' <<< a", "sed -i -e '1e victim' f", "sed -E -n -e'1e victim' <<< a", "sed 's/[/]/\\n/;e victim' <<< a",
	"awk '/[/\"]/{system(\"victim\")}#\"' <<< '\"'", "awk 'BEGIN{print /#/; system(\"victim\")}'", "awk 'BEGIN{print /\"/; print 1 | \"victim\"}'", "awk 'BEGIN{x = 4 / 2 | getline; \"victim\" | getline}'", "awk 'BEGIN{f=\"sys\" \"tem\"; @f(\"victim\")}'", "awk -v x='a' 'BEGIN{ # \"\n\"victim\" | getline}'",
	"awk 'BEGIN{printf \"x\" |& \"victim\"}'", "awk -e 'BEGIN{\"victim\" | getline}'", "awk --source='BEGIN{\"victim\" | getline}'", "awk -F/ '{print | \"victim\"}' <<< a", "mawk 'BEGIN{\"victim\"|getline}'",
	"set -o history; victim", "set -H; victim", "x=victim eval '$x'", "printf -v x victim; $x", "read x <<< victim; $x", "mapfile -t x <<< victim; $x", "for x in victim; do $x; done", "x=(victim); ${x[0]}", "declare x=victim; \"$x\"", "export x=victim; sh -c '$x'", "export x=victim; env sh -c \"\\$x\"", "echo victim > f; sh < f", "echo victim | while read x; do $x; done",
	"sort --compress-program=victim -S 1k /bin/bash", "tar -cf /dev/null --to-command=victim f", "tee >(victim) </dev/null; wait", "echo x > >(victim); wait", "cat < <(victim)", "coproc cat <(victim); wait", "trap victim 0", "trap 'vic''tim' EXIT", "trap \"victim\" ERR; false", "f() { victim; }; trap f EXIT",
}

// lineGenerator makes lines that try to run victim.
type lineGenerator struct{ *rand.Rand }

func (g *lineGenerator) pick(from []string) string { return from[g.IntN(len(from))] }

var atoms = []string{"victim", "victim x", "./victim", "v\"ict\"im a", "\\victim", "env victim", "timeout 1 victim", "V=victim; $V", "vict*", "{victim,y}", "$'\\x76ictim'", "nice -n 3 victim",
	"command victim", "exec victim", "echo victim", "echo x", "true && victim", "true | victim", "false || victim", "vic\\\ntim", "xargs victim </dev/null", "find . -maxdepth 0 -exec victim {} \\;"}

var contexts = []string{"%s", "%s; true", "true; %s", "(%s)", "{ %s; }", "if true; then %s; fi", "for i in 1; do %s; done", "echo $(%s)", "echo \"$(%s)\"", "echo `%s`", "cat <(%s)",
	"f() { %s; }; f", "bash -c '%s'", "eval '%s'", "trap '%s' EXIT", "bash <<< '%s'", "cat <<EOF\n$(%s)\nEOF", "bash <<'EOF'\n%s\nEOF", "case a in a) %s;; esac", "echo ${a:-$(%s)}", "a=$(%s)", "a=( $(%s) )",
	"[[ -z $(%s) ]]", "# c\n%s", "echo a#b; %s", "echo '#'; %s", "%s & wait", "! %s", "time %s", "while %s; do break; done", "2>/dev/null; %s", "env A=1 sh -c '%s'", "echo \"a\\\"$(%s)\"", "echo '\\'; %s", "echo \\\\; %s", "echo \"\\\\\"; %s", "echo $'\\''; %s #'"}

var noise = []string{"\\\n", "\"", "'", "#", ";", "&", "|", " ", "$", "{", "}", "(", ")", "<", ">", "!", "\\", "\n", "\t", "`", "=", "*", "[", "]", "~", "$'", "$\"", "<<E\n", "$((", "))", "[[ ", " ]]"}

func (g *lineGenerator) line() string {
	line := g.pick(atoms)
	for range g.IntN(4) {
		line = strings.ReplaceAll(g.pick(contexts), "%s", line)
	}
	if g.IntN(3) == 0 {
		for range 1 + g.IntN(2) {
			at := g.IntN(len(line) + 1)
			line = line[:at] + g.pick(noise) + line[at:]
		}
	}
	return line
}
