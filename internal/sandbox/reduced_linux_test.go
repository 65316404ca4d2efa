package sandbox

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shows are attempts that succeed in the reduced box: one for each gap, so that the list cannot name what is held by now.
var shows = map[string]func(*testing.T){
	"protected-files": func(t *testing.T) {
		r := newRoom(t)
		r.repository()
		r.must("echo evil > .git/hooks/post-checkout && grep -q evil .git/hooks/post-checkout")
		if _, err := os.Stat(filepath.Join(r.policy.Workspace, ".git/hooks/post-checkout")); err == nil {
			t.Error("the hook is still there")
		}
	},
	"file-names": func(t *testing.T) {
		r := newRoom(t)
		r.must("stat -c '%s %U' /etc/shadow")
		r.refused("cat /etc/shadow")
		r.refused("ls /etc || ls / || ls /run || ls " + r.outside)
	},
	"file-modes": func(t *testing.T) {
		r := newRoom(t)
		victim := filepath.Join(r.outside, "victim")
		write(t, victim, "v")
		line := "chmod 701 " + victim + " && touch -d 2001-01-01 " + victim
		if os.Geteuid() == 0 {
			r.refused(line) // an account of its own owns nothing outside
		}
		r.disown()
		r.must(line)
		r.refused("cat " + victim)
		r.refused("echo x > " + victim + " || rm " + victim + " || truncate -s 0 " + victim)
	},
	"process-numbers": func(t *testing.T) {
		r := newRoom(t)
		r.disown()
		pid := itoa(os.Getpid())
		r.must("test -d /proc/" + pid)
		r.refused("cat /proc/" + pid + "/cmdline || cat /proc/" + pid + "/environ || cat /proc/" + pid + "/mem || ls /proc || ls /proc/" + pid + " || readlink /proc/" + pid + "/exe")
	},
	"host-identity": func(t *testing.T) {
		r := newRoom(t)
		host, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		if out := r.must("uname -n; cat /etc/passwd /proc/sys/kernel/ostype"); !strings.Contains(out, host) || !strings.Contains(out, "root:") || !strings.Contains(out, "Linux") {
			t.Errorf("the box sees %s", out)
		}
	},
	"forbidden-later": func(t *testing.T) {
		r := newRoom(t)
		r.policy.ForbidRead = []string{filepath.Join(r.policy.Workspace, "later/key")}
		r.must("mkdir later && echo x > later/key && cat later/key")
	},
	"forbidden-names": func(t *testing.T) {
		r := newRoom(t)
		write(t, filepath.Join(r.outside, "secrets/key"), "s3cret")
		r.policy.Readable, r.policy.ForbidRead = []string{r.outside}, []string{filepath.Join(r.outside, "secrets")}
		if out := r.must("ls " + r.outside + "/secrets"); !strings.Contains(out, "key") {
			t.Errorf("the names: %s", out)
		}
		r.refused("cat " + r.outside + "/secrets/key")
	},
	"signals": func(t *testing.T) {
		r := newRoom(t)
		r.disown()
		line := "kill -0 " + itoa(os.Getpid())
		r.refused(line)
		r.box = reduced{abi: 5}
		r.must(line)
	},
}

func TestReducedGapsAreReal(t *testing.T) {
	listed := map[string]bool{}
	for _, g := range ReducedGaps {
		listed[g.ID] = true
		show, ok := shows[g.ID]
		if !ok {
			t.Errorf("no test shows the gap %q", g.ID)
			continue
		}
		t.Run(g.ID, show)
	}
	for id := range shows {
		if !listed[id] {
			t.Errorf("the gap %q is shown and not listed", id)
		}
	}
	for name, a := range attempts {
		if a.gap != "" && !listed[a.gap] {
			t.Errorf("%s names the gap %q, which is not listed", name, a.gap)
		}
	}
}

func TestReducedBoxIsTakenOnlyWhereItIsAllowed(t *testing.T) {
	newReducedBox(t)
	ctx, none := context.Background(), t.TempDir()
	box, rep, err := Detect(ctx, Config{Path: none})
	if !errors.Is(err, ErrUnavailable) || box != nil || !strings.Contains(rep.Mend, "allow_reduced_box = true") || len(rep.Gaps) > 0 {
		t.Errorf("nobody allowed it: %v %+v %v", box, rep, err)
	}
	box, rep, err = Detect(ctx, Config{Path: none, AllowReduced: true})
	if err != nil || box.Name() != "landlock" || len(rep.Gaps) < 5 || !strings.Contains(rep.NoFull, "bubblewrap (bwrap) was not found") {
		t.Errorf("somebody allowed it: %v %+v %v", box, rep, err)
	}
	if box, _, err := Detect(ctx, Config{Path: none, AllowReduced: true, Backend: "bwrap"}); !errors.Is(err, ErrUnavailable) || box != nil {
		t.Errorf("bwrap was asked for: %v %v", box, err)
	}
	if box, _, err := Detect(ctx, Config{AllowReduced: true}); err == nil && box.Name() != "bwrap" {
		t.Errorf("the full box comes first: %v", box.Name())
	}
	for abi := minLandlock; abi <= newReducedBox(t).(reduced).abi; abi++ {
		if err := probe(ctx, reduced{abi: abi}); err != nil {
			t.Errorf("version %d: %v", abi, err)
		}
	}
	for _, g := range GapsOf(7) {
		if g.ID == "signals" {
			t.Error("signals are held from version 6 on")
		}
	}
	if len(GapsOf(5)) != len(ReducedGaps) {
		t.Error("version 5 does not hold signals")
	}
}

