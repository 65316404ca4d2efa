package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// numbered replaces NR_name by the number of the call on this architecture.
func numbered(text string) string {
	info, err := arch.GetInfo("")
	if err != nil {
		return text
	}
	return regexp.MustCompile(`NR_\w+`).ReplaceAllStringFunc(text, func(s string) string {
		if n, ok := info.SyscallNames[strings.TrimPrefix(s, "NR_")]; ok {
			return itoa(n)
		}
		return "99999" // not on this architecture: the kernel says so
	})
}

// who can make the control of an attempt.
const (
	anybody = ""     // it works without a box
	asRoot  = "root" // it works without a box for root
)

// more are our own attempts, of the kinds of the list of known escapes. control is anybody, asRoot, or why there is no control.
var more = []struct{ name, line, control string }{
	// Kernel surfaces.
	{"io_uring", py(`call(NR_io_uring_setup,1,(ctypes.c_char*120)())`), anybody},
	{"userfaultfd", py(`call(NR_userfaultfd,1)`), anybody},
	{"bpf map", py(`a=ctypes.create_string_buffer(struct.pack("IIII",2,4,4,1),128); call(NR_bpf,0,a,128)`), asRoot},
	{"keyring of the session", py(`call(NR_keyctl,1,0)`), anybody},
	{"key", py(`call(NR_add_key,b"user",b"x",b"y",1,-2)`), anybody},
	{"perf events", py(`a=ctypes.create_string_buffer(struct.pack("IIQ",1,112,0),112); call(NR_perf_event_open,a,0,-1,-1,0)`), asRoot},
	{"kernel log", py(`call(NR_syslog,10,0,0)`), asRoot},
	{"fanotify", py(`call(NR_fanotify_init,0,0)`), asRoot},
	{"local descriptor table", py(`call(NR_modify_ldt,0,(ctypes.c_char*16)(),16)`), anybody},
	{"port access", py(`call(NR_iopl,3)`), asRoot},
	{"kernel module", py(`call(NR_init_module,b"x",1,b"")`), "a module would be loaded into this kernel"},
	{"kernel module by file", "modprobe dummy || insmod x.ko", "a module would be loaded into this kernel"},
	{"another kernel", py(`call(NR_kexec_load,0,0,0,0)`), "it would unload the kernel to start next"},
	{"clock", py(`call(NR_clock_settime,0,(ctypes.c_long*2)(1,1))`), "it would set this machine's clock"},
	{"memory of the kernel", "head -c 4 /proc/kcore | grep -q ELF", "few kernels show it"},
	{"devices", "for d in mem kmsg fuse kvm vda sda loop0 loop-control net/tun vsock uinput; do test -e /dev/$d && exit 0; done; exit 1", "the stand-in's /dev has none either"},
	{"kernel settings", "echo 1 > /proc/sys/kernel/panic || echo x > /proc/sys/kernel/modprobe || echo x > /proc/sys/vm/drop_caches", "they are this machine's"},
	{"the 32-bit table", py(`import mmap
m=mmap.mmap(-1,4096,prot=7); m.write(bytes.fromhex("b814000000cd80c3")) # getpid of i386
f=ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m))); r=f()
if r<0: end(-r)`), "few kernels carry it"},
	// Processes.
	{"trace a sibling", py(`p=subprocess.Popen(["sleep","60"]); call(NR_ptrace,0x4206,p.pid,0,0); p.kill()`), anybody},
	{"read a sibling's memory", py(`b=ctypes.create_string_buffer(b"secret"); p=os.fork()
if p==0: import time; time.sleep(60)
o=ctypes.create_string_buffer(8); v=struct.Struct("QQ"); w=lambda x: ctypes.create_string_buffer(v.pack(ctypes.addressof(x),6),16)
r=L.syscall(NR_process_vm_readv,p,w(o),ctypes.c_long(1),w(b),ctypes.c_long(1),ctypes.c_long(0)); e=ctypes.get_errno(); os.kill(p,9)
sys.exit(0 if r==6 and o.value==b"secret" else 1)`), anybody},
	{"a sibling's descriptor", py(`p=subprocess.Popen(["sleep","60"]); f=call(NR_pidfd_open,p.pid,0); call(NR_pidfd_getfd,f,0,0)`), anybody},
	{"signal the host", "kill -TERM $P || kill -STOP $P", anybody},
	{"the host's root through /proc", "cat /proc/$P/root$OUT/marker || cat /proc/$P/cwd/marker || cat /proc/$P/environ", anybody},
	{"the first process's root", "cat /proc/1/root$OUT/marker", anybody},
	{"descriptors of others", `for f in /proc/[0-9]*/fd/*; do [ -f $f ] && [ "$(head -c 9 $f)" = untouched ] && exit 0; done; exit 1`, anybody},
	{"realtime", py(`os.sched_setscheduler(0,os.SCHED_FIFO,os.sched_param(1))`), asRoot},
	{"higher limits", "ulimit -Hn 1000000 || ulimit -Hu unlimited", "it depends on the machine's own"},
	{"protection from the memory killer", "echo -500 > /proc/self/oom_score_adj", "not every root may do it"},
	// Namespaces and mounts.
	{"user namespace by clone3", py(`a=ctypes.create_string_buffer(struct.pack("QQQQQ",0x10000000,0,0,0,17),88)
if call(NR_clone3,a,88)==0: os._exit(0)`), anybody},
	{"user namespace by clone", py(`
if call(NR_clone,0x10000011,0,0,0,0)==0: os._exit(0)`), anybody},
	{"user namespace by unshare", py(`call(NR_unshare,0x10000000)`), anybody},
	{"mount namespace", py(`call(NR_unshare,0x20000)`), asRoot},
	{"another's namespace", py(`call(NR_setns,os.open("/proc/1/ns/net",0),0)`), asRoot},
	{"mount", py(`call(NR_mount,b"x",b".",b"tmpfs",0,0)`), asRoot},
	{"new mount calls", py(`call(NR_fsopen,b"tmpfs",0)`), asRoot},
	{"copy a tree and move it", py(`f=call(NR_open_tree,-100,b"/usr",1); call(NR_move_mount,f,b"",-100,b".",4)`), asRoot},
	{"make the tree writable", py(`a=struct.pack("QQQQ",0,1,0,0); call(NR_mount_setattr,-100,b"/",0,a,32)`), asRoot},
	{"unmount", py(`call(NR_umount2,b"/tmp",2)`), asRoot},
	{"pivot the root", py(`call(NR_pivot_root,b".",b".")`), asRoot},
	{"change the root", py(`call(NR_chroot,b".")`), asRoot},
	{"open by handle", py(`h=ctypes.create_string_buffer(struct.pack("Ii",120,0),128); m=ctypes.c_int()
call(NR_name_to_handle_at,-100,b".",h,ctypes.byref(m),0); call(NR_open_by_handle_at,os.open(".",0),h,0)`), asRoot},
	{"control groups", "ls /sys/fs/cgroup/*", anybody},
	{"fuse", "test -c /dev/fuse || fusermount3 -u . || fusermount -u .", "needs a file system of its own"},
	// Files.
	{"device node", py(`os.mknod("null",0o666|stat.S_IFCHR,os.makedev(1,3))`), asRoot},
	{"setuid by chmod", "cp /bin/true s && chmod u+s s && test -u s", anybody},
	{"setuid at creation", py(`os.umask(0); os.close(os.open("s",os.O_CREAT|os.O_WRONLY,0o4755)); sys.exit(0 if os.stat("s").st_mode&0o4000 else 1)`), anybody},
	{"setuid at creation, the short way", py(`os.umask(0); call(NR_creat,b"s",0o4755); sys.exit(0 if os.stat("s").st_mode&0o4000 else 1)`), anybody},
	{"setuid by openat2", py(`os.umask(0); h=struct.pack("QQQ",os.O_CREAT|os.O_WRONLY,0o4755,0); call(NR_openat2,-100,b"s",h,24); sys.exit(0 if os.stat("s").st_mode&0o4000 else 1)`), anybody},
	{"setuid by mknod", py(`os.umask(0); os.mknod("s",0o4755|stat.S_IFREG); sys.exit(0 if os.stat("s").st_mode&0o4000 else 1)`), anybody},
	{"setgid at creation", py(`os.umask(0); os.close(os.open("s",os.O_CREAT|os.O_WRONLY,0o2755)); sys.exit(0 if os.stat("s").st_mode&0o2000 else 1)`), anybody},
	{"setuid of a nameless file", py(`os.umask(0); f=os.open(".",os.O_TMPFILE|os.O_WRONLY,0o4755); sys.exit(0 if os.fstat(f).st_mode&0o4000 else 1)`), anybody},
	{"capabilities of a file", py(`open("c","w").close(); os.setxattr("c","security.capability",bytes.fromhex("0100000201000000000000000000000000000000"))`), asRoot},
	{"exchange the configuration", py(`open("mine","w").write("x"); call(NR_renameat2,-100,b"mine",-100,b".git/config",2)`), anybody},
	{"a nameless file in the hooks", py(`f=os.open(".git/hooks",os.O_TMPFILE|os.O_RDWR,0o755); call(NR_linkat,-100,b"/proc/self/fd/%d"%f,-100,b".git/hooks/pre-push",0x400)`), anybody},
	{"reopen the configuration for writing", py(`f=os.open(".git/config",os.O_RDONLY); os.write(os.open("/proc/self/fd/%d"%f,os.O_WRONLY|os.O_APPEND),b"x")`), anybody},
	{"mode, times and attributes of the configuration", "chmod 777 .git/config || touch .git/config || setfattr -n user.x -v y .git/config", anybody},
	{"the agent's own configuration", "ln -s /dev/null .mcp.json || mkdir -p .reasonix/x || mv README reasonix.toml", anybody},
	{"watch a folder outside", py(`f=call(NR_inotify_init1,0); call(NR_inotify_add_watch,f,os.environ["OUT"].encode(),0xfff)`), anybody},
	{"another task's folder", "ls $OUT/.. || cat $OUT/marker || cat $OUT/../../*/W/*", anybody},
	{"a program from memory", py(`f=os.memfd_create("x"); os.write(f,open("/bin/bash","rb").read()); os.execv("/proc/self/fd/%d"%f,["bash","-c","cat $OUT/marker"])`), anybody},
	{"what the host loads later", "for f in /etc/ld.so.preload /etc/profile.d/x.sh /etc/cron.d/x /etc/environment /root/.bashrc /usr/local/bin/git; do echo x >> $f && exit 0; done; exit 1", "they are this machine's"},
	{"a file of a terabyte", "truncate -s 1T sparse", anybody},
	// Network and what processes share.
	{"AF_VSOCK", py(`family(40,1)`), anybody},
	{"AF_PACKET", py(`family(17,3)`), asRoot},
	{"AF_ALG", py(`family(38,5)`), anybody},
	{"AF_TIPC as a pair", py(`
try: socket.socketpair(30,1,0)
except OSError as x: end(x.errno)`), "few kernels carry it, and asking loads a module"},
	{"raw ICMP", py(`family(2,3,1)`), asRoot},
	{"switch a network device", py(`s=socket.socket(); fcntl.ioctl(s,0x8914,struct.pack("16sH14x",b"lo",0))`), asRoot},
	{"names", "getent ahosts example.com || getent ahosts $(hostname).local", "there is no network in the control either"},
	{"shared memory, System V", py(`call(NR_shmget,int(os.environ["SHM"]),0,0)`), anybody},
	{"shared memory, POSIX", "test -e /dev/shm/$ABS", anybody},
}

