package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// StageCommand is the hidden subcommand that the reduced box starts with: this very program, which restricts one of its threads and
// starts the command from there. The rest of it stays outside of the box, ends the tree, and outlives a host that is killed.
const StageCommand = "box-stage"

// stageSpec is what the host tells the stage.
type stageSpec struct {
	Workspace string   `json:"workspace"`
	ABI       int      `json:"abi"`
	NoMounts  bool     `json:"no_mounts,omitempty"`
	Rules     []rule   `json:"rules"`
	Kept      []kept   `json:"kept,omitempty"` // put back by the stage when the host is gone
	Side      string   `json:"side"`           // removed by the stage when the host is gone
	Argv      []string `json:"argv"`
	Env       []string `json:"env"`
	Dir       string   `json:"dir"`
	Drop      bool     `json:"drop"`
	UID       int      `json:"uid"`
	GID       int      `json:"gid"`
}

// stageWord is what the host says later; the end of the pipe without one means that the host is gone.
type stageWord struct {
	Stop bool `json:"stop"`
}

// stageEnd is how the command ended, or why it did not start.
type stageEnd struct {
	Exit  *int   `json:"exit,omitempty"`
	Error string `json:"error,omitempty"`
}

// What a step that failed is called; detect looks for it.
const (
	noFilter     = "load the system call filter"
	noPrivileges = "drop privileges"
)

const (
	lineFD   = 3
	statusFD = 4
)

// Stage runs one command of the reduced box. It returns when the whole tree is gone.
func Stage() error {
	if _, err := unix.FcntlInt(statusFD, unix.F_GETFD, 0); err != nil {
		return errors.New("box stage: this command is started by boxes only")
	}
	if err := unix.CloseRange(lineFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("box stage: %w", err)
	}
	line, status := os.NewFile(lineFD, "line"), os.NewFile(statusFD, "status")
	words := json.NewDecoder(line)
	var s stageSpec
	if err := words.Decode(&s); err != nil {
		return fmt.Errorf("box stage: read what to run: %w", err)
	}
	code, err := s.run(words)
	end := stageEnd{Exit: &code}
	if err != nil {
		end = stageEnd{Error: err.Error()}
	}
	return json.NewEncoder(status).Encode(end)
}

// run starts the command and waits for its end, a word of the host, or the end of the host.
func (s stageSpec) run(words *json.Decoder) (int, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("adopt what detaches: %w", err)
	}
	occupied, err := occupy(s.Workspace)
	if err != nil {
		return 0, err
	}
	defer occupied.Close()
	pid, err := s.start()
	if err != nil {
		return 0, err
	}
	letGo()
	ended, all := reapAll(pid)
	told := make(chan bool, 1)
	go func() {
		var w stageWord
		told <- words.Decode(&w) == nil
	}()
	hostGone := false
	select {
	case <-ended:
	case there := <-told:
		hostGone = !there
	}
	ws := endTree(all)
	if hostGone {
		_, _ = restore(s.Kept) // nobody is left to tell
		_ = os.RemoveAll(s.Side)
	}
	if ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return ws.ExitStatus(), nil
}

// letGo leaves the ends of the output to the box alone, so that they close with it.
func letGo() {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return // the host reads on until this process ends as well
	}
	for fd := range 3 {
		_ = unix.Dup3(null, fd, unix.O_CLOEXEC)
	}
	unix.Close(null)
}

// start restricts a thread that is never used for anything else and starts the command from it; the kernel ends the command together with
// that thread. It is not the process's first one, whose rights decide who may signal the whole process: the box could stop the stage.
func (s stageSpec) start() (pid int, err error) {
	started := make(chan error)
	ownThread(func() {
		pid, err = s.enter()
		started <- err
		select {}
	})
	return pid, <-started
}

// enter restricts the calling thread step by step, each of which takes away what the next one no longer needs.
func (s stageSpec) enter() (int, error) {
	filter, err := reducedFilter(os.Geteuid() == 0 && !s.Drop)
	if err != nil {
		return 0, err
	}
	if s.Drop {
		if err := s.leadIn(); err != nil {
			return 0, err
		}
	}
	ruleset, flags, err := s.ruleset()
	if err != nil {
		return 0, err
	}
	defer unix.Close(ruleset)
	if err := dropPrivileges(s.Drop, s.UID, s.GID); err != nil {
		return 0, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("no new privileges: %w", err)
	}
	if err := ll.LandlockRestrictSelf(ruleset, flags); err != nil {
		return 0, fmt.Errorf("enforce Landlock: %w", err)
	}
	if err := loadFilter(filter); err != nil {
		return 0, fmt.Errorf(noFilter+": %w", err)
	}
	pid, err := syscall.ForkExec(s.Argv[0], s.Argv, &syscall.ProcAttr{Dir: s.Dir, Env: s.Env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}})
	if err != nil {
		return 0, fmt.Errorf("start the command in %s: %w", s.Dir, err)
	}
	return pid, nil
}

// landlocks are the rights and scopes by version.
var landlocks = []landlock.Config{{}, landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7,
	landlock.V8, landlock.V9, landlock.V10, landlock.V11}

func (s stageSpec) ruleset() (fd int, flags uint32, err error) {
	rules, done, err := landlockRules(s.Rules, s.Workspace)
	if err != nil {
		return -1, 0, err
	}
	defer done()
	if fd, flags, err = landlocks[s.ABI].NewRulesetFD(rules...); err == nil && fd < 0 {
		err = errors.New("nothing would be restricted")
	}
	if err != nil {
		return -1, 0, fmt.Errorf("prepare Landlock: %w", err)
	}
	return fd, flags, nil
}

// dropPrivileges changes the calling thread alone; the package syscall would change all.
func dropPrivileges(drop bool, uid, gid int) error {
	if os.Geteuid() != 0 {
		return nil // an ordinary user has none
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ { // EINVAL: a kernel with fewer
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf(noPrivileges+": %w", err)
		}
	}
	if drop {
		for _, call := range [][4]uintptr{{unix.SYS_SETGROUPS, 0, 0, 0}, {unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)},
			{unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)}} {
			if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
				return fmt.Errorf(noPrivileges+": become uid %d: %w", uid, errno)
			}
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	none := [2]unix.CapUserData{}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf(noPrivileges+": %w", err)
	}
	return nil
}

// loadFilter puts the filter on the calling thread.
func loadFilter(program []byte) error {
	const size = int(unsafe.Sizeof(unix.SockFilter{}))
	fprog := unix.SockFprog{Len: uint16(len(program) / size), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	_, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return errno
	}
	return nil
}