func TestReducedBoxRunsACommand(t *testing.T) {
	r := newRoom(t)
	out := r.must("echo hello > a && cat a && pwd && echo err >&2 && touch $HOME/x $TMPDIR/y $GOCACHE.z && cat <(echo substituted) && mktemp && head -c 1 /dev/urandom >/dev/null")
	for _, want := range []string{"hello", r.policy.Workspace, "err", "substituted", r.policy.Temp + "/tmp."} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	if read(t, filepath.Join(r.policy.Workspace, "a")) != "hello\n" || read(t, filepath.Join(r.policy.Temp, "y")) != "" {
		t.Error("files are not where the host expects them")
	}
	for line, want := range map[string]int{"exit 7": 7, "kill -SEGV $$": 139, "no-such-program": 127} {
		if res := r.bash(line); res.ExitCode != want {
			t.Errorf("%s: exit code %d, want %d", line, res.ExitCode, want)
		}
	}
	r.must("git init -q inner && cd inner && touch a && git add a && git commit -qm a && git log --format=%an | grep -q Reasonix")
}

func TestReducedBoxHasNoNetworkAndSaysSo(t *testing.T) {
	r := newRoom(t)
	r.policy.Network = &Network{}
	if _, err := r.box.Run(context.Background(), r.policy, Command{Argv: []string{"true"}}); err == nil || !strings.Contains(err.Error(), "network = true needs the full box") {
		t.Errorf("network: %v", err)
	}
}

// The ways around the missing namespaces: each must fail, whatever its name.
func TestReducedBoxRefusesWhatNamespacesWouldHold(t *testing.T) {
	python(t)
	r := newRoom(t)
	r.disown() // the same user as the host: the harder case
	sock := filepath.Join(r.policy.Workspace, "host.sock")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: sock, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	pid := itoa(os.Getpid())
	for name, code := range map[string]string{
		"a socket file in the workspace itself":  "import socket; socket.socket(socket.AF_UNIX)",
		"a datagram pair that is pointed at one": "import socket; a,b=socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.connect('" + sock + "')",
		"a stream pair that is pointed at one":   "import socket; a,b=socket.socketpair(); a.connect('" + sock + "')",
		"a stream pair that sends to one":        "import socket; a,b=socket.socketpair(); a.sendto(b'x', '" + sock + "')",
		"netlink":                                "import socket; socket.socket(16, 3, 0)",
		"UDP":                                    "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
		"a raw packet":                           "import socket; socket.socket(17, 3, 0)",
		"the host's limits":                      "import resource; resource.prlimit(" + pid + ", resource.RLIMIT_NOFILE, (8, 8))",
		"the host's processors":                  "import os; os.sched_setaffinity(" + pid + ", {0})",
		"the host's priority":                    "import os; os.setpriority(os.PRIO_PROCESS, " + pid + ", 19)",
		"the user's priority":                    "import os; os.setpriority(os.PRIO_USER, os.getuid(), 19)",
		"shared memory":                          "import ctypes,sys; l=ctypes.CDLL(None); sys.exit(0 if l.shmget(1234, 4096, 0o1600) >= 0 else 1)",
		"a message queue":                        "import ctypes,sys; l=ctypes.CDLL(None); sys.exit(0 if l.mq_open(b'/q', 0o102, 0o600, None) >= 0 else 1)",
		"watching files of others":               "import ctypes,sys; l=ctypes.CDLL(None); sys.exit(0 if l.inotify_init() >= 0 else 1)",
		"the memory of the host":                 "open('/proc/" + pid + "/mem','rb')",
		"the environment of the host":            "open('/proc/" + pid + "/environ','rb')",
		"a signal to everybody":                  "import os; os.kill(" + pid + ", 0)",
		"a descriptor of the host":               "import os; os.open('/proc/" + pid + "/root/etc/shadow', 0)",
		"leaving through the parent's root":      "import os; os.open('/proc/" + itoa(os.Getppid()) + "/cwd', 0)",
		"shared memory files of the host":        "open('/dev/shm/reasonix','w')",
		"the temp folder of the host":            "open('/tmp/reasonix-x','w')",
		"a terminal of the host":                 "open('/dev/ptmx','r+b')",
		"emptying a file by name":                "import os; os.truncate('" + r.outside + "/marker', 0)",
		"moving a folder out of the workspace":   "import os; os.mkdir('m'); os.rename('m', os.environ['HOME']+'/m')",
		"a descriptor that was left open":        "import os,sys; sys.exit(1 if all(not os.path.exists('/dev/fd/%d' % f) for f in range(3, 40)) else 0)",
		"a device":                               "import os; os.mknod('dev', 0o020600, os.makedev(1, 3))",
	} {
		t.Run(name, func(t *testing.T) {
			inner := *r
			inner.t = t
			inner.refused("/usr/bin/python3 -c \"" + code + "\"")
		})
	}
	r.must(`/usr/bin/python3 -c "import socket; a,b=socket.socketpair(); a.send(b'x'); assert b.recv(1)==b'x'"`)
}

