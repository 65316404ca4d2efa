package sandbox

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The texts of attempts, word for word as a task tries them in the box and as a control tries them without one, so that the two cannot
// drift apart. They are lines of bash; these variables say what they aim at:
//
//	$OUT   a folder outside with the file marker      $P    a process of the host
//	$MAIN  the repository that a worktree belongs to  $SOCK $ABS $PORT $UDP  sockets that a process of the host serves
var attemptTexts = map[string][]string{
	"S01": {
		"ln -s $OUT/marker l; echo x > l",
		"ln -s $OUT d; echo x > d/marker",
	},
	"S10": {
		`test -e /proc/$P/mem && test -n "$(tr '\0' '\n' < /proc/$P/cmdline)"`,
		py(`p="/proc/"+os.environ["P"]; at=[x for x in open(p+"/maps") if "[stack]" in x][0].split("-")[0]
f=open(p+"/mem","r+b",buffering=0); f.seek(int(at,16)); b=f.read(1); f.seek(int(at,16)); f.write(b)`),
		py(`call(NR_ptrace,0x4206,int(os.environ["P"]),0,0)`),
	},
	"S12": {
		"echo x > .git/hooks/post-checkout", "mkdir .git/hooks/d", "mv .git/hooks .git/h2", "rm -rf .git/hooks && mkdir .git/hooks && echo x > .git/hooks/a",
		"git config core.fsmonitor /bin/true", "echo x >> .git/config", "mv .git/config .git/c2", "rm -f .git/config",
		"echo '* filter=x' > .git/info/attributes", "mv .git/info .git/i && mkdir .git/info && echo x > .git/info/attributes", "echo ../evil > .git/commondir", "mkdir -p .git/modules/x/hooks",
	},
	"S14 worktree": {
		"mkdir -p evil/hooks; echo gitdir: evil > .git", "mv .git g2", "rm -f .git",
		"echo x > $MAIN/.git/hooks/post-checkout", "echo x > $MAIN/.git/worktrees/tree/commondir",
	},
	"S14 submodule": {
		"echo x > .git/modules/deps/lib/hooks/post-checkout", "echo x >> .git/modules/deps/lib/config", "mv .git/modules/deps/lib .git/modules/m2",
		"mv deps d2", "mv deps/lib deps/l2", "echo gitdir: /tmp/evil > deps/lib/.git", "rm deps/lib/.git", "mkdir -p .git/modules/new/hooks",
	},
	"S17": {"mv .git .g2 && mkdir -p .git/hooks && echo x > .git/config && echo x > .git/hooks/post-checkout"},
	"S24": {py(`s=socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(os.environ["SOCK"])`)},
	"S28": {
		py(`s=socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect("\0"+os.environ["ABS"])`),
		"exec 3<>/dev/tcp/127.0.0.1/$PORT",
		py(`s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.settimeout(0.2); s.sendto(b"x",("127.0.0.1",int(os.environ["UDP"]))); s.recv(1)`),
	},
	"S32": {"kill -0 $P", "kill -9 $P"},
}

// attemptRooms prepares what an attempt aims at, besides a repository.
var attemptRooms = map[string]func(r *room){
	"S14 worktree":  (*room).worktree,
	"S14 submodule": (*room).submodule,
	"S24":           (*room).serve,
	"S28":           (*room).serve,
}

func attemptRoom(t *testing.T, id string) *room {
	r := newRoom(t)
	r.repository()
	if prepare := attemptRooms[id]; prepare != nil {
		prepare(r)
	}
	return r
}

// tryAll makes every attempt of this number in a box.
func tryAll(t *testing.T, id string) {
	for _, line := range attemptTexts[id] {
		attemptRoom(t, id).refused(line)
	}
}

// The same texts do what they are meant to do without a box: in namespaces that are thrown away, on copies. So an attempt that is
// refused is refused by the box, and not because it was written wrong.
func TestControlsInAThrowawayNamespace(t *testing.T) {
	python(t)
	for id, lines := range attemptTexts {
		t.Run(id, func(t *testing.T) {
			for _, line := range lines {
				r := attemptRoom(t, id)
				copied, res, err := r.throwaway(line)
				if err != nil {
					t.Errorf("%s\ndoes nothing without a box either: %v\n%s", line, err, res)
				}
				if changed := read(t, filepath.Join(copied, "state/outside/marker")) != "untouched"; changed != (id == "S01") {
					t.Errorf("%s\nmarker of the copy changed: %v", line, changed)
				}
			}
		})
	}
}

