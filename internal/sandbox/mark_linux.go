package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// killMarked ends processes that left the group: the mark in their environment survives a double fork and setsid. It looks
// again until a round finds none, because a process may fork while the list is read.
func killMarked(mark string) {
	for range 20 {
		if killMarkedOnce([]byte(mark)) == 0 {
			return
		}
	}
}

func killMarkedOnce(mark []byte) (killed int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ")
		if err != nil || !bytes.Contains(env, mark) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && pid > 1 && pid != os.Getpid() && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}
