package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// groups makes one control group per call. A nil one makes none: rlimits are all there is then.
type groups struct {
	plan   groupPlan
	memory int64 // the limit of a call that has none of its own
}

// groupPrefix begins the name of every group of a call; the rest is its own.
const groupPrefix = "reasonix-box-"

// found is what hostGroups knows: groups that were tried, or why there are none.
type found struct {
	groups *groups
	why    string
}

// hostGroups takes the way that this machine allows, tries it, and sweeps what hosts left that were killed.
var hostGroups = sync.OnceValue(func() found {
	sweepOrphans()
	plan := planGroups("/", os.Getpid())
	if plan.version == 0 {
		return found{why: plan.why}
	}
	if err := plan.prepare(os.Getpid()); err != nil {
		return found{why: err.Error()}
	}
	g := &groups{plan: plan, memory: plan.memoryRoom() / 5 * 4}
	g.sweep()
	if err := g.try(); err != nil {
		return found{why: err.Error()}
	}
	return found{groups: g, why: plan.why}
})

// prepare hands the controllers down, after the host has made room in its own group.
func (p groupPlan) prepare(pid int) error {
	if p.leaf != "" {
		if err := os.Mkdir(p.leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("cgroup of the host: %w", err)
		}
		if err := os.WriteFile(filepath.Join(p.leaf, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("cgroup of the host: %w", err)
		}
	}
	if len(p.enable) == 0 {
		return nil
	}
	return handDown(p.dirs[p.enable[0]], p.enable...)
}

// handDown lets the children of a version 2 group use controllers.
func handDown(dir string, controllers ...string) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+strings.Join(controllers, " +")), 0o644); err != nil {
		return fmt.Errorf("cgroup of the host: hand down %s: %w", strings.Join(controllers, ", "), err)
	}
	return nil
}

// try runs a command in a group: what the files promise is believed only then.
func (g *groups) try() error {
	done := make(chan error, 1)
	ownThread(func() {
		one, err := g.open(Limits{Processes: 16, MemoryBytes: 64 << 20})
		if err != nil {
			done <- err
			return
		}
		defer one.close()
		cmd := exec.Command("/bin/sh", "-c", "read line; cat /proc/self/cgroup")
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		cmd.Stdin = strings.NewReader("\n")
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := one.start(cmd); err != nil {
			done <- fmt.Errorf("start a command in a cgroup: %w", err)
			return
		}
		err = cmd.Wait()
		if err == nil && strings.Count(out.String(), one.name) < len(one.dirs) {
			err = errors.New("a command that was started in a cgroup is not in it")
		}
		done <- err
	})
	return <-done
}

func (g *groups) holds(controller string) bool { return g != nil && g.plan.dirs[controller] != "" }

// group is where the processes of one call are. It is removed with the call; a lock on its folder tells others that its host lives.
type group struct {
	of     *groups
	name   string
	limits Limits
	dirs   []string
	open   []*os.File // of dirs, locked
}

// open makes a group with the limits. It gives nil, which may be used like any other, where there are no groups.
func (g *groups) open(l Limits) (*group, error) {
	for tries := 0; ; tries++ {
		one, err := g.make(l)
		swept := errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, fs.ErrNotExist) // by a host that started in this moment
		if !swept || tries == 20 {
			return one, err
		}
	}
}

