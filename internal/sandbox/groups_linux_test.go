package sandbox

import (
	"bufio"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"reasonix/internal/tool"
)

// tree is a machine's cgroup tree that a test makes up: path → content, folders end in a slash.
type tree map[string]string

const (
	unifiedMount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	splitMounts  = "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n" +
		"32 31 0:29 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
		"33 31 0:30 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n" +
		"34 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
	splitOwn = "4:memory:/a\n3:cpu,cpuacct:/\n2:pids:/b/c\n0::/\n"
)

// service is a version 2 group at path with the given processes, as systemd delegates it.
func service(path, controllers, handedDown string, pids ...string) tree {
	at := "sys/fs/cgroup" + path + "/"
	return tree{at + "cgroup.controllers": controllers, at + "cgroup.subtree_control": handedDown, at + "cgroup.type": "domain",
		at + "cgroup.procs": strings.Join(pids, "\n")}
}

func (tr tree) with(more tree) tree {
	out := maps.Clone(tr)
	maps.Copy(out, more)
	return out
}

func (tr tree) make(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range tr {
		if strings.HasSuffix(path, "/") {
			if err := os.MkdirAll(filepath.Join(root, path), 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(t, filepath.Join(root, path), text)
	}
	return root
}

func proc(own, mounts string) tree {
	return tree{"proc/self/cgroup": own, "proc/self/mountinfo": "23 1 8:1 / / rw - ext4 /dev/root rw\n" + mounts}
}

func TestGroupsTakeTheWayThatTheMachineAllows(t *testing.T) {
	const pid = 41
	unit := "/system.slice/reasonix.service"
	split := tree{"sys/fs/cgroup/memory/a/": "", "sys/fs/cgroup/pids/b/c/": "", "sys/fs/cgroup/cpu,cpuacct/": ""}
	for _, c := range []struct {
		name    string
		tree    tree
		version int
		dirs    map[string]string
		enable  string
		leaf    string
		why     string
	}{
		{"a service with Delegate=yes", proc("0::"+unit+"\n", unifiedMount).with(service(unit, "cpu io memory pids", "", "41")), 2,
			map[string]string{"memory": unit, "pids": unit, "cpu": unit}, "memory pids", unit + "/reasonix-host", ""},
		{"a second start in the same service", proc("0::"+unit+"/reasonix-host\n", unifiedMount).with(service(unit, "cpu memory pids", "cpu memory pids")), 2,
			map[string]string{"memory": unit, "pids": unit, "cpu": unit}, "", "", ""},
		{"without the cpu controller", proc("0::"+unit+"\n", unifiedMount).with(service(unit, "memory pids", "", "41")), 2,
			map[string]string{"memory": unit, "pids": unit}, "memory pids", unit + "/reasonix-host", "no controller for cpu"},
		{"a container whose namespace shows its group as the root", proc("0::/\n", unifiedMount).with(service("", "memory pids cpu", "", "41")), 2,
			map[string]string{"memory": "", "pids": "", "cpu": ""}, "memory pids", "/reasonix-host", ""},
		{"the machine's own root, which may hold processes too", proc("0::/\n", unifiedMount).with(tree{
			"sys/fs/cgroup/cgroup.controllers": "memory pids cpu", "sys/fs/cgroup/cgroup.subtree_control": "memory pids cpu", "sys/fs/cgroup/cgroup.procs": "1\n41"}), 2,
			map[string]string{"memory": "", "pids": "", "cpu": ""}, "", "", ""},
		{"a mount that shows a part of the tree", proc("0::/docker/x/y\n", strings.Replace(unifiedMount, " / /sys", " /docker/x /sys", 1)).with(service("/y", "memory pids", "memory pids")), 2,
			map[string]string{"memory": "/y", "pids": "/y"}, "", "", "no controller for cpu"},
		{"a terminal: the shell is in the group too", proc("0::/session.scope\n", unifiedMount).with(service("/session.scope", "memory pids", "", "40", "41")), 0, nil, "", "", "shares its group"},
		{"memory is not delegated", proc("0::"+unit+"\n", unifiedMount).with(service(unit, "pids", "", "41")), 0, nil, "", "", "controller memory is not given"},
		{"a read-only mount", proc("0::/\n", strings.Replace(unifiedMount, " rw,nosuid ", " ro,nosuid ", 1)).with(service("", "memory pids", "", "41")), 0, nil, "", "", "read-only"},
		{"a group outside of what is shown", proc("0::/../other\n", unifiedMount), 0, nil, "", "", "does not show"},
		{"files that are not there", proc("0::"+unit+"\n", unifiedMount).with(tree{"sys/fs/cgroup" + unit + "/cgroup.controllers": "memory pids"}), 0, nil, "", "", "cannot be written"},
		{"version 1", proc(splitOwn, splitMounts).with(split), 1, map[string]string{"memory": "/memory/a", "pids": "/pids/b/c", "cpu": "/cpu,cpuacct"}, "", "", ""},
		{"version 1 beside a version 2 without controllers", proc(splitOwn, splitMounts+strings.Replace(unifiedMount, "/sys/fs/cgroup ", "/sys/fs/cgroup/unified ", 1)).with(split).with(tree{"sys/fs/cgroup/unified/cgroup.controllers": "hugetlb"}), 1,
			map[string]string{"memory": "/memory/a", "pids": "/pids/b/c", "cpu": "/cpu,cpuacct"}, "", "", ""},
		{"version 1 with memory alone", proc(splitOwn, splitMounts).with(tree{"sys/fs/cgroup/memory/a/": ""}), 1, map[string]string{"memory": "/memory/a"}, "", "", "no writable group for pids, cpu"},
		{"version 1, all read-only", proc(splitOwn, strings.ReplaceAll(splitMounts, " rw,relatime", " ro,relatime")).with(split), 0, nil, "", "", "v1: no writable group for memory, pids, cpu"},
		{"no cgroups", proc("", ""), 0, nil, "", "", "no cgroup file system"},
		{"no /proc", tree{}, 0, nil, "", "", "cannot be read"},
		{"lines nobody understands", proc("x\n:\n0::\n", "1 2 3 - cgroup2\n - \n4 5 6 / /x rw - cgroup2 y z\n"), 0, nil, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := c.tree.make(t)
			p := planGroups(root, pid)
			top := filepath.Join(root, "sys/fs/cgroup")
			dirs := map[string]string{}
			for k, v := range p.dirs {
				dirs[k] = strings.TrimPrefix(v, top)
			}
			if p.version != c.version || !maps.Equal(dirs, c.dirs) || strings.Join(p.enable, " ") != c.enable || strings.TrimPrefix(p.leaf, top) != c.leaf {
				t.Errorf("%+v", p)
			}
			if !strings.Contains(p.why, c.why) || (c.why == "" && c.version > 0 && p.why != "") || (c.version == 0 && p.why == "") {
				t.Errorf("why: %q, want %q", p.why, c.why)
			}
		})
	}
}

func TestGroupsOfAServiceAreHandedDown(t *testing.T) {
	unit := "/system.slice/reasonix.service"
	root := proc("0::"+unit+"\n", unifiedMount).with(service(unit, "cpu memory pids", "", "41")).make(t)
	p := planGroups(root, 41)
	if err := p.prepare(41); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(root, "sys/fs/cgroup", unit)
	if read(t, at+"/reasonix-host/cgroup.procs") != "41" || read(t, at+"/cgroup.subtree_control") != "+memory +pids" {
		t.Error("the host did not make room, or handed nothing down")
	}
	g := &groups{plan: p, memory: 5 << 20}
	one, err := g.open(Limits{Processes: 10, CPUs: 1.5})
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"memory.max": "5242880", "memory.swap.max": "0", "pids.max": "13", "cpu.max": "150000 100000"} {
		if got := read(t, filepath.Join(at, one.name, file)); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	if got := read(t, at+"/cgroup.subtree_control"); got != "+cpu" { // a file of a test keeps the last line alone
		t.Errorf("handed down: %q", got)
	}
	if one.killed() != "" {
		t.Error("nothing was killed")
	}
	write(t, filepath.Join(at, one.name, "memory.events"), "low 0\nmax 7\noom 1\noom_kill 1\n")
	if got := one.killed(); got != "killed: it used more than 5 MiB of memory" {
		t.Errorf("%q", got)
	}
	if room := p.memoryRoom(); room <= 0 || room == 1<<62 {
		t.Errorf("room: %d", room)
	}
	write(t, at+"/memory.max", "max\n")
	write(t, filepath.Dir(at)+"/memory.max", "7340032\n")
	if room := p.memoryRoom(); room != 7<<20 {
		t.Errorf("room in a slice with a limit: %d", room)
	}
}

func TestGroupSettings(t *testing.T) {
	all := Limits{Processes: 5, MemoryBytes: 1 << 20, CPUs: 0.001}
	for _, c := range []struct {
		version int
		limits  Limits
		want    string
	}{
		{2, Limits{Processes: 5}, "pids.max=8"},
		{2, all, "pids.max=8 memory.max=1048576 memory.swap.max=0? cpu.max=1000 100000"},
		{1, all, "pids.max=8 memory.limit_in_bytes=1048576 memory.memsw.limit_in_bytes=1048576? memory.swappiness=0? cpu.cfs_period_us=100000 cpu.cfs_quota_us=1000"},
	} {
		var got []string
		for _, s := range groupSettings(c.version, c.limits) {
			got = append(got, s.file+"="+s.value+map[bool]string{true: "?"}[s.optional])
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("v%d %+v: %s", c.version, c.limits, text)
		}
	}
}

// grouped gives a room on a machine where control groups are to be had. Elsewhere it sees that the box says so, and gives none.
func grouped(t *testing.T, controller string) *room {
	r := newRoom(t)
	if r.box.(bwrap).groups.holds(controller) {
		return r
	}
	t.Logf("no control group for %s here: %s", controller, hostGroups().why)
	var rep Report
	r.box.(bwrap).describe(&rep)
	if said := strings.Join(rep.Warnings, ""); hostGroups().why == "" || !strings.Contains(said, hostGroups().why) {
		t.Errorf("the report does not say why: %q", said)
	}
	if controller == "memory" && !slices.Contains(rep.Limits, "memory per process (rlimit)") {
		t.Errorf("limits: %v", rep.Limits)
	}
	return nil
}

func TestBoxBoundsTheMemoryOfTheWholeCall(t *testing.T) {
	python(t)
	r := grouped(t, "memory")
	if r == nil {
		return
	}
	r.policy.Limits.MemoryBytes = 96 << 20
	// Four processes of 40 MiB each: no limit per process would notice.
	hog := `/usr/bin/python3 -c 'x=bytearray(40<<20); print("full", flush=True); input()'`
	line := "mkfifo hold; exec 3<>hold; for i in 1 2 3 4; do " + hog + " <&3 & done; wait -n; echo first=$?; kill %1 %2 %3 %4; true"
	for _, own := range []bool{true, false} { // under an account of its own, and as root
		if !own {
			r.disown()
		}
		res := r.bash(strings.ReplaceAll(line, "mkfifo hold", "rm -f hold; mkfifo hold"))
		if !strings.Contains(string(res.Output), "first=137") || res.Stopped != "killed: it used more than 96 MiB of memory" {
			t.Errorf("stopped %q:\n%s", res.Stopped, res.Output)
		}
	}
	res := r.bash("head -c 200000000 /dev/zero > /dev/shm/x; echo went on")
	if !strings.Contains(res.Stopped, "96 MiB") {
		t.Errorf("files in memory: %q\n%s", res.Stopped, res.Output)
	}
	told, err := NewShell(r.box, func() Policy { return r.policy }).Run(t.Context(), tool.Command{Line: `/usr/bin/python3 -c 'x=bytearray(200<<20)'`})
	if err != nil || told.ExitCode != 137 || !strings.Contains(told.Output, "\n[killed: it used more than 96 MiB of memory]\n") {
		t.Errorf("the model is told %q, exit %d, %v", told.Output, told.ExitCode, err)
	}
	if res := r.bash(`/usr/bin/python3 -c 'x=bytearray(40<<20)'`); res.ExitCode != 0 || res.Stopped != "" {
		t.Errorf("within the limit: %+v", res)
	}
}

func TestBoxBoundsTheProcessesOfRootToo(t *testing.T) {
	r := grouped(t, "pids")
	if r == nil {
		return
	}
	r.disown()
	r.policy.Limits.Processes = 20
	r.policy.Limits.Wall = 2 * time.Second
	out := r.must("for i in $(seq 12); do sleep 30 & done 2>&1; jobs -r | wc -l")
	if strings.TrimSpace(out) != "12" {
		t.Errorf("within the limit: %s", out)
	}
	res := r.bash("for i in $(seq 60); do sleep 30 & done; jobs -r | wc -l")
	if !strings.Contains(string(res.Output), "fork") {
		t.Errorf("no limit showed:\n%.300s", res.Output)
	}
}

func TestBoxBoundsTheShareOfProcessors(t *testing.T) {
	r := grouped(t, "cpu")
	if r == nil {
		return
	}
	r.policy.Limits.CPUs = 0.2
	out := r.must("timeout 1 sh -c 'while :; do :; done'; times")
	used := strings.Fields(strings.Split(strings.TrimSpace(out), "\n")[1]) // of the children: 0m0.20s 0m0.00s
	seconds, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimPrefix(used[0], "0m"), "s"), 64)
	if err != nil || seconds > 0.5 {
		t.Errorf("a fifth of a processor was %v s in one second: %s, %v", seconds, out, err)
	}
}

