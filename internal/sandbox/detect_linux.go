package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// detect takes the full box where it runs, and the reduced one only where somebody wrote that it may.
func detect(ctx context.Context, cfg Config) (Box, Report, error) {
	if cfg.Backend == "landlock" {
		return detectReduced(ctx, Report{Mode: "enforce"})
	}
	box, r, err := detectBwrap(ctx, cfg)
	if err == nil || cfg.Backend == "bwrap" {
		return box, r, err
	}
	if !cfg.AllowReduced {
		r.Mend += "; or write allow_reduced_box = true under [sandbox] for the reduced box, which holds less (docs/SANDBOX.md)"
		return unavailable(r)
	}
	full := r
	box, r, err = detectReduced(ctx, Report{Mode: "enforce", NoFull: full.Reason})
	if err != nil {
		r.Reason, r.Mend = full.Reason+"; and no reduced box either: "+r.Reason, full.Mend
		return unavailable(r)
	}
	return box, r, nil
}

func detectBwrap(ctx context.Context, cfg Config) (Box, Report, error) {
	r := Report{Mode: "enforce"}
	path := cfg.Path
	if path == "" {
		path = os.Getenv("PATH")
	}
	program, skipped := findProgram("bwrap", path, cfg.Workspaces)
	if program == "" {
		r.Reason = "bubblewrap (bwrap) was not found on PATH"
		if len(skipped) > 0 {
			r.Reason += "; passed over " + strings.Join(skipped, ", ")
		}
		r.Mend = "install it: apt-get install bubblewrap, dnf install bubblewrap or pacman -S bubblewrap"
		return unavailable(r)
	}
	r.Program = program
	r.Version = bwrapVersion(ctx, program)
	if info, err := os.Stat(program); err == nil && info.Mode()&os.ModeSetuid != 0 && older(r.Version, 0, 11, 2) {
		r.Warnings = append(r.Warnings, "bubblewrap "+r.Version+" is installed setuid; before 0.11.2 that mode allows a ptrace "+
			"escalation (CVE-2026-41163): update it, or remove the setuid bit where user namespaces are allowed")
	}
	box := bwrap{program: program, bindFD: takesDescriptors(ctx, program), groups: hostGroups().groups}
	err := probe(ctx, box)
	if err != nil && os.Geteuid() == 0 { // root inside a container often has user namespaces and no mounts of its own
		box.plain = true
		if plainErr := probe(ctx, box); plainErr == nil {
			r.Warnings = append(r.Warnings, "boxes run as root without capabilities, because the host may not use accounts of their own: "+firstLine(err.Error()))
			err = nil
		}
	}
	if err != nil {
		r.Reason, r.Mend = explain(err)
		return unavailable(r)
	}
	r.Backend = box.Name()
	box.describe(&r)
	return box, r, nil
}

func bwrapVersion(ctx context.Context, program string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimPrefix(firstLine(string(out)), "bubblewrap ")
}

// takesDescriptors: since 0.10, and in 0.8 where a distribution brought the fix of CVE-2024-42472 back.
func takesDescriptors(ctx context.Context, program string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "--help").CombinedOutput()
	return err == nil && bytes.Contains(out, []byte("--ro-bind-fd"))
}

func older(version string, major, minor, patch int) bool {
	var a, b, c int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &a, &b, &c); n < 2 {
		return true
	}
	if a != major {
		return a < major
	}
	if b != minor {
		return b < minor
	}
	return c < patch
}

type accountBox interface {
	Box
	Accounts
}

// probe runs a real command the way a task's would run, under an unprivileged account when the host is root.
func probe(ctx context.Context, box accountBox) error {
	dir, err := os.MkdirTemp("", "reasonix-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if uid, gid, ok := box.Account("probe"); ok {
		if err := os.Chown(dir, uid, gid); err != nil {
			return err
		}
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	p := Policy{Workspace: dir, Env: []string{"PATH=" + defaultPath}, Limits: Limits{Wall: 10 * time.Second}}
	r, err := box.Run(ctx, p, Command{Argv: []string{"/bin/sh", "-c", "echo box-$((40+2)) >probe && cat probe"}})
	if err != nil {
		return err
	}
	if r.ExitCode != 0 || !bytes.Contains(r.Output, []byte("box-42")) {
		return fmt.Errorf("probe ended with %d: %s", r.ExitCode, firstLine(string(r.Output)))
	}
	return nil
}

// explain turns a failed probe into a reason and a mend.
func explain(err error) (reason, mend string) {
	text := firstLine(err.Error())
	switch {
	case sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1" && os.Geteuid() != 0:
		return "AppArmor restricts unprivileged user namespaces: " + text,
			"install an AppArmor profile that allows userns for bwrap, or: sysctl kernel.apparmor_restrict_unprivileged_userns=0"
	case sysctl("kernel/unprivileged_userns_clone") == "0":
		return "unprivileged user namespaces are switched off: " + text, "sysctl kernel.unprivileged_userns_clone=1"
	case sysctl("user/max_user_namespaces") == "0":
		return "user namespaces are switched off: " + text, "sysctl user.max_user_namespaces=10000"
	case strings.Contains(text, "namespace") || strings.Contains(text, "Operation not permitted"):
		return "the kernel or a container around the host refuses namespaces: " + text,
			"in a container allow user namespaces (for Docker: --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined)"
	}
	return "a command did not run in the box: " + text, "run the probe by hand: bwrap --unshare-all --ro-bind / / true"
}

func sysctl(name string) string {
	text, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