func TestAttemptsMore(t *testing.T) {
	python(t)
	shm, err := unix.SysvShmGet(shmKey(), 4096, unix.IPC_CREAT|0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = unix.SysvShmCtl(shm, unix.IPC_RMID, nil) }()
	for _, a := range more {
		t.Run(a.name, func(t *testing.T) {
			for _, own := range []bool{true, false} { // under an account of its own, and as the host's user
				r := roomFor(t, a.line)
				r.policy.Limits.Wall = 4 * time.Second
				if !own && os.Geteuid() != 0 {
					continue // it is the same
				}
				if !own {
					r.disown()
				}
				posix := "/dev/shm/" + r.name()
				if err := os.WriteFile(posix, nil, 0o666); err != nil {
					t.Fatal(err)
				}
				defer os.Remove(posix)
				r.leak()
				r.refused(a.line)
			}
			if a.control == anybody || (a.control == asRoot && os.Geteuid() == 0) {
				control(t, a.line)
			}
		})
	}
}

// leak opens the marker as a library that forgets O_CLOEXEC would, at a number that no box uses itself.
func (r *room) leak() {
	r.t.Helper()
	f, err := os.Open(filepath.Join(r.outside, "marker"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, 200)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { unix.Close(fd) })
}

func TestAttemptDescriptorsThatTheHostForgot(t *testing.T) {
	r := newRoom(t)
	r.leak()
	if out := r.must("for i in {3..254}; do ( : <&$i ) 2>/dev/null && echo $i; done; true"); out != "" {
		t.Errorf("open in the box: %v", strings.Fields(out))
	}
}

