package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reasonix/internal/tool"
)

// Each test is an attempt to get out, numbered as in the project's list of known escapes; newRoom checks the marker outside.

func TestAttemptS01LinkOutOfTheWorkspace(t *testing.T) {
	tryAll(t, "S01")
	newRoom(t).refused("ln -s /usr/bin u; echo x > u/evil")
}

func TestAttemptS05HardLinkToAFileOutside(t *testing.T) {
	r := newRoom(t)
	r.policy.Readable = []string{r.outside}
	r.must("cat " + r.outside + "/marker")
	r.refused("ln " + r.outside + "/marker h")
}

func TestAttemptS06HardLinkToGitConfig(t *testing.T) {
	r := newRoom(t)
	r.repository()
	r.refused("ln .git/config notes.txt")
	r.refused("ln .git/config .git/notes.txt")
}

func TestAttemptS10ReachIntoTheHostProcess(t *testing.T) {
	python(t)
	tryAll(t, "S10")
	if out := newRoom(t).must("ls -d /proc/[0-9]* 2>/dev/null | wc -l"); strings.TrimSpace(out) > "9" {
		t.Errorf("the box sees %s processes", out)
	}
}

func TestInvariant12_HostSecretsAreNeverVisibleInABox(t *testing.T) {
	secret := "hunter2-correct-horse"
	odd := []string{"DEEPSEEK_API_KEY", "SLACK_BOT_TOKEN", "innocent", "X", "LC_SECRET"}
	for _, name := range odd {
		t.Setenv(name, secret)
	}
	t.Setenv("LANG", secret+strings.Repeat("x", 64)) // even an allowed name does not carry just anything
	r := newRoom(t)
	home, err := os.MkdirTemp("", "host-home-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	files := ""
	for _, name := range []string{".env", ".netrc", ".ssh/id_rsa", ".gitconfig", "state.db"} {
		write(t, filepath.Join(home, name), "[http]\nextraHeader = "+secret+"\n")
		files += " " + filepath.Join(home, name)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, ".gitconfig"))
	t.Setenv("HOME", home)
	r.leak()
	out := r.must("env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; cat " + files + " /root/.env 2>/dev/null; git config --list; " +
		"for f in /proc/*/fd/*; do [ -f $f ] && cat $f; done; " +
		"grep -rIl 'hunter2-correct'-horse / --exclude-dir=proc --exclude-dir=usr 2>/dev/null; true")
	if strings.Contains(out, secret) || strings.Contains(out, "untouched") {
		t.Errorf("the secret is in the box:\n%s", out)
	}
	for _, name := range odd {
		if strings.Contains(out, name+"=") {
			t.Errorf("%s is in the box", name)
		}
	}
}

func TestAttemptS12HooksAndConfig(t *testing.T) {
	r := attemptRoom(t, "S12")
	for _, line := range attemptTexts["S12"] {
		r.refused(line)
	}
	if got := git(t, r.policy.Workspace, "config", "--get", "core.bare"); got != "false" {
		t.Errorf("config changed: %q", got)
	}
}

func TestAttemptS14WorktreePointer(t *testing.T) {
	r := attemptRoom(t, "S14 worktree")
	for _, line := range attemptTexts["S14 worktree"] {
		r.refused(line)
	}
	r.must("echo y > y && git add -A && git commit -qm y && git status")
	if got := git(t, r.main, "log", "--format=%s", "-1", "side"); got != "y" {
		t.Errorf("commit in the worktree is missing: %q", got)
	}
}

func TestAttemptS14PlantedPointerOpensNothing(t *testing.T) {
	r := newRoom(t)
	evil := filepath.Join(r.outside, "repo.git")
	git(t, r.outside, "init", "-q", "--bare", evil)
	write(t, filepath.Join(r.policy.Workspace, ".git"), "gitdir: "+evil+"\n")
	r.own()
	r.refused("touch " + evil + "/x")
}

func TestAttemptS14SubmoduleHooks(t *testing.T) {
	r := attemptRoom(t, "S14 submodule")
	for _, line := range attemptTexts["S14 submodule"] {
		r.refused(line)
	}
	r.must("cd deps/lib && echo z > z && git add -A && git commit -qm z && cd ../.. && git add -A && git commit -qm bump && git status")
}

func TestAttemptS15PlantedBareRepository(t *testing.T) {
	r := newRoom(t)
	r.must("git init -q --bare trap && git -C trap config core.fsmonitor 'touch " + r.outside + "/marker2'")
	cmd := exec.Command("git", "-c", "safe.bareRepository=explicit", "-c", "safe.directory=*", "status")
	cmd.Dir = filepath.Join(r.policy.Workspace, "trap")
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("host git used the planted repository: %s", out)
	}
}

