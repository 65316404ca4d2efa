package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// execution is one run of bubblewrap.
type execution struct {
	program   string
	workspace string
	policy    Policy
	bindFD    bool // the program takes descriptors as sources
	mounts    []mount
	private   bool // no temp folder given: /tmp is in memory
	tail      []string
	argv      []string
	relay     *net.UnixConn // the host's end of the relay, when the box has a network
	env       []string
	stdin     io.Reader
	out       *capture
	drop      bool // run as uid and gid
	uid, gid  int
	groups    *groups // nil: rlimits alone
	limits    Limits
	files     []*os.File // given to bubblewrap from descriptor 3 on
}

// flags of every box: namespaces of its own, no way to make more, no capabilities, no terminal, and an end with the host.
var flags = []string{"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
	"--disable-userns", "--cap-drop", "ALL", "--new-session", "--die-with-parent", "--hostname", "box"}

// status is what bubblewrap writes while it works; without an exit code the command never ran.
type status struct {
	ChildPID int  `json:"child-pid"`
	ExitCode *int `json:"exit-code"`
}

// supervise runs on a thread of its own: the kernel ends bubblewrap when the thread that started it ends, and staged mounts
// belong to that thread alone, which therefore is never reused.
func (x *execution) supervise(ctx context.Context, wall time.Duration) (Result, error) {
	type end struct {
		r   Result
		err error
	}
	done := make(chan end, 1)
	ownThread(func() {
		if !x.drop {
			defer runtime.UnlockOSThread()
		}
		r, err := x.run(ctx, wall)
		done <- end{r, err}
	})
	e := <-done
	return e.r, e.err
}

// ownThread runs f on a thread that is locked and not the process's first: that one would outlive f whatever becomes of it, and what
// /proc says of the host is said of it. Unless f unlocks the thread, it ends with f.
func ownThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			f()
			return
		}
		ended := make(chan struct{})
		ownThread(func() { defer close(ended); f() }) // the first thread is held here, so it is another one
		<-ended
		runtime.UnlockOSThread()
	}()
}

func (x *execution) run(ctx context.Context, wall time.Duration) (Result, error) {
	defer x.closeFiles()
	defer x.closeRelay()
	e, err := x.connect()
	if err != nil {
		return Result{}, err
	}
	defer e.close()
	cmd, err := x.command(e)
	if err != nil {
		return Result{}, err
	}
	group, err := x.groups.open(x.limits)
	if err != nil {
		return Result{}, err
	}
	defer group.close()
	if err := sealDescriptors(); err != nil {
		return Result{}, err
	}
	runCtx, cancel := context.WithTimeout(ctx, wall)
	defer cancel()
	start := time.Now()
	if err := group.start(cmd); err != nil {
		return Result{}, err
	}
	x.closeFiles()
	if err := e.started(); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return Result{}, err
	}
	reached := x.serveNetwork()
	copied := make(chan struct{})
	go func() { defer close(copied); _, _ = io.Copy(x.out, e.out) }()
	child, ended := watch(e.stat)
	killed, stopped := x.await(runCtx, cmd, child)
	awaitTree(child)
	_ = e.out.SetReadDeadline(time.Now().Add(killGrace / 4)) // nobody is left; only what is buffered is still read
	<-copied
	_ = e.stat.SetReadDeadline(time.Now().Add(killGrace / 4))
	code := <-ended

	r := Result{Duration: time.Since(start), Stopped: stopped}
	r.Output, r.Omitted = x.out.bytes()
	r.Reached = reached()
	if stopped == "" {
		r.Stopped = group.killed()
	}
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case killed || stopped != "":
		r.TimedOut, r.ExitCode = killed, killedCode
	case code == nil && r.Stopped != "": // the box's own processes were among the killed
		r.ExitCode = killedCode
	case code == nil:
		return Result{}, fmt.Errorf("the box did not start: %s", firstLine(string(r.Output)))
	default:
		r.ExitCode = *code
	}
	return r, nil
}

// await returns when the command has ended, by itself or because of a limit.
func (x *execution) await(ctx context.Context, cmd *exec.Cmd, child <-chan int) (killed bool, stopped string) {
	waited := make(chan struct{})
	go func() { defer close(waited); _ = cmd.Wait() }()
	select {
	case <-waited:
		return false, ""
	case stopped = <-watchDisk(ctx, x.policy):
	case <-ctx.Done():
		killed = true
	}
	fd, ok := killBox(cmd.Process, child)
	<-waited
	if ok {
		reap(fd)
	}
	return killed, stopped
}

// command prepares bubblewrap; what it shares with the host is connected already.
func (x *execution) command(e *ends) (*exec.Cmd, error) {
	args, err := x.arguments()
	if err != nil {
		return nil, err
	}
	filter, err := filterProgram(x.uid == 0)
	if err != nil {
		return nil, err
	}
	filterFD, err := x.give(filter)
	if err != nil {
		return nil, err
	}
	args = append(args, "--seccomp", filterFD, "--json-status-fd", e.statFD)
	relay, err := x.relayArgs()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(x.program, slices.Concat(args, x.tail, relay, x.argv)...)
	cmd.Env = x.env
	cmd.Dir = "/"
	cmd.Stdin = x.stdin
	cmd.Stdout, cmd.Stderr = e.outW, e.outW
	cmd.ExtraFiles = x.files
	cmd.WaitDelay = killGrace / 4
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if x.drop {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(x.uid), Gid: uint32(x.gid)}
	}
	x.files = append(x.files, e.outW) // closed with the rest after the start; not in ExtraFiles
	return cmd, nil
}