// roomFor is a room with what the line needs: git takes longer than everything else.
func roomFor(t *testing.T, line string) *room {
	r := newRoom(t)
	if strings.Contains(line, ".git") || strings.Contains(line, "README") {
		r.repository()
	}
	return r
}

func control(t *testing.T, line string) {
	t.Helper()
	r := roomFor(t, line)
	_, out, err := r.throwaway(line)
	if err != nil && strings.HasSuffix(err.Error(), "exit status 38") {
		t.Logf("this kernel has no such call: %s", out)
		return
	}
	if err != nil {
		t.Errorf("control: without a box it fails too, %v:\n%s", err, out)
	}
}

// The table of 32-bit numbers on 64-bit registers (x32) shares the architecture of the ordinary one.
func TestAttemptForeignSystemCallTables(t *testing.T) {
	info, err := arch.GetInfo("")
	if err != nil || goarch() != "amd64" {
		t.Skip("tables of amd64")
	}
	raw, err := filterProgram(false)
	if err != nil {
		t.Fatal(err)
	}
	var program []bpf.RawInstruction
	for ; len(raw) > 0; raw = raw[8:] {
		program = append(program, bpf.RawInstruction{Op: native16(raw), Jt: raw[2], Jf: raw[3], K: native32(raw[4:])})
	}
	whole, ok := bpf.Disassemble(program)
	if !ok {
		t.Fatal("the filter cannot be read")
	}
	vm, err := bpf.NewVM(whole)
	if err != nil {
		t.Fatal(err)
	}
	answer := func(nr, table uint32) int {
		data := make([]byte, 64) // struct seccomp_data; the machine of the test reads big-endian
		put32(data, nr)
		put32(data[4:], table)
		n, err := vm.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const x32, i386 = 0x40000000, 0x40000003
	getpid, ptrace := uint32(info.SyscallNames["getpid"]), uint32(info.SyscallNames["ptrace"])
	const allow = 0x7fff0000
	if n := answer(getpid, uint32(info.ID)); n != allow {
		t.Errorf("getpid: %#x", n)
	}
	for name, n := range map[string]int{"ptrace": answer(ptrace, uint32(info.ID)), "ptrace of x32": answer(ptrace|x32, uint32(info.ID)),
		"getpid of x32": answer(getpid|x32, uint32(info.ID)), "getpid of i386": answer(20, i386)} {
		if n == allow {
			t.Errorf("%s is allowed", name)
		}
	}
}

func TestAttemptSignalsToTheBoxesOwnProcesses(t *testing.T) {
	r := newRoom(t)
	start := time.Now()
	out := r.must("for s in KILL STOP TERM SEGV; do kill -$s 1; done; kill -STOP -1; echo on")
	if !strings.Contains(out, "on") || time.Since(start) > 5*time.Second {
		t.Errorf("%q after %v", out, time.Since(start))
	}
}

func TestAttemptSetgidAsRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		return // what others make belongs to no group of importance
	}
	r := newRoom(t)
	r.must("mkdir shared && chmod g+s shared && touch f && chmod 640 f") // a folder that hands its group down
	r.disown()
	r.refused("cp /bin/true s && chmod g+s s")
}