func TestAttemptS17MovingGitAway(t *testing.T) {
	r := attemptRoom(t, "S17")
	r.refused(attemptTexts["S17"][0])
	if _, err := os.Stat(filepath.Join(r.policy.Workspace, ".git/hooks/post-checkout")); err == nil {
		t.Error("the host sees a planted hook")
	}
}

func TestAttemptS21WorkingDirectoryOutside(t *testing.T) {
	r := newRoom(t)
	sh := NewShell(r.box, func() Policy { return r.policy })
	if err := os.Symlink(r.outside, filepath.Join(r.policy.Workspace, "out")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"..", "../outside", r.outside, "/", "a/../../outside", "out", "out/.."} {
		if _, err := sh.Run(context.Background(), tool.Command{Line: "echo x > marker", Dir: dir}); dir != "out/.." && !errors.Is(err, tool.ErrOutside) {
			t.Errorf("Dir %q: %v", dir, err)
		}
	}
	_, err := sh.Run(context.Background(), tool.Command{Line: "true", Dir: "missing"})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	if _, err := r.box.Run(context.Background(), r.policy, Command{Argv: []string{"true"}, Dir: r.outside}); err == nil {
		t.Error("the box itself took a directory outside")
	}
}

func TestAttemptS24SocketOfAHostService(t *testing.T) {
	python(t)
	tryAll(t, "S24")
	newRoom(t).refused("test -e /run/docker.sock || test -e /var/run/docker.sock || test -e /run/dbus")
}

func TestAttemptS26SessionBus(t *testing.T) {
	r := newRoom(t)
	r.refused("systemd-run --user touch " + r.outside + "/marker2")
}

func TestAttemptS28AbstractSocketAndLoopback(t *testing.T) {
	python(t)
	tryAll(t, "S28")
}

func TestAttemptS30RemountTheRoot(t *testing.T) {
	r := newRoom(t)
	r.refused("mount -o remount,rw,bind / && echo x > /evil")
	r.refused("mount -o remount,rw,bind /usr && echo x > /usr/evil")
	r.refused("echo x > /usr/evil || echo x > /evil || echo x > /etc/evil")
	none := 4
	if r.reduced() && os.Geteuid() != 0 {
		none = 3 // the bounding set means nothing to an ordinary user, who may not change it
	}
	if out := r.privileges(); strings.Count(out, "0000000000000000") != none || !strings.Contains(out, "NoNewPrivs:\t1") || !strings.Contains(out, "Seccomp:\t2") {
		t.Errorf("privileges in the box:\n%s", out)
	}
}

func TestAttemptS31NestedNamespaces(t *testing.T) {
	r := newRoom(t)
	r.refused("unshare -U true")
	r.refused("unshare -Urm mount -o remount,rw,bind /usr")
	r.refused("bwrap --ro-bind / / true")
}

func TestAttemptS32KillTheHost(t *testing.T) {
	tryAll(t, "S32")
	newRoom(t).refused("kill -9 " + itoa(os.Getppid()))
}

func TestAttemptS36ForkBomb(t *testing.T) {
	r := newRoom(t)
	if uid := os.Geteuid(); uid == 0 {
		if _, _, drop, _ := account(r.policy.Workspace); !drop {
			t.Fatal("as root the box must run under an account of its own")
		}
	}
	r.policy.Limits.Processes = 64
	r.policy.Limits.Wall = 2 * time.Second
	start := time.Now()
	res := r.bash("bomb() { : " + r.id + "; bomb | bomb & }; bomb; sleep 60")
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("the host answered after %v", d)
	}
	if !strings.Contains(string(res.Output), "fork") {
		t.Errorf("the limit did not show:\n%.300s", res.Output)
	}
	if n := countProcesses("bomb() { : " + r.id); n != 0 {
		t.Errorf("%d processes of the bomb are left", n)
	}
}

func TestAttemptS39EndlessOutput(t *testing.T) {
	r := newRoom(t)
	r.policy.Limits.Wall = time.Second
	res := r.bash("echo first; yes")
	if !res.TimedOut || len(res.Output) > 33<<10 || res.Omitted == 0 || !strings.HasPrefix(string(res.Output), "first\n") {
		t.Errorf("timed out %v, kept %d, omitted %d", res.TimedOut, len(res.Output), res.Omitted)
	}
	r.policy.Limits.Wall = 20 * time.Second
	res = r.bash("seq 1 100000; echo last")
	if !strings.HasSuffix(string(res.Output), "last\n") || !strings.HasPrefix(string(res.Output), "1\n2\n") {
		t.Errorf("head or tail is missing: %.20q … %q", res.Output, res.Output[len(res.Output)-10:])
	}
}