// relayArgs stand before the command of a box with a network.
func (x *execution) relayArgs() ([]string, error) {
	if x.policy.Network == nil {
		return nil, nil
	}
	ours, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	x.relay = ours
	return []string{relayPath, RelayCommand, x.pass(theirs)}, nil
}

// serveNetwork serves the proxy until the returned function is called.
func (x *execution) serveNetwork() (reached func() []string) {
	if x.relay == nil {
		return func() []string { return nil }
	}
	r := serveRelay(x.relay, x.policy.Network)
	x.relay = nil
	return r.close
}

func (x *execution) closeRelay() {
	if x.relay != nil {
		x.relay.Close()
	}
}

func (x *execution) arguments() ([]string, error) {
	args := append(append([]string{}, flags...), baseArgs()...)
	if x.private {
		args = append(args, "--size", strconv.Itoa(1<<30), "--perms", "1777", "--tmpfs", "/tmp")
	}
	mounts := x.mounts
	if x.drop {
		staged, err := stage(mounts, x.workspace)
		if err != nil {
			return nil, err
		}
		mounts = staged
	}
	for _, m := range mounts {
		switch m.kind {
		case bindRO, bindRW:
			bind, err := x.bind(m)
			if err != nil {
				return nil, err
			}
			args = append(args, bind...)
		case maskDir:
			args = append(args, "--perms", "0000", "--tmpfs", m.dest, "--remount-ro", m.dest)
		case maskFile, data:
			fd, err := x.give([]byte(m.text))
			if err != nil {
				return nil, err
			}
			perms := "0444"
			if m.kind == maskFile {
				perms = "0000"
			}
			args = append(args, "--perms", perms, "--ro-bind-data", fd, m.dest)
		}
	}
	return args, nil
}

// bind names the source by descriptor where that can be done, so that nothing can be swapped below the path.
func (x *execution) bind(m mount) ([]string, error) {
	flag := map[mountKind]string{bindRO: "--ro-bind", bindRW: "--bind"}[m.kind]
	if x.drop || !x.bindFD || !within(x.workspace, m.src) {
		return []string{flag, m.src, m.dest}, nil
	}
	fd, err := openSource(m.src, x.workspace)
	if err != nil {
		return nil, fmt.Errorf("bind %s: %w", m.src, err)
	}
	return []string{flag + "-fd", x.pass(os.NewFile(uintptr(fd), m.src)), m.dest}, nil
}

// give hands content over in a pipe; it must fit the pipe's buffer of 64 KiB.
func (x *execution) give(content []byte) (string, error) {
	if len(content) > 60<<10 {
		return "", errors.New("content for the box is too large")
	}
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer w.Close()
	if _, err := w.Write(content); err != nil {
		r.Close()
		return "", err
	}
	return x.pass(r), nil
}

func (x *execution) pass(f *os.File) string {
	x.files = append(x.files, f)
	return strconv.Itoa(len(x.files) + 2)
}

func (x *execution) closeFiles() {
	for _, f := range x.files {
		f.Close()
	}
	x.files = nil
}

// watch reads bubblewrap's status: a handle of the box's first process as soon as it is known, and at the end the exit code.
func watch(stat io.Reader) (child <-chan int, ended <-chan *int) {
	c, e := make(chan int, 1), make(chan *int, 1)
	go func() {
		var code *int
		known := false
		defer func() {
			if !known {
				close(c)
			}
			e <- code
		}()
		dec := json.NewDecoder(bufio.NewReader(stat))
		for {
			var s status
			if err := dec.Decode(&s); err != nil {
				return
			}
			if s.ExitCode != nil {
				code = s.ExitCode
			}
			if s.ChildPID > 0 && !known {
				if fd, err := unix.PidfdOpen(s.ChildPID, 0); err == nil {
					c <- fd
				}
				close(c)
				known = true
			}
		}
	}()
	return c, e
}

// killBox ends the first process of the pid namespace, and with it all others, also detached ones and those that ignore signals. It
// gives the handle of that process, if it had one.
func killBox(monitor *os.Process, child <-chan int) (fd int, ok bool) {
	select {
	case fd, ok = <-child:
		if ok {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			_ = awaitExit(fd)
		}
	case <-time.After(killGrace / 4): // not even started
	}
	_ = monitor.Kill()
	return fd, ok
}

// reap closes the handle of a box's first process that has ended. bubblewrap leaves it to the nearest reaper, which is the host itself where
// it is the first process of a container.
func reap(fd int) {
	_ = unix.Waitid(unix.P_PIDFD, fd, nil, unix.WEXITED|unix.WNOHANG, nil)
	unix.Close(fd)
}

// awaitTree waits until the namespace is empty; killBox may have taken the handle already.
func awaitTree(child <-chan int) {
	fd, ok := <-child
	if !ok {
		return
	}
	defer reap(fd)
	if err := awaitExit(fd); err != nil {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		_ = awaitExit(fd)
	}
}

var errStillThere = errors.New("process still there")

func awaitExit(pidfd int) error {
	deadline := time.Now().Add(killGrace / 2)
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return errStillThere
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if err == nil && n > 0 {
			return nil
		}
		if err != nil && err != unix.EINTR {
			return err
		}
	}
}
