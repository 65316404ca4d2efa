//go:build unix

package sandbox

import (
	"os"
	"os/exec"
	"syscall"
)

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killTree ends the process group and, where /proc exists, every process that still carries the call's mark.
func killTree(pid int, mark string) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	killMarked(mark)
	return err
}

// exitCode follows the shell: 128 and the signal for a killed process.
func exitCode(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}
