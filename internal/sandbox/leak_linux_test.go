package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"reasonix/internal/tool"
)

// runKinds are the ways in which a run can go.
var runKinds = map[string]func(r *room) error{
	"plain":      func(r *room) error { return r.ends("echo x > x", 0) },
	"failing":    func(r *room) error { return r.ends("echo x >&2; exit 3", 3) },
	"missing":    func(r *room) error { return r.ends("no-such-program-at-all", 127) },
	"flood":      func(r *room) error { return r.ends("seq 1 20000", 0) },
	"detached":   func(r *room) error { return r.ends("setsid sleep 100 & sleep 100 & true", 0) },
	"timeout":    (*room).timedOut,
	"stopped":    (*room).stoppedRun,
	"background": (*room).inTheBackground,
	"network":    (*room).withNetwork,
	"shadows":    (*room).withShadows,
	"as root":    (*room).asHost,
	"refused":    (*room).notStarted,
}

func (r *room) ends(line string, code int) error {
	res, err := r.box.Run(context.Background(), r.policy, Command{Argv: []string{"/bin/bash", "-c", line}, Env: []string{"TREE=" + r.id}})
	if err == nil && res.ExitCode != code {
		err = errors.New(string(res.Output))
	}
	return err
}

func (r *room) timedOut() error {
	res, err := r.box.Run(context.Background(), r.policy, Command{Argv: []string{"/bin/bash", "-c", "trap '' TERM; sleep 100 & sleep 100"}, Env: []string{"TREE=" + r.id}, Wall: 60 * time.Millisecond})
	if err == nil && !res.TimedOut {
		err = errors.New("no timeout")
	}
	return err
}

func (r *room) stoppedRun() error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	_, err := r.box.Run(ctx, r.policy, Command{Argv: []string{"/bin/bash", "-c", "echo up; setsid sleep 100 & sleep 100"}, Env: []string{"TREE=" + r.id}, Output: func([]byte) { stop() }})
	if !errors.Is(err, context.Canceled) {
		return errors.New("not stopped")
	}
	return nil
}

func (r *room) inTheBackground() error {
	j := NewJobs(r.box, func() Policy { return r.policy })
	for _, id := range []string{"a", "b"} {
		if err := j.Start(id, tool.Command{Line: "sleep 100"}); err != nil {
			return err
		}
	}
	if n := len(j.Close()); n != 2 {
		return errors.New("they did not run")
	}
	return nil
}

func (r *room) withNetwork() error {
	p := *r
	p.policy.Network = &Network{AllowHosts: []string{"nowhere.invalid"}}
	return p.ends("exec 3<>/dev/tcp/127.0.0.1/3128; printf 'GET http://x.invalid/ HTTP/1.0\\r\\n\\r\\n' >&3; read -u 3 line; echo $line | grep -q 403", 0)
}

func (r *room) withShadows() error {
	p := *r
	p.policy.ForbidRead = []string{filepath.Join(r.policy.Workspace, "later"), filepath.Join(r.policy.Workspace, "README")}
	return p.ends("! cat later/x README", 0)
}

func (r *room) asHost() error {
	r.disown()
	defer r.own()
	return r.ends("true", 0)
}

func (r *room) notStarted() error {
	p := *r
	p.policy.Readable = []string{"/nowhere/x"}
	if p.ends("true", 0) == nil {
		return errors.New("it started")
	}
	return nil
}

// belongings is everything that a host could leave behind.
type belongings struct {
	descriptors []string
	mounts      string
	namespaces  int // mount namespaces that threads of this process are in; those of processes go with them
	temp        int
	files       string
	groups      int
}

