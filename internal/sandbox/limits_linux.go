package sandbox

import (
	"fmt"
	"strings"
)

// describe says which limits hold in this box, by which means, and which do not.
func (b bwrap) describe(r *Report) {
	r.Limits = []string{"wall time", "output", "open files", "file size", "CPU time per process", "disk (sampled)"}
	var grouped []string
	for _, c := range wanted {
		if b.groups.holds(c) {
			grouped = append(grouped, map[string]string{"memory": "memory", "pids": "processes", "cpu": "processors"}[c])
		}
	}
	if len(grouped) > 0 {
		r.PerCall = grouped
		r.Limits = append(r.Limits, fmt.Sprintf("%s of the whole call (cgroup v%d)", strings.Join(grouped, ", "), b.groups.plan.version))
	}
	if !b.groups.holds("memory") {
		r.Limits = append(r.Limits, "memory per process (rlimit)")
	}
	if why := hostGroups().why; why != "" {
		r.Warnings = append(r.Warnings, "limits without control groups: "+why)
	}
	if b.groups.holds("pids") || b.plain { // the kernel exempts root from the rlimit on processes
		return
	}
	r.Limits = append(r.Limits, "processes (rlimit)")
	if _, _, ok := b.Account(""); ok {
		r.Warnings = append(r.Warnings, "the host runs as root: the limit on processes holds in workspaces that belong to another user, as those of bot tasks do")
	}
}
