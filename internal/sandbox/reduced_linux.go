package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// reduced is the box without namespaces: Landlock for files and signals, a system call filter for sockets and the rest. What it
// does not hold is ReducedGaps.
type reduced struct {
	abi      int  // version of Landlock that it uses
	noMounts bool // the host is root and may make no mounts
}

// Name is "landlock".
func (reduced) Name() string { return "landlock" }

// Account is the same as that of the full box.
func (reduced) Account(id string) (int, int, bool) { return bwrap{}.Account(id) }

// OpenFolders is true for a root host that may make no mounts: the only way for an account to its workspace is then through folders
// that let others pass.
func (b reduced) OpenFolders() bool { return b.noMounts && os.Geteuid() == 0 }

// Run runs the command and returns when its whole tree is gone, and what is protected in the workspace is as it was before.
func (b reduced) Run(ctx context.Context, p Policy, c Command) (Result, error) {
	r, err := b.run(ctx, p, c)
	if err != nil {
		return r, fmt.Errorf("run command in the reduced box: %w", err)
	}
	return r, nil
}

func (b reduced) run(ctx context.Context, p Policy, c Command) (Result, error) {
	if len(c.Argv) == 0 {
		return Result{}, errors.New("no command")
	}
	dir, err := commandDir(p, c)
	if err != nil {
		return Result{}, err
	}
	uid, gid, drop, err := account(p.Workspace)
	if err != nil {
		return Result{}, err
	}
	side, err := newSide(&p, uid, gid)
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(side)
	rules, err := planRules(p)
	if err != nil {
		return Result{}, err
	}
	rules = append(rules, rule{filepath.Join(side, "gitconfig"), rightsRead})
	limits, mark := p.Limits.withDefaults(), callID()
	if uid != 0 { // the kernel exempts root
		limits.Processes += running(uid)
	}
	s := stageSpec{Workspace: p.Workspace, ABI: b.abi, NoMounts: b.noMounts, Rules: rules, Dir: dir, Drop: drop, UID: uid, GID: gid, Side: side, Argv: limited("", limits, c.Argv)}
	s.Env = slices.Concat(p.Env, c.Env, []string{"TMPDIR=" + p.Temp, "TMP=" + p.Temp, "TEMP=" + p.Temp,
		"GIT_CONFIG_SYSTEM=" + filepath.Join(side, "gitconfig"), markName + mark})
	x := &stageRun{spec: s, policy: p, stdin: c.Stdin, out: newCapture(limits.Output, c.Output), mark: markName + mark}
	if p.ReadOnly { // nothing in the workspace can be changed
		return x.run(ctx, wallFor(limits, c))
	}
	state, putBack, err := keepers.hold(p.Workspace)
	if err != nil {
		return Result{}, err
	}
	x.spec.Kept = state
	r, err := x.run(ctx, wallFor(limits, c))
	restored, restoreErr := putBack()
	r.Restored = restored
	return r, errors.Join(err, restoreErr)
}

const markName = "REASONIX_CALL="

// newSide makes a folder of the host for one call: git's manners, and a temp folder where the policy names none.
func newSide(p *Policy, uid, gid int) (string, error) {
	side, err := os.MkdirTemp("", "reasonix-box-")
	if err != nil {
		return "", err
	}
	if side, err = filepath.EvalSymlinks(side); err != nil {
		return "", err
	}
	err = errors.Join(os.WriteFile(filepath.Join(side, "gitconfig"), []byte(gitManners), 0o644), os.Chmod(filepath.Join(side, "gitconfig"), 0o644), os.Chmod(side, 0o711))
	if p.Temp == "" {
		p.Temp = filepath.Join(side, "tmp")
		err = errors.Join(err, os.Mkdir(p.Temp, 0o700), os.Chown(p.Temp, uid, gid))
	}
	if err != nil {
		os.RemoveAll(side)
		return "", err
	}
	return side, nil
}

