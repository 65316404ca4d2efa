package sandbox

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// groupPlan says where control groups can keep the limits of a call, and why there or nowhere. It is data alone, so that tests can
// make it from trees that they invent.
type groupPlan struct {
	version int               // 2, 1, or 0: none
	dirs    map[string]string // controller → the folder in which a call's group is made; one and the same with version 2
	enable  []string          // version 2: of memory and pids, those that have to be handed down to children first
	leaf    string            // version 2: where the host's own process has to move before that; empty when it may stay
	why     string            // what lacks, in words
}

// wanted are the controllers that hold a limit. Without memory and pids a version is of no use; cpu is welcome.
var wanted = []string{"memory", "pids", "cpu"}

// hostLeaf is the group that a host moves itself into: with version 2 a group either holds processes or hands controllers down.
const hostLeaf = "reasonix-host"

// planGroups reads the cgroup tree below root, which is "/" but for tests. pid is the host's own.
func planGroups(root string, pid int) groupPlan {
	mounts, err := cgroupMounts(root)
	if err != nil {
		return groupPlan{why: "cgroups cannot be read: " + err.Error()}
	}
	own, err := ownGroups(root)
	if err != nil {
		return groupPlan{why: "cgroups cannot be read: " + err.Error()}
	}
	if len(mounts) == 0 {
		return groupPlan{why: "no cgroup file system is mounted"}
	}
	two := planUnified(mounts, own, pid)
	if two.version == 2 {
		return two
	}
	one := planSplit(mounts, own)
	if one.version == 0 {
		one.why = "cgroup v2: " + two.why + "; v1: " + one.why
	}
	return one
}

// cgroupMount is one line of mountinfo.
type cgroupMount struct {
	controllers string // comma-separated; empty with version 2
	unified     bool
	from, at    string // which part of the tree is shown, and where
	readOnly    bool
}

func cgroupMounts(root string) ([]cgroupMount, error) {
	f, err := os.Open(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []cgroupMount
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		// 31 23 0:28 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup rw,memory (proc(5))
		head, tail, ok := strings.Cut(lines.Text(), " - ")
		h, t := strings.Fields(head), strings.Fields(tail)
		if !ok || len(h) < 6 || len(t) < 3 || (t[0] != "cgroup" && t[0] != "cgroup2") {
			continue
		}
		m := cgroupMount{unified: t[0] == "cgroup2", from: h[3], at: filepath.Join(root, h[4]),
			readOnly: slices.Contains(strings.Split(h[5], ","), "ro")}
		if !m.unified {
			m.controllers = t[2]
		}
		out = append(out, m)
	}
	return out, lines.Err()
}

// ownGroups gives the host's own group per controller; version 2 has the empty name.
func ownGroups(root string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		for _, c := range strings.Split(part[1], ",") {
			out[c] = part[2]
		}
	}
	return out, nil
}

// folder is where a group of this mount lies; empty when the mount does not show it.
func (m cgroupMount) folder(group string) string {
	if !within(m.from, group) || strings.HasPrefix(group, "/..") { // "/../x": outside of the namespace
		return ""
	}
	rel, err := filepath.Rel(m.from, group)
	if err != nil {
		return ""
	}
	return filepath.Join(m.at, rel)
}

