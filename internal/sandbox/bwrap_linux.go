package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// bwrap is the full box: bubblewrap with namespaces of its own, no capabilities, and a system call filter.
type bwrap struct {
	program string
	bindFD  bool // takes --bind-fd
	groups  *groups
	plain   bool // a root host that may not stage mounts: boxes run as root without capabilities
}

// Name is "bwrap".
func (bwrap) Name() string { return "bwrap" }

// Account spreads workspaces over uids that no system hands out (60706 to 61183), so that one task's processes are not even the
// same user as another's. A box runs as the owner of its workspace.
func (b bwrap) Account(id string) (int, int, bool) {
	if os.Geteuid() != 0 || b.plain {
		return 0, 0, false
	}
	sum := uint32(2166136261) // FNV-1a
	for _, b := range []byte(id) {
		sum = (sum ^ uint32(b)) * 16777619
	}
	uid := 60706 + int(sum%478)
	return uid, uid, true
}

// account is who the box runs as: the workspace's owner when the host is root, else the host's own user.
func account(workspace string) (uid, gid int, drop bool, err error) {
	uid, gid = os.Geteuid(), os.Getegid()
	if uid != 0 {
		return uid, gid, false, nil
	}
	info, err := os.Stat(workspace)
	if err != nil {
		return 0, 0, false, err
	}
	st := info.Sys().(*syscall.Stat_t)
	return int(st.Uid), int(st.Gid), st.Uid != 0, nil
}

// Run runs the command and returns when its whole tree is gone. A command that could not be started is an error; one that
// failed is a Result.
func (b bwrap) Run(ctx context.Context, p Policy, c Command) (Result, error) {
	r, err := b.run(ctx, p, c)
	if err != nil {
		return r, fmt.Errorf("run command in box: %w", err)
	}
	return r, nil
}

func (b bwrap) run(ctx context.Context, p Policy, c Command) (Result, error) {
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
	if drop && b.plain {
		return Result{}, fmt.Errorf("the workspace belongs to uid %d, and this host may not run boxes as another user: it lacks CAP_SYS_ADMIN", uid)
	}
	mounts, missing, err := planMounts(p)
	if err != nil {
		return Result{}, err
	}
	release, err := shadows.hold(missing)
	if err != nil {
		return Result{}, err
	}
	defer release()
	if !drop && !b.bindFD {
		leave, err := crowds.join(p.Workspace, mounts)
		if err != nil {
			return Result{}, err
		}
		defer leave()
	}
	if err := clearTempPath(p, mounts); err != nil {
		return Result{}, err
	}
	limits := p.Limits.withDefaults()
	env, mounts, err := networked(p, mounts)
	if err != nil {
		return Result{}, err
	}
	x := &execution{
		program:   b.program,
		workspace: p.Workspace,
		policy:    p,
		bindFD:    b.bindFD,
		mounts:    append(identity(uid, gid, p.Home), mounts...),
		private:   p.Temp == "",
		tail:      []string{"--remount-ro", "/", "--remount-ro", "/dev", "--chdir", dir, "--"},
		argv:      gated(limits, c.Argv, b.groups.holds("memory")),
		env:       slices.Concat(p.Env, env, c.Env),
		stdin:     c.Stdin,
		out:       newCapture(limits.Output, c.Output),
		drop:      drop, uid: uid, gid: gid,
		groups: b.groups, limits: limits,
	}
	return x.supervise(ctx, wallFor(limits, c))
}

// networked adds what a box with a network needs: the program that opens the proxy's port in it, and the variables that name the proxy.
func networked(p Policy, mounts []mount) (env []string, all []mount, err error) {
	if p.Network == nil {
		return nil, mounts, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("network of the box: %w", err)
	}
	if _, err := os.Stat(self); err != nil {
		return nil, nil, fmt.Errorf("network of the box: the host's program was replaced while it runs, restart the host: %w", err)
	}
	return proxyEnv(), append(mounts, mount{kind: bindRO, src: self, dest: relayPath}), nil
}

// clearTempPath removes links that a task may have left in its temp folder on the way to a workspace that lies below /tmp: a
// mount would follow them.
func clearTempPath(p Policy, mounts []mount) error {
	if p.Temp == "" {
		return nil
	}
	for _, m := range mounts {
		rel, err := filepath.Rel("/tmp", m.dest)
		if err != nil || rel == "." || !within("/tmp", m.dest) || (m.dest != p.Workspace && within(p.Workspace, m.dest)) {
			continue
		}
		root, err := os.OpenRoot(p.Temp)
		if err != nil {
			return err
		}
		err = clearLinks(root, rel)
		root.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func clearLinks(root *os.Root, rel string) error {
	for at := rel; at != "."; at = filepath.Dir(at) {
		if info, err := root.Lstat(at); err == nil && info.Mode()&os.ModeSymlink != 0 {
			if err := root.Remove(at); err != nil {
				return err
			}
		}
	}
	return nil
}

// gated passes the gate before it sets the limits. Where a group bounds the memory of the call, a limit on every process's address space
// would only break programs that reserve much. When the machine runs out of memory all the same, the box goes before the host.
func gated(l Limits, argv []string, grouped bool) []string {
	if grouped {
		l.MemoryBytes = 0
	}
	return limited(gateScript+"{ echo 800 > /proc/self/oom_score_adj; } 2>/dev/null; ", l, argv)
}

const killGrace = 2 * time.Second