// running counts the threads of an account: the kernel's limit on processes counts them all, whoever started them.
func running(uid int) int {
	n := 0
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != uid {
			continue
		}
		threads, _ := os.ReadDir(dir + "/task")
		n += len(threads)
	}
	return n
}

// stageRun is one command in the reduced box, seen from the host.
type stageRun struct {
	spec   stageSpec
	policy Policy
	stdin  io.Reader
	out    *capture
	mark   string
}

func (x *stageRun) run(ctx context.Context, wall time.Duration) (Result, error) {
	cmd, pipes, err := x.start()
	if err != nil {
		return Result{}, err
	}
	defer pipes.close()
	runCtx, cancel := context.WithTimeout(ctx, wall)
	defer cancel()
	start := time.Now()
	copied := make(chan struct{})
	go func() { defer close(copied); _, _ = io.Copy(x.out, pipes.out) }()
	sent := make(chan struct{})
	go func() { defer close(sent); _ = json.NewEncoder(pipes.line).Encode(x.spec) }()
	var end stageEnd
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		_ = json.NewDecoder(pipes.status).Decode(&end)
		_ = cmd.Wait()
	}()
	killed, stopped := false, ""
	select {
	case <-waited:
	case <-watchDisk(runCtx, x.policy):
		stopped = fmt.Sprintf("stopped: the task's folders hold more than %d bytes", x.policy.Limits.DiskBytes)
	case <-runCtx.Done():
		killed = true
	}
	if killed || stopped != "" {
		x.stop(cmd, pipes, sent, waited)
	}
	if end.Exit == nil { // the stage did not see the end itself
		killMarked(x.mark)
	}
	_ = pipes.out.SetReadDeadline(time.Now().Add(killGrace / 4)) // nobody is left; only what is buffered is still read
	<-copied
	r := Result{Duration: time.Since(start), Stopped: stopped}
	r.Output, r.Omitted = x.out.bytes()
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case killed || stopped != "":
		r.TimedOut, r.ExitCode = killed, 128+int(syscall.SIGKILL)
	case end.Exit == nil:
		return Result{}, fmt.Errorf("the box did not start: %s", firstLine(end.Error+string(r.Output)))
	default:
		r.ExitCode = *end.Exit
	}
	return r, nil
}

// stop lets the stage end the tree; one that does not answer is ended itself.
func (x *stageRun) stop(cmd *exec.Cmd, pipes stagePipes, sent, waited <-chan struct{}) {
	select {
	case <-sent:
		_ = json.NewEncoder(pipes.line).Encode(stageWord{Stop: true})
	default: // it does not even read
		_ = cmd.Process.Kill()
	}
	select {
	case <-waited:
	case <-time.After(killGrace * 3 / 4):
		_ = cmd.Process.Kill()
		killMarked(x.mark)
		<-waited
	}
}

// stagePipes are the host's ends.
type stagePipes struct{ out, line, status *os.File }

func (p stagePipes) close() {
	p.out.Close()
	p.line.Close()
	p.status.Close()
}

// start runs this very program as the stage.
func (x *stageRun) start() (cmd *exec.Cmd, pipes stagePipes, err error) {
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	pipe := func(give int) (ours *os.File) { // give: the end that goes to the stage
		r, w, e := os.Pipe()
		if e != nil {
			err = e
			return nil
		}
		ends := [2]*os.File{r, w}
		theirs = append(theirs, ends[give])
		return ends[1-give]
	}
	pipes.out, pipes.line, pipes.status = pipe(1), pipe(0), pipe(1)
	if err != nil {
		pipes.close() // closing a nil file is an error and nothing else
		return nil, pipes, err
	}
	cmd = exec.Command("/proc/self/exe", StageCommand)
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.Stdin = x.stdin
	cmd.Stdout, cmd.Stderr = theirs[0], theirs[0]
	cmd.ExtraFiles = theirs[1:]
	cmd.WaitDelay = killGrace / 4
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		pipes.close()
		return nil, pipes, err
	}
	return cmd, pipes, nil
}