func TestAttemptS47ForbiddenReads(t *testing.T) {
	r := newRoom(t)
	w := r.policy.Workspace
	write(t, filepath.Join(w, "secrets/key"), "s3cret")
	write(t, filepath.Join(w, ".env"), "s3cret")
	r.own()
	r.policy.ForbidRead = []string{filepath.Join(w, "secrets"), filepath.Join(w, ".env"), filepath.Join(w, "later/key"),
		"/nowhere/at/all", "/usr/share/doc"}
	out := string(r.bash("cat .env secrets/key; ls secrets; ls /usr/share/doc; chmod 777 secrets .env; cat .env; mv secrets s2; ln -s .env e; cat e; true").Output)
	if strings.Contains(out, "s3cret") {
		t.Errorf("forbidden content was read:\n%s", out)
	}
	r.refused("mkdir later; echo x > later/key && cat later/key")
	write(t, filepath.Join(w, "later/key"), "s3cret")
	r.own()
	if res := r.bash("cat later/key"); res.ExitCode == 0 {
		t.Errorf("a file that appeared later was read: %s", res.Output)
	}
	if read(t, filepath.Join(w, ".env")) != "s3cret" {
		t.Error("the forbidden file was changed")
	}
}

func TestAttemptS48NoGhostFiles(t *testing.T) {
	r := newRoom(t)
	r.repository()
	for _, name := range Protected {
		r.refused("echo x > " + name)
		r.refused("rm -f " + name + "; mkdir " + name)
	}
	r.must("echo n > n && git add -A && git commit -qm n && test -z \"$(git status --porcelain)\"")
	if files := git(t, r.policy.Workspace, "ls-tree", "-r", "--name-only", "HEAD"); files != "README\nn" {
		t.Errorf("committed: %q", files)
	}
	for _, name := range append([]string{".git/commondir", ".git/modules", ".git/info/attributes"}, Protected...) {
		if _, err := os.Lstat(filepath.Join(r.policy.Workspace, name)); err == nil {
			t.Errorf("ghost: %s", name)
		}
	}
}

func TestAttemptS48ShadowsSurviveAnEarlierBoxThatEnds(t *testing.T) {
	r := newRoom(t)
	started := make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = r.box.Run(ctx, r.policy, Command{Argv: []string{"/bin/bash", "-c", "echo up; sleep 60"}, Output: func([]byte) {
			select {
			case <-started:
			default:
				close(started)
			}
		}})
	}()
	<-started
	r.must("true") // a second box comes and goes
	if _, err := os.Lstat(filepath.Join(r.policy.Workspace, ".mcp.json")); err != nil {
		t.Error("the shadow of a running box was taken away")
	}
	stop()
	<-ended
}

func TestAttemptS48CrashLeftoversAreTakenAway(t *testing.T) {
	r := newRoom(t)
	if err := makeShadow(shadow{root: r.policy.Workspace, path: filepath.Join(r.policy.Workspace, ".mcp.json")}); err != nil {
		t.Fatal(err)
	}
	r.refused("echo x > .mcp.json")
}

func TestAttemptS49CarveOutsComeAfterWritableRoots(t *testing.T) {
	r := newRoom(t)
	r.repository()
	r.policy.Writable = []string{filepath.Dir(r.policy.Workspace), r.policy.Workspace, filepath.Join(r.policy.Workspace, ".git")}
	r.policy.Writable = r.policy.Writable[1:] // the parent belongs to the host alone
	r.refused("echo x > .git/hooks/post-checkout")
	r.refused("echo x >> .git/config")
}