func TestReducedForbiddenReads(t *testing.T) {
	r := newRoom(t)
	w := r.policy.Workspace
	write(t, filepath.Join(w, "secrets/key"), "s3cret")
	write(t, filepath.Join(w, "open/file"), "fine")
	write(t, filepath.Join(r.outside, "a/secret"), "s3cret")
	write(t, filepath.Join(r.outside, "a/other"), "fine")
	r.own()
	r.policy.Readable = []string{r.outside}
	r.policy.ForbidRead = []string{filepath.Join(r.outside, "a/secret"), "/usr/share/doc", "/nowhere/at/all"}
	r.must("cat " + r.outside + "/a/other && ls /usr/bin >/dev/null && true")
	r.refused("cat " + r.outside + "/a/secret")
	r.refused("cat /usr/share/doc/*/copyright | grep -q .")
	r.policy.ForbidRead = []string{filepath.Join(w, "secrets")}
	if _, err := r.box.Run(context.Background(), r.policy, Command{Argv: []string{"true"}}); err == nil || !strings.Contains(err.Error(), "forbid_read names "+w+"/secrets") {
		t.Errorf("a forbidden folder in a writable one: %v", err)
	}
	r.policy.ReadOnly = true // a plan can leave it out
	r.must("cat open/file")
	r.refused("cat secrets/key")
	r.refused("cat open/../secrets/key")
}

func TestReducedBoxPutsBackWhateverWasDone(t *testing.T) {
	for name, line := range map[string]string{
		"the folder moved and another in its place": "mv .git .g2 && mkdir -p .git/hooks && echo x > .git/config && echo x > .git/hooks/post-checkout",
		"moved below its own name":                  "mv .git x && mkdir .git && mv x .git/x",
		"moved deep":                                "mkdir -p a/b/c && mv .git a/b/c/d && ln -s /etc .git",
		"a link instead of the hooks":               "mkdir evil && echo x > evil/post-checkout && rm -rf .git/hooks && ln -s ../evil .git/hooks",
		"a link instead of the information":         "mkdir evil && echo '* filter=x' > evil/attributes && mv .git/info evil/i && ln -s ../evil .git/info",
		"a file with two names":                     "ln .git/config notes.txt && ln .git/hooks/*.sample .",
		"folders closed":                            "mkdir c && mv .git c/.git && chmod 000 c/.git c",
		"folders closed in place":                   "echo x >> .git/config && chmod 000 .git/hooks .git",
		"closed files":                              "chmod 000 .git/config .git/hooks/*",
		"a closed folder in its place":              "mv .git g && mkdir -p .git/a/b && touch .git/a/b/c .git/config && find .git -depth -exec chmod 000 {} \\;",
		"a closed folder among the hooks":           "mkdir -p .git/hooks/a/b && touch .git/hooks/a/b/c && find .git/hooks/a -depth -exec chmod 000 {} \\;",
		"the workspace closed":                      "echo x > .git/hooks/post-checkout && chmod 000 .",
		"the mode of a hook":                        "chmod 777 .git/config .git/hooks",
		"a large file among the hooks":              "head -c 40000000 /dev/zero > .git/hooks/pre-commit",
		"many files among the hooks":                "for i in $(seq 300); do echo x > .git/hooks/h$i; done",
		"a queue among the hooks":                   "mkfifo .git/hooks/pre-push",
		"the agent's own configuration":             "mkdir -p .reasonix/a/b && echo x > .reasonix/a/b/c && echo x > reasonix.toml && ln -s /etc/passwd .mcp.json",
		"a planted submodule":                       "mkdir -p .git/modules/x/hooks && echo ../evil > .git/commondir",
		"in the background":                         "(setsid sh -c 'sleep 0.2; while :; do echo x > .git/hooks/post-merge; done' &) ; sleep 0.4",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t)
			r.repository()
			before, err := remember(r.policy.Workspace)
			if err != nil {
				t.Fatal(err)
			}
			res := r.bash(line)
			if res.ExitCode != 0 || len(res.Restored) == 0 {
				t.Errorf("exit %d, put back %v\n%s", res.ExitCode, res.Restored, res.Output)
			}
			r.sameProtected(line, before)
			r.must("git status && echo y > y && git add -A && git commit -qm y")
		})
	}
}