func TestAttemptRacesForTheProtectedNames(t *testing.T) {
	r := newRoom(t)
	r.repository()
	config := read(t, filepath.Join(r.policy.Workspace, ".git/config"))
	r.policy.Limits.Wall = 20 * time.Second
	r.bash(`mkdir -p evil/hooks .GIT/hooks; echo bad > evil/config; echo bad > .GIT/config; echo bad > REASONIX.TOML
for i in $(seq 150); do
  ( ln -sfn $PWD/evil .git/hooks; mv -fT evil .git; ln -f evil/config .git/config; mv -f evil/config .git/config; rm -rf .git; rmdir .git/hooks ) 2>/dev/null &
  ( ln -sfn evil/config reasonix.toml; mv -f evil/config reasonix.toml; ln -f evil/config .mcp.json; mkdir .reasonix/x; mv -T evil .reasonix ) 2>/dev/null
done; wait`)
	got, err := os.ReadFile(filepath.Join(r.policy.Workspace, ".git/config"))
	deleted := r.reduced() && errors.Is(err, fs.ErrNotExist) // a repository that is gone makes nothing run
	if string(got) != config && !deleted {
		t.Errorf("the configuration became %q, %v", got, err)
	}
	for _, name := range append([]string{".git/hooks/config", ".git/hooks/evil"}, Protected...) {
		if _, err := os.Lstat(filepath.Join(r.policy.Workspace, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
}

func TestAttemptFillWhatLiesInMemory(t *testing.T) {
	r := newRoom(t)
	r.refused("fallocate -l 300M /dev/shm/x")
	r.policy.Temp = ""
	r.refused("fallocate -l 2G /tmp/x")
	r.refused("fallocate -l 1M /x || fallocate -l 1M /dev/x || fallocate -l 1M /run/x || fallocate -l 1M /etc/x")
}

func TestAttemptHideFromTheLimitOnDisk(t *testing.T) {
	python(t)
	for name, line := range map[string]string{
		"empty files without number": `/usr/bin/python3 -c 'for i in range(9000): open("f%d"%i,"w").close()'; sleep 60`,
		"deeper than a path can be": `/usr/bin/python3 -c 'import os
for i in range(30): os.mkdir("d"*200); os.chdir("d"*200)
open("big","wb").write(b"x"*8000000)'; sleep 60`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t)
			r.policy.Limits.DiskBytes = 6 << 20
			if res := r.bash(line); !strings.HasPrefix(res.Stopped, "stopped: the task's folders") || res.Duration > 15*time.Second {
				t.Errorf("%q after %v: %s", res.Stopped, res.Duration, res.Output)
			}
		})
	}
}

