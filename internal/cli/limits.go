package cli

import (
	"slices"
	"time"

	"reasonix/internal/chat"
	"reasonix/internal/config"
	"reasonix/internal/sandbox"
)

// boxLimits are the configured limits of one command. The disk is measured where the folders are a task's own.
func boxLimits(cfg config.Config, ownFolders bool) sandbox.Limits {
	s := cfg.Sandbox
	l := sandbox.Limits{
		Wall: time.Duration(cfg.Tools.BashTimeoutSeconds) * time.Second, MemoryBytes: int64(s.MemoryMB) << 20, Processes: s.Processes,
		OpenFiles: s.OpenFiles, FileBytes: int64(s.FileMB) << 20, CPUSeconds: s.CPUSeconds, CPUs: s.CPUs,
	}
	if l.Wall == 0 { // as configured: no limit of its own
		l.Wall = -1
	}
	if ownFolders {
		l.DiskBytes = int64(s.DiskMB) << 20
	}
	return l
}

// unheld are the configured limits that this machine cannot keep as they are meant, with what holds instead.
func unheld(cfg config.Config, perCall []string) []string {
	var out []string
	if cfg.Sandbox.CPUs > 0 && !slices.Contains(perCall, "processors") {
		out = append(out, "cpus has no effect: it needs a control group")
	}
	if cfg.Sandbox.MemoryMB > 0 && !slices.Contains(perCall, "memory") {
		out = append(out, "memory_mb bounds each process and not the whole command: that needs a control group")
	}
	return out
}

// shellHealth says which program runs the lines of bash.
func shellHealth(cfg config.Config, boxed bool) chat.HealthItem {
	i, err := shellChoice(cfg).Find(boxed, nil)
	if err != nil {
		return chat.HealthItem{Name: "shell", Text: err.Error(), Mend: "mend [tools.shell], or leave it away"}
	}
	return chat.HealthItem{Name: "shell", OK: true, Text: i.Program()}
}

func shellChoice(cfg config.Config) sandbox.ShellChoice {
	return sandbox.ShellChoice{Prefer: cfg.Tools.Shell.Prefer, Path: cfg.Tools.Shell.Path}
}

// foreignShell names the shell of this machine when it is no bash. What cannot be found is reported where it is needed.
func foreignShell(cfg config.Config) string {
	if i, err := shellChoice(cfg).Find(false, nil); err == nil && i.PowerShell() {
		return "PowerShell"
	}
	return ""
}