func (g *groups) make(l Limits) (*group, error) {
	if g == nil {
		return nil, nil
	}
	if l.MemoryBytes == 0 {
		l.MemoryBytes = g.memory
	}
	if l.CPUs > 0 && g.plan.version == 2 && g.holds("cpu") {
		if err := handDown(g.plan.dirs["cpu"], "cpu"); err != nil {
			return nil, err
		}
	}
	one := &group{of: g, name: groupPrefix + callID(), limits: l}
	for _, c := range wanted {
		if c == "cpu" && l.CPUs == 0 && g.plan.version == 1 {
			continue // a group of its own would only make the call wait for its turn
		}
		if base := g.plan.dirs[c]; base != "" && !slices.Contains(one.dirs, filepath.Join(base, one.name)) {
			if err := one.add(filepath.Join(base, one.name)); err != nil {
				one.close()
				return nil, fmt.Errorf("cgroup of the call: %w", err)
			}
		}
	}
	for _, s := range groupSettings(g.plan.version, l) {
		base := g.plan.dirs[s.controller]
		if base == "" {
			continue
		}
		err := os.WriteFile(filepath.Join(base, one.name, s.file), []byte(s.value), 0o644)
		if err != nil && !s.optional {
			one.close()
			return nil, fmt.Errorf("cgroup of the call: %w", err)
		}
	}
	return one, nil
}

func (one *group) add(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	one.dirs = append(one.dirs, dir)
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	one.open = append(one.open, f)
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	_, err = os.Stat(dir) // a sweep that came before the lock may have taken it away
	return err
}

// start starts cmd inside the group, from its first instruction on. With version 1 a process is born where the thread is that starts it, so
// the thread goes there and back; it has to be locked to the caller.
func (one *group) start(cmd *exec.Cmd) error {
	if one == nil {
		return cmd.Start()
	}
	if one.of.plan.version == 2 {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(one.open[0].Fd())
		return cmd.Start()
	}
	defer func() {
		for _, dir := range one.dirs {
			_ = moveThread(filepath.Dir(dir))
		}
	}()
	for _, dir := range one.dirs {
		if err := moveThread(dir); err != nil {
			return fmt.Errorf("cgroup of the call: %w", err)
		}
	}
	return cmd.Start()
}

// moveThread takes the calling thread alone; "0" spares the kernel a wait for all processors.
func moveThread(dir string) error {
	return os.WriteFile(filepath.Join(dir, "tasks"), []byte("0"), 0o644)
}

// killed says in words that the kernel ended a process of the call because of its memory.
func (one *group) killed() string {
	if one == nil || one.limits.MemoryBytes == 0 {
		return ""
	}
	file := map[int]string{1: "memory.oom_control", 2: "memory.events"}[one.of.plan.version]
	w := words(filepath.Join(one.of.plan.dirs["memory"], one.name), file)
	for i, key := range w[:max(0, len(w)-1)] {
		if key == "oom_kill" && w[i+1] != "0" {
			return fmt.Sprintf("killed: it used more than %d MiB of memory", one.limits.MemoryBytes>>20)
		}
	}
	return ""
}

// close removes the group and ends what should still be in it.
func (one *group) close() {
	if one == nil {
		return
	}
	for _, dir := range slices.Backward(one.dirs) {
		removeGroup(dir)
	}
	for _, f := range one.open {
		f.Close()
	}
}

// removeGroup waits a moment for the dead to be counted off; what cannot be removed is left to the next start's sweep.
func removeGroup(dir string) {
	deadline := time.Now().Add(killGrace / 4)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		err := os.Remove(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) || time.Now().After(deadline) {
			return
		}
		killGroup(dir)
		pause.Reset(time.Millisecond)
		<-pause.C // the kernel gives no signal here
	}
}

// killGroup ends everything in a group: at once where the kernel can (version 2), else one by one.
func killGroup(dir string) {
	if os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0o644) == nil {
		return
	}
	for _, p := range words(dir, "cgroup.procs") {
		if pid, err := strconv.Atoi(p); err == nil && pid > 1 && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// sweep removes the groups of hosts that were killed: nobody holds the lock on them any more.
func (g *groups) sweep() {
	for _, base := range g.plan.dirs {
		left, _ := filepath.Glob(filepath.Join(base, groupPrefix+"*"))
		for _, dir := range left {
			f, err := os.Open(dir)
			if err != nil {
				continue
			}
			if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
				killGroup(dir)
				removeGroup(dir)
			}
			f.Close()
		}
	}
}