// A repository that one command takes away and a later one brings back, with hooks of its own: nothing of it stays.
func TestReducedBoxLetsNoRepositoryComeBackChanged(t *testing.T) {
	const deep = `for i in $(seq 30); do mkdir $n && cd $n; done`
	long := "n=" + strings.Repeat("n", 200) + "; "
	for name, lines := range map[string][2]string{
		"a copy":                {"cp -a .git copy && echo x > copy/hooks/post-checkout && echo '[x]' >> copy/config && rm -rf .git", "rm -rf .git && mv copy .git"},
		"a name that is none":   {"mkdir $'\\xff' && echo x > .git/hooks/post-checkout && echo '[x]' >> .git/config && mv .git $'\\xff'/g", "rm -rf .git && mv $'\\xff'/g .git"},
		"below a path too long": {long + "w=$PWD; echo x > .git/hooks/post-checkout && mkdir -p d && cd d && " + deep + " && mv $w/.git g", long + "rm -rf .git; cd d && for i in $(seq 30); do cd $n; done; true"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t)
			r.repository()
			config := read(t, filepath.Join(r.policy.Workspace, ".git/config"))
			for _, line := range lines {
				if res := r.bash(line); res.ExitCode != 0 || len(res.Restored) == 0 {
					t.Errorf("%s: exit %d, put back %v\n%s", line, res.ExitCode, res.Restored, res.Output)
				}
				if got := read(t, filepath.Join(r.policy.Workspace, ".git/config")); got != config {
					t.Errorf("%s: configuration\n%s", line, got)
				}
				if _, err := os.Stat(filepath.Join(r.policy.Workspace, ".git/hooks/post-checkout")); err == nil {
					t.Errorf("%s: the hook is there", line)
				}
			}
		})
	}
}

func TestReducedBoxPutsBackAfterAStop(t *testing.T) {
	r := newRoom(t)
	r.repository()
	before, err := remember(r.policy.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	r.policy.Limits.Wall = time.Second
	if res := r.bash("mv .git .g2; while :; do echo x > reasonix.toml; done"); !res.TimedOut || len(res.Restored) != 2 {
		t.Errorf("timed out %v, put back %v", res.TimedOut, res.Restored)
	}
	r.sameProtected("stop", before)
}

// Two boxes in one workspace: what the first one's command changed is not what the second one takes for the original.
func TestReducedBoxesRememberOnce(t *testing.T) {
	r := newRoom(t)
	r.repository()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	changed, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = r.box.Run(ctx, r.policy, Command{Argv: []string{"/bin/bash", "-c", "echo evil > .git/hooks/post-checkout; echo up; sleep 60"}, Output: func(b []byte) { close(changed) }})
	}()
	<-changed
	if res := r.bash("true"); len(res.Restored) == 0 {
		t.Error("the second box took the first one's hook for the original")
	}
	stop()
	<-ended
	if _, err := os.Stat(filepath.Join(r.policy.Workspace, ".git/hooks/post-checkout")); err == nil {
		t.Error("the hook is still there")
	}
}

func TestReducedBoxWaitsForAnotherHostInTheSameWorkspace(t *testing.T) {
	r := newRoom(t)
	other, err := occupy(r.policy.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.box.Run(context.Background(), r.policy, Command{Argv: []string{"true"}}); err == nil || !strings.Contains(err.Error(), "another host runs a command in") {
		t.Errorf("beside another host: %v", err)
	}
	other.Close()
	r.must("true")
}

func TestReducedBoxWhereMountsAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("root only: an ordinary user owns the way to its workspace")
	}
	r := newRoom(t)
	r.box = reduced{abi: r.box.(reduced).abi, noMounts: true}
	_, err := r.box.Run(context.Background(), r.policy, Command{Argv: []string{"true"}})
	if err == nil || !strings.Contains(err.Error(), "chmod o+x ") {
		t.Errorf("a closed folder: %v", err)
	}
	for dir := filepath.Dir(r.policy.Workspace); dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&1 == 0 {
			if err := os.Chmod(dir, info.Mode().Perm()|0o111); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.must("touch a && cat a")
	r.refused("cat " + r.outside + "/marker")
	r.refused("ls " + r.outside)
}