func TestAttemptS51BubblewrapIsNeverTakenFromAWorkspace(t *testing.T) {
	r := newRoom(t)
	fake := "#!/bin/sh\necho fake\n"
	w := r.policy.Workspace
	write(t, filepath.Join(w, "bin/bwrap"), fake)
	open := filepath.Join(r.outside, "open")
	write(t, filepath.Join(open, "bwrap"), fake)
	for _, f := range []string{filepath.Join(w, "bin/bwrap"), filepath.Join(open, "bwrap")} {
		if err := os.Chmod(f, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	real := filepath.Dir(mustLook(t, "bwrap"))
	box, rep, err := Detect(ctx, Config{Workspaces: []string{w}, Path: strings.Join([]string{w + "/bin", open, ".", "", real}, ":")})
	if err != nil || !strings.HasPrefix(rep.Program, real) || box.Name() != "bwrap" {
		t.Errorf("box %v, report %+v, %v", box, rep, err)
	}
	for _, path := range []string{w + "/bin", open, "bin:.", "/nowhere"} {
		box, rep, err := Detect(ctx, Config{Workspaces: []string{w}, Path: path})
		if !errors.Is(err, ErrUnavailable) || box != nil || !strings.Contains(rep.Mend, "apt-get install bubblewrap") {
			t.Errorf("PATH %s: box %v, report %+v, %v", path, box, rep, err)
		}
	}
}

func TestAttemptS58FolderThatContainsRepositories(t *testing.T) {
	r := newRoom(t)
	git(t, r.policy.Workspace, "init", "-q", "inner")
	r.own()
	r.must("ls && cd inner && touch a && git add -A && git commit -qm a")
}

func TestAttemptS60SetuidVersions(t *testing.T) {
	for version, old := range map[string]bool{"0.8.0": true, "0.11.1": true, "0.11.2": false, "0.12": false, "1.0.0": false, "unknown": true} {
		if older(version, 0, 11, 2) != old {
			t.Errorf("%s: older = %v", version, !old)
		}
	}
}

// Found here: uid 0 without any capability may still write /proc/sys, and core_pattern starts a program on the host.
func TestAttemptKernelSettings(t *testing.T) {
	r := newRoom(t)
	before := read(t, "/proc/sys/kernel/core_pattern")
	for _, own := range []bool{true, false} {
		if !own {
			r.disown()
		}
		r.refused("echo '|/tmp/evil' > /proc/sys/kernel/core_pattern")
		r.refused(": >> /proc/sysrq-trigger")
	}
	if read(t, "/proc/sys/kernel/core_pattern") != before {
		t.Error("core_pattern was changed")
	}
}

// Found here: the host makes shadows as itself; a link on the way must not lead it elsewhere.
func TestAttemptLinksOnTheWayOfShadows(t *testing.T) {
	r := newRoom(t)
	r.repository()
	r.refused("rm -rf .git/info && ln -s " + r.outside + " .git/info")
	r.refused("mv .git/info .git/i2")
	info := filepath.Join(r.policy.Workspace, ".git/info")
	if err := os.RemoveAll(info); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{info, filepath.Join(r.policy.Workspace, "link")} {
		if err := os.Symlink(r.outside, link); err != nil {
			t.Fatal(err)
		}
	}
	r.policy.ForbidRead = []string{filepath.Join(r.policy.Workspace, "link/later")}
	_, err := r.box.Run(context.Background(), r.policy, Command{Argv: []string{"true"}})
	if err == nil {
		t.Error("a box was made over a link")
	}
	if n := count(r.outside); n != 1 {
		t.Errorf("%d files outside, want the marker alone", n)
	}
	if err := os.Remove(info); err != nil {
		t.Fatal(err)
	}
	r.must("true") // what the link leads to is not in the box at all
	if n := count(r.outside); n != 1 {
		t.Errorf("%d files outside, want the marker alone", n)
	}
}

func TestAttemptSwapAFolderWhileABoxIsMade(t *testing.T) {
	r := newRoom(t)
	lib := filepath.Join(r.policy.Workspace, "deps")
	if err := os.MkdirAll(lib, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(lib); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(r.outside, lib); err != nil {
		t.Fatal(err)
	}
	if fd, err := openSource(lib, r.policy.Workspace); err == nil {
		t.Errorf("descriptor %d of a folder outside", fd)
	}
	if fd, err := openSource(filepath.Join(lib, "marker"), r.policy.Workspace); err == nil {
		t.Errorf("descriptor %d of a file outside", fd)
	}
}

func TestAttemptFilteredSystemCalls(t *testing.T) {
	python(t)
	r := newRoom(t)
	call := func(expr string) string {
		return `/usr/bin/python3 -c 'import ctypes,sys; l=ctypes.CDLL(None,use_errno=True); r=` + expr + `; e=ctypes.get_errno(); print(r,e); sys.exit(0 if r!=-1 or e not in (1,38) else 1)'`
	}
	numbers := map[string]string{"keyctl": "l.syscall(250,0,-3,0)", "bpf": "l.syscall(321,0,0,0)", "userfaultfd": "l.syscall(323,0)",
		"io_uring_setup": "l.syscall(425,1,0)", "perf_event_open": "l.syscall(298,0,0,0,0,0)", "unshare": "l.unshare(0x10000000)",
		"setuid bit": `(open("x","w").close(), l.chmod(b"x",0o4755))[1]`, "clone3": "l.syscall(435,0,0)",
		"TIOCSTI":                  `l.ioctl(0,0x5412,b"x")`,
		"TIOCSTI with a dirty top": `l.syscall(16,ctypes.c_long(0),ctypes.c_long(0x100005412),b"x")`,
		"mount":                    `l.mount(b"none",b"/tmp",b"tmpfs",0,None)`,
		"open_tree":                `l.syscall(428,-100,b"/",1)`,
	}
	for name, expr := range numbers {
		if arch := goarch(); arch != "amd64" && strings.Contains(expr, "syscall(") {
			continue // numbers of amd64
		}
		t.Run(name, func(t *testing.T) { r.refused(call(expr)) })
	}
}