func planUnified(mounts []cgroupMount, own map[string]string, pid int) groupPlan {
	i := slices.IndexFunc(mounts, func(m cgroupMount) bool { return m.unified })
	group, ok := own[""]
	if i < 0 || !ok {
		return groupPlan{why: "not mounted"}
	}
	dir := mounts[i].folder(group)
	switch {
	case dir == "":
		return groupPlan{why: "the mount does not show the host's own group"}
	case mounts[i].readOnly:
		return groupPlan{why: "mounted read-only"}
	}
	moved := filepath.Base(dir) == hostLeaf // by this host or one before it
	if moved {
		dir = filepath.Dir(dir)
	}
	have := words(dir, "cgroup.controllers")
	for _, c := range wanted[:2] {
		if !slices.Contains(have, c) {
			return groupPlan{why: "the controller " + c + " is not given to the host's group (systemd: Delegate=yes)"}
		}
	}
	for _, file := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
		if unix.Access(filepath.Join(dir, file), unix.W_OK) != nil {
			return groupPlan{why: "the host's group cannot be written (systemd: Delegate=yes)"}
		}
	}
	plan := groupPlan{version: 2, dirs: map[string]string{}}
	down := words(dir, "cgroup.subtree_control")
	for _, c := range wanted {
		if !slices.Contains(have, c) {
			plan.why = "no controller for " + c
			continue
		}
		plan.dirs[c] = dir
		if c != "cpu" && !slices.Contains(down, c) { // that one only for calls that need it
			plan.enable = append(plan.enable, c)
		}
	}
	_, err := os.Stat(filepath.Join(dir, "cgroup.type")) // only the root of all groups has none, and it may do both
	if len(plan.enable) == 0 || err != nil {
		return plan
	}
	for _, p := range words(dir, "cgroup.procs") {
		if p != strconv.Itoa(pid) {
			return groupPlan{why: "the host shares its group with other processes (systemd: a unit of its own with Delegate=yes)"}
		}
	}
	if !moved {
		plan.leaf = filepath.Join(dir, hostLeaf)
	}
	return plan
}

func planSplit(mounts []cgroupMount, own map[string]string) groupPlan {
	plan := groupPlan{version: 1, dirs: map[string]string{}}
	var lacks []string
	for _, c := range wanted {
		dir := ""
		for _, m := range mounts {
			if !m.unified && slices.Contains(strings.Split(m.controllers, ","), c) && !m.readOnly {
				dir = m.folder(own[c])
			}
		}
		if dir == "" || unix.Access(dir, unix.W_OK) != nil {
			lacks = append(lacks, c)
			continue
		}
		plan.dirs[c] = dir
	}
	if len(lacks) > 0 {
		plan.why = "no writable group for " + strings.Join(lacks, ", ")
	}
	if plan.dirs["memory"] == "" && plan.dirs["pids"] == "" {
		return groupPlan{why: plan.why}
	}
	return plan
}

// words reads a file of the tree; one that is not there has none.
func words(dir, file string) []string {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

// setting is one line to write into a call's group.
type setting struct {
	controller, file, value string
	optional                bool // a kernel may lack it
}

// groupSettings are the limits in the words of a version. Swap would only make a limit on memory slow instead of firm.
func groupSettings(version int, l Limits) []setting {
	// The box's own processes (bubblewrap twice and the shell that becomes the command) are no part of what was asked for.
	out := []setting{{"pids", "pids.max", strconv.Itoa(l.Processes + 3), false}}
	memory := strconv.FormatInt(l.MemoryBytes, 10)
	const period = 100_000 // microseconds, the kernel's default
	quota := strconv.Itoa(max(1000, int(l.CPUs*period)))
	if l.MemoryBytes > 0 && version == 2 {
		out = append(out, setting{"memory", "memory.max", memory, false}, setting{"memory", "memory.swap.max", "0", true})
	}
	if l.MemoryBytes > 0 && version == 1 {
		out = append(out, setting{"memory", "memory.limit_in_bytes", memory, false}, setting{"memory", "memory.memsw.limit_in_bytes", memory, true},
			setting{"memory", "memory.swappiness", "0", true})
	}
	if l.CPUs > 0 && version == 2 {
		out = append(out, setting{"cpu", "cpu.max", quota + " " + strconv.Itoa(period), false})
	}
	if l.CPUs > 0 && version == 1 {
		out = append(out, setting{"cpu", "cpu.cfs_period_us", strconv.Itoa(period), false}, setting{"cpu", "cpu.cfs_quota_us", quota, false})
	}
	return out
}

// memoryRoom is how much memory the host may use at all: of the machine, or of the groups that it is in itself.
func (p groupPlan) memoryRoom() int64 {
	var info unix.Sysinfo_t
	room := int64(1) << 62
	if unix.Sysinfo(&info) == nil {
		room = int64(info.Totalram) * int64(info.Unit)
	}
	file := map[int]string{1: "memory.limit_in_bytes", 2: "memory.max"}[p.version]
	for dir := p.dirs["memory"]; dir != "" && dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if w := words(dir, file); len(w) == 1 {
			if n, err := strconv.ParseInt(w[0], 10, 64); err == nil && n > 0 {
				room = min(room, n)
			}
		}
	}
	return room
}