func (r *room) belongings() belongings {
	b := belongings{mounts: read(r.t, "/proc/thread-self/mountinfo"), temp: count(os.TempDir()), groups: len(boxGroups())}
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && !strings.Contains(to, "/proc/") {
			kind, _, _ := strings.Cut(to, ":")
			b.descriptors = append(b.descriptors, kind)
		}
	}
	slices.Sort(b.descriptors)
	seen := map[string]bool{}
	spaces, _ := filepath.Glob("/proc/self/task/*/ns/mnt")
	for _, s := range spaces {
		if to, err := os.Readlink(s); err == nil {
			seen[to] = true
		}
	}
	b.namespaces = len(seen)
	_ = filepath.WalkDir(filepath.Dir(r.policy.Workspace), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			b.files += path + "\n"
		}
		return nil
	})
	return b
}

// Two hundred runs of all kinds, in twenty of which the host is killed, leave nothing: no process, mount, file, descriptor, goroutine,
// socket and control group.
func TestInvariant08_TwoHundredRunsLeaveNothingBehind(t *testing.T) {
	r := newRoom(t)
	t.Setenv("TMPDIR", t.TempDir()) // others use the machine's own
	r.repository()
	once := func(kind string) {
		t.Helper()
		if err := runKinds[kind](r); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
	}
	for kind := range runKinds {
		once(kind)
	}
	before := r.belongings()
	for range 180 / len(runKinds) {
		for kind := range runKinds {
			once(kind)
		}
	}
	for i := range 20 {
		h := startHost(r)
		if i%2 == 0 {
			h.says(r, "up\n")
		} else {
			<-time.After(time.Duration(i) * time.Millisecond) // somewhere in the making of the box
		}
		h.killed(r)
		h.successor(r)
	}
	if left := processesWith("TREE=" + r.id); len(left) > 0 {
		t.Errorf("processes: %v", left)
	}
	if left := processesWith("HOME=" + r.policy.Home); len(left) > 0 {
		t.Errorf("processes: %v", left)
	}
	goleak.VerifyNone(t)
	after := r.settled(before)
	if !slices.Equal(after.descriptors, before.descriptors) {
		t.Errorf("descriptors: %v, were %v", after.descriptors, before.descriptors)
	}
	if after.mounts != before.mounts || after.namespaces > before.namespaces {
		t.Errorf("mounts, or %d mount namespaces, were %d", after.namespaces, before.namespaces)
	}
	if after.temp != before.temp || after.groups != before.groups {
		t.Errorf("%d temp entries, were %d; %d control groups, were %d", after.temp, before.temp, after.groups, before.groups)
	}
	for file := range strings.Lines(after.files) {
		if !strings.Contains(before.files, file) {
			t.Errorf("file: %s", file)
		}
	}
}

// settled gives the kernel a second to count off threads that have ended.
func (r *room) settled(before belongings) belongings {
	deadline := time.After(time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		after := r.belongings()
		if after.namespaces <= before.namespaces && after.groups == before.groups {
			return after
		}
		select {
		case <-deadline:
			return after
		case <-tick.C: // the end of a thread gives no signal
		}
	}
}

// A host can be killed at any moment, so a shadow must never be seen without the mark by which the next box knows it.
func TestAShadowHasItsMarkBeforeItsName(t *testing.T) {
	root := t.TempDir()
	sh := shadow{root: root, path: filepath.Join(root, ".mcp.json")}
	done, seen := make(chan struct{}), make(chan int)
	go func() {
		bad := 0
		for {
			select {
			case <-done:
				seen <- bad
				return
			default:
			}
			if info, err := os.Lstat(sh.path); err == nil && !IsShadow(info) {
				bad++
			}
		}
	}()
	for range 1500 {
		if err := makeShadow(sh); err != nil {
			t.Fatal(err)
		}
		dropShadow(sh)
	}
	close(done)
	if bad := <-seen; bad > 0 {
		t.Errorf("seen %d times without its mark", bad)
	}
}

// In a container the host may be the first process, to which everything falls that has lost its parent.
func TestBoxLeavesNoDeadToAHostThatIsTheReaper(t *testing.T) {
	r := newRoom(t)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	for range 5 {
		for _, kind := range []string{"plain", "detached", "timeout", "stopped"} {
			if err := runKinds[kind](r); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid > 0 {
				t.Errorf("%s left the dead process %d, %v", kind, pid, err)
			}
		}
	}
}