// throwaway runs a line without any of the box's protections, in mount, pid, net, ipc and uts namespaces of its own, over a copy of the
// room. A stand-in there plays the host: its sockets, its files, its process.
func (r *room) throwaway(line string) (copied, out string, err error) {
	r.t.Helper()
	top := filepath.Dir(filepath.Dir(r.outside))
	copied = r.t.TempDir()
	if out, err := exec.Command("cp", "-a", top+"/.", copied).CombinedOutput(); err != nil {
		r.t.Fatalf("copy the room: %v %s", err, out)
	}
	rel, err := filepath.Rel(top, r.policy.Workspace)
	if err != nil {
		r.t.Fatal(err)
	}
	args := []string{"--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
		"--tmpfs", "/tmp", "--bind", copied, top, "--bind", filepath.Join(copied, rel), r.policy.Workspace, "--chdir", r.policy.Workspace, "--", "/bin/bash", "-c",
		`exec 9< <(exec /usr/bin/python3 -c "$STANDIN"); read -u 9 P; export P; exec /bin/bash -c "$LINE"`}
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, mustLook(r.t, "bwrap"), args...)
	cmd.WaitDelay = time.Second
	cmd.Env = append(r.targets(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "PATH="+defaultPath, "HOME="+r.policy.Home, "STANDIN="+standIn, "LINE="+line)
	b, err := cmd.CombinedOutput()
	return copied, string(b), err
}

const standIn = `
import socket,os,sys,ctypes,threading
L=ctypes.CDLL(None)
L.prctl(0x59616d61,ctypes.c_ulong(-1 & (2**64-1)),0,0,0)
E=os.environ
def unix(name):
    s=socket.socket(socket.AF_UNIX); s.bind(name); s.listen(); return s
if os.path.exists(E["SOCK"]): os.remove(E["SOCK"])
keep=[unix(E["SOCK"]), unix("\0"+E["ABS"]), open(E["OUT"]+"/marker"), open("/dev/shm/"+E["ABS"],"w")]
t=socket.socket(); t.bind(("127.0.0.1",int(E["PORT"]))); t.listen()
u=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); u.bind(("127.0.0.1",int(E["UDP"])))
L.shmget(int(E["SHM"]),4096,0o1666)
print(os.getpid(),flush=True)
while True:
    d,a=u.recvfrom(9); u.sendto(d,a)
`

// targets are the variables of the texts.
func (r *room) targets() []string {
	env := []string{"OUT=" + r.outside, "P=" + itoa(os.Getpid()), "MAIN=" + r.main, "SOCK=" + filepath.Join(r.outside, "sock"), "ABS=" + r.name(),
		"PORT=" + itoa(r.port(r.tcp)), "UDP=" + itoa(r.port(r.udp)), "SHM=" + itoa(shmKey())}
	return env
}

func (r *room) name() string { return "reasonix-test-" + r.id }

func shmKey() int { return 0x52580000 + os.Getpid()%0xffff }

// port is that of what the host serves; without a server any number does, for nobody asks there.
func (r *room) port(a net.Addr) int {
	switch x := a.(type) {
	case *net.TCPAddr:
		return x.Port
	case *net.UDPAddr:
		return x.Port
	}
	return 3999
}

// serve lets the real host answer at the sockets that the texts name.
func (r *room) serve() {
	r.t.Helper()
	for _, name := range []string{filepath.Join(r.outside, "sock"), "@" + r.name()} {
		l, err := net.Listen("unix", name)
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { l.Close() })
	}
	if err := os.Chmod(filepath.Join(r.outside, "sock"), 0o777); err != nil {
		r.t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { tcp.Close(); udp.Close() })
	r.tcp, r.udp = tcp.Addr(), udp.LocalAddr()
	go func() { // echoes
		b := make([]byte, 9)
		for {
			n, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(b[:n], from)
		}
	}()
}

func (r *room) worktree() {
	r.main = r.policy.Workspace
	tree := filepath.Join(filepath.Dir(r.main), "tree")
	git(r.t, r.main, "worktree", "add", "-q", "-b", "side", tree)
	r.policy.Workspace = tree
	r.chown(tree)
	r.chown(r.main)
	r.own()
}

func (r *room) submodule() {
	lib := filepath.Join(r.outside, "lib")
	write(r.t, filepath.Join(lib, "l"), "l")
	git(r.t, lib, "init", "-q")
	git(r.t, lib, "add", "-A")
	git(r.t, lib, "commit", "-qm", "l")
	git(r.t, r.policy.Workspace, "submodule", "add", "-q", lib, "deps/lib")
	git(r.t, r.policy.Workspace, "commit", "-qm", "submodule")
	r.own()
}

// py is a line that runs Python with call(number, …), which ends with 0 only when the kernel did it, and with 38 when it has no such
// call. NR_name stands for a system call's number on this machine.
func py(text string) string {
	prelude := `import ctypes,os,sys,socket,struct,stat,subprocess,fcntl
L=ctypes.CDLL(None,use_errno=True); L.syscall.restype=ctypes.c_long
def end(e):
    print("errno",e,os.strerror(e)); sys.exit(38 if e in (38,97) else 1)
def call(n,*a):
    r=L.syscall(ctypes.c_long(n),*[ctypes.c_long(x) if isinstance(x,int) else x for x in a])
    if r<0: end(ctypes.get_errno())
    return r
def family(f,t=2,p=0):
    try: socket.socket(f,t,p)
    except OSError as x: end(x.errno)
`
	return "/usr/bin/python3 -c '" + strings.ReplaceAll(prelude+numbered(text), "'", `'"'"'`) + "'"
}
