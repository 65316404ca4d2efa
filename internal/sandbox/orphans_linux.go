package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// sweepOrphans ends what a host can leave that was killed in the fraction of a millisecond between bubblewrap's promise to die with it and the start of
// the box's first process: that process waits for ever, and has not run anything yet. It is known by having a process
// namespace of its own and no bubblewrap above it.
func sweepOrphans() {
	stats, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || !orphaned(pid) {
			continue
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func orphaned(pid int) bool {
	s := statusOf(pid)
	if s["Name"] != "bwrap" || len(strings.Fields(s["NSpid"])) < 2 {
		return false
	}
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil || !bytes.Contains(line, []byte("\x00"+strings.Join(flags, "\x00")+"\x00")) {
		return false
	}
	parent, err := strconv.Atoi(s["PPid"])
	return err == nil && parent > 0 && statusOf(parent)["Name"] != "bwrap"
}

// statusOf reads /proc/PID/status; a process that is gone has none.
func statusOf(pid int) map[string]string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		out[key] = strings.TrimSpace(value)
	}
	return out
}
