package hook

import (
	"context"
	"os/exec"
	"strconv"
	"syscall"
)

// shell makes a command whose tree is ended when ctx ends.
func shell(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: "cmd /d /s /c \"" + line + "\"", CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
	cmd.Cancel = func() error {
		return exec.Command("taskkill", "/t", "/f", "/pid", strconv.Itoa(cmd.Process.Pid)).Run()
	}
	return cmd
}
