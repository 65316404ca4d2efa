package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reasonix/internal/tool"
)

func TestTheShellThatRunsTheLines(t *testing.T) {
	on := func(goos string, boxed bool, programs ...string) finder {
		return finder{goos: goos, boxed: boxed, trusted: func(p string) string {
			if strings.Contains(p, "evil") {
				return "inside a workspace"
			}
			return ""
		}, look: func(name string) (string, error) {
			if slices.Contains(programs, name) {
				return `C:\found\` + name + ".exe", nil
			}
			return "", errors.New("not found")
		}}
	}
	const pwsh = `C:\Program Files\PowerShell\7\pwsh.exe`
	for _, c := range []struct {
		choice ShellChoice
		on     finder
		argv   string // of the line "x", or
		err    string
	}{
		{ShellChoice{}, on("linux", true), bashPath() + " -c x", ""},
		{ShellChoice{Prefer: "auto"}, on("darwin", true), bashPath() + " -c x", ""},
		{ShellChoice{Prefer: "bash", Path: "/usr/local/bin/bash"}, on("linux", true), "/usr/local/bin/bash -c x", ""},
		{ShellChoice{Path: "/opt/homebrew/bin/bash"}, on("darwin", false), "/opt/homebrew/bin/bash -c x", ""},
		{ShellChoice{Path: "/opt/homebrew/bin/bash"}, on("linux", true), "", "a box shows only /usr"},
		{ShellChoice{Prefer: "pwsh"}, on("linux", true), "", "PowerShell runs lines on Windows only; use \"auto\" or \"bash\""},
		{ShellChoice{Path: "/usr/bin/pwsh"}, on("linux", true), "", "PowerShell runs lines on Windows only"},
		{ShellChoice{Prefer: "zsh"}, on("linux", true), "", "use one of auto, bash, powershell, pwsh"},
		{ShellChoice{Path: "/bin/zsh"}, on("linux", true), "", "has to be a bash"},
		{ShellChoice{Path: "bin/bash"}, on("linux", true), "", "absolute path"},
		{ShellChoice{Path: "/usr/evil/bash"}, on("linux", true), "", "inside a workspace"},
		{ShellChoice{Path: "/bin/ba\nsh"}, on("linux", true), "", "control character"},
		{ShellChoice{}, on("windows", false, "bash", "pwsh"), `C:\found\bash.exe -c x`, ""},
		{ShellChoice{}, on("windows", false, "powershell"), `C:\found\powershell.exe -NoLogo -NoProfile -NonInteractive -Command x`, ""},
		{ShellChoice{}, on("windows", false), "", "no bash, pwsh, powershell on PATH: install"},
		{ShellChoice{Prefer: "bash"}, on("windows", false, "pwsh"), "", "no bash on PATH"},
		{ShellChoice{Prefer: "pwsh", Path: pwsh}, on("windows", false), pwsh + " -NoLogo -NoProfile -NonInteractive -Command x", ""},
		{ShellChoice{Prefer: "bash", Path: pwsh}, on("windows", false), "", "make them agree"},
		{ShellChoice{Path: `pwsh.exe`}, on("windows", false), "", "absolute path"},
	} {
		i, err := c.choice.find(c.on)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v on %s: %v, want %q", c.choice, c.on.goos, err, c.err)
			}
			continue
		}
		if got := strings.Join(i.argv("x"), " "); err != nil || got != c.argv {
			t.Errorf("%+v on %s: %q, %v", c.choice, c.on.goos, got, err)
		}
	}
}

func TestAShellInsideAWorkspaceIsRefused(t *testing.T) {
	dir := t.TempDir()
	fake := filepath.Join(dir, "bash")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\necho fake\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := (ShellChoice{Path: fake}).Find(false, []string{dir}); err == nil || !strings.Contains(err.Error(), "inside a workspace") {
		t.Errorf("%v", err)
	}
	var got Command
	i := Interpreter{program: "/usr/bin/bash"}
	if _, err := i.Shell(echoBox{&got}, func() Policy { return Policy{Workspace: dir} }).Run(t.Context(), tool.Command{Line: "true"}); err != nil || got.Argv[0] != "/usr/bin/bash" {
		t.Errorf("%v %v", got.Argv, err)
	}
}