// boxGroups lists the groups of calls that no living host holds; other hosts of the machine may be at work.
func boxGroups() (out []string) {
	if g := hostGroups().groups; g != nil {
		for _, dir := range g.plan.dirs {
			left, _ := filepath.Glob(filepath.Join(dir, groupPrefix+"*"))
			out = append(out, slices.DeleteFunc(left, alive)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func alive(group string) bool {
	f, err := os.Open(group)
	if err != nil {
		return true // gone
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
}

func sweepGroups(t *testing.T) {
	t.Helper()
	g := hostGroups().groups
	if g == nil {
		return
	}
	for deadline := time.Now().Add(2 * time.Second); ; { // a host of somebody else may be killed meanwhile
		g.sweep()
		left := boxGroups()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("groups left after a sweep: %v", left)
		}
	}
}

func TestGroupsOfAKilledHostAreSweptAndThoseOfALiveOneStay(t *testing.T) {
	r := grouped(t, "pids")
	if r == nil {
		return
	}
	g := r.box.(bwrap).groups
	live, err := g.open(Limits{Processes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer live.close()
	dead := filepath.Join(g.plan.dirs["pids"], groupPrefix+"dead")
	if err := os.Mkdir(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	g.sweep()
	if _, err := os.Stat(dead); err == nil {
		t.Error("the group of a dead host is still there")
	}
	for _, dir := range live.dirs {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("the group of a live host is gone: %v", err)
		}
	}
}

// A version 2 tree without controllers is enough to see that a command is born in its group and that the kernel ends a group at once.
func TestGroupsOfVersion2StartAndEndATree(t *testing.T) {
	mounts, err := cgroupMounts("/")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(mounts, func(m cgroupMount) bool { return m.unified && !m.readOnly })
	own, err := ownGroups("/")
	if i < 0 || err != nil || os.Geteuid() != 0 {
		t.Log("no writable cgroup v2 tree here")
		return
	}
	g := &groups{plan: groupPlan{version: 2, dirs: map[string]string{"cpu": mounts[i].folder(own[""])}}}
	if err := g.try(); err != nil {
		t.Logf("cgroup v2 groups cannot be made here: %v", err)
		return
	}
	one, err := g.open(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", "trap '' TERM HUP; setsid sleep 300 & setsid sleep 300 & echo up; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := one.start(cmd); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "up\n" {
		t.Fatal(line, err)
	}
	if n := len(words(one.dirs[0], "cgroup.procs")); n != 3 {
		t.Errorf("%d processes in the group, want 3", n)
	}
	start := time.Now()
	one.close()
	_ = cmd.Wait()
	if _, err := os.Stat(one.dirs[0]); err == nil || time.Since(start) > 2*time.Second {
		t.Errorf("the group is still there after %v", time.Since(start))
	}
}

// Every host sweeps at its start; the calls of a host at work must not suffer from it.
func TestGroupsAreMadeWhileOthersSweep(t *testing.T) {
	r := grouped(t, "pids")
	if r == nil {
		return
	}
	g := r.box.(bwrap).groups
	done := make(chan struct{})
	var sweepers sync.WaitGroup
	for range 4 {
		sweepers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					g.sweep()
				}
			}
		})
	}
	for range 300 {
		one, err := g.open(Limits{Processes: 5})
		if err != nil {
			t.Error(err)
			break
		}
		for _, dir := range one.dirs {
			if _, err := os.Stat(dir); err != nil {
				t.Error(err)
			}
		}
		one.close()
	}
	close(done)
	sweepers.Wait()
}