func TestAttemptOutlastTheHost(t *testing.T) {
	r := newRoom(t)
	r.policy.Limits.Wall = time.Second
	mark := "TREE=more" + callID()
	line := `trap '' TERM HUP INT QUIT PIPE; ` + mark + ` setsid nohup bash -c 'trap "" TERM HUP; (setsid sleep 300 &) ; (setsid bash -c "exec -a bwrap sleep 300" <&- &); sleep 300' & disown; exec env ` + mark + ` sleep 300`
	start := time.Now()
	res := r.bash(line)
	if !res.TimedOut || time.Since(start) > 3*time.Second {
		t.Errorf("timed out %v after %v", res.TimedOut, time.Since(start))
	}
	if left := processesWith(mark); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

func TestAttemptCrowdTheArguments(t *testing.T) {
	r := newRoom(t)
	r.refused(`/bin/true $(head -c 9000000 /dev/zero | tr '\0' x)`)
	r.must(`export BIG=$(head -c 100000 /dev/zero | tr '\0' x); /bin/true`)
	if _, err := r.box.Run(t.Context(), r.policy, Command{Argv: []string{"/bin/true", strings.Repeat("x", 1<<20)}}); err == nil {
		t.Error("a megabyte as one argument")
	}
}

func native16(b []byte) uint16 { return uint16(b[0]) | uint16(b[1])<<8 }
func native32(b []byte) uint32 { return uint32(native16(b)) | uint32(native16(b[2:]))<<16 }
func put32(b []byte, n uint32) {
	b[0], b[1], b[2], b[3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
}
