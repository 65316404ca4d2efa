package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// reapAll waits for every process that this one started or adopted. ended is closed when the first one, pid, is gone; all gives its
// status when no process is left.
func reapAll(pid int) (ended <-chan struct{}, all <-chan syscall.WaitStatus) {
	e, a := make(chan struct{}), make(chan syscall.WaitStatus, 1)
	go func() {
		var first syscall.WaitStatus
		for {
			var ws syscall.WaitStatus
			got, err := syscall.Wait4(-1, &ws, 0, nil)
			if err == syscall.EINTR {
				continue
			}
			if err != nil { // ECHILD: nobody is left
				a <- first
				return
			}
			if got == pid {
				first = ws
				close(e)
			}
		}
	}()
	return e, a
}

// endTree ends every descendant, however it detached: each of them hangs below this process, which adopts what loses its parent. All
// are stopped first, because a stopped process starts no other.
func endTree(all <-chan syscall.WaitStatus) syscall.WaitStatus {
	stopped := map[int]bool{}
	for {
		select {
		case ws := <-all:
			return ws
		default:
		}
		fresh := 0
		list := descendants(os.Getpid())
		for _, pid := range list {
			if !stopped[pid] && syscall.Kill(pid, syscall.SIGSTOP) == nil {
				stopped[pid] = true
				fresh++
			}
		}
		if fresh > 0 {
			continue
		}
		for _, pid := range list {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case ws := <-all:
			return ws
		case <-time.After(10 * time.Millisecond): // a process that was born while the list was read; deaths of grandchildren give no signal
		}
	}
}

// descendants lists all processes below pid.
func descendants(pid int) []int {
	children := map[int][]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // state, parent, …
		if len(fields) < 2 {
			continue
		}
		parent, errParent := strconv.Atoi(string(fields[1]))
		child, errChild := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if errParent == nil && errChild == nil {
			children[parent] = append(children[parent], child)
		}
	}
	var out []int
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		out = append(out, children[next[0]]...)
		next = append(next, children[next[0]]...)
	}
	return out
}
