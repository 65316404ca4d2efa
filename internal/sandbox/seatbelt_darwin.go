package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const sandboxExec = "/usr/bin/sandbox-exec"

// seatbelt is the box of macOS: sandbox-exec with a profile per call.
type seatbelt struct{}

// Name is "seatbelt".
func (seatbelt) Name() string { return "seatbelt" }

// Run runs the command under the policy's profile. A process that leaves the group of the command is not ended with it.
func (seatbelt) Run(ctx context.Context, p Policy, c Command) (Result, error) {
	if len(c.Argv) == 0 {
		return Result{}, errors.New("run command in box: no command")
	}
	if p.Temp == "" {
		temp, err := os.MkdirTemp("", "reasonix-box-")
		if err != nil {
			return Result{}, fmt.Errorf("run command in box: %w", err)
		}
		defer os.RemoveAll(temp)
		p.Temp = temp
	}
	real, err := realPaths(p)
	if err != nil {
		return Result{}, fmt.Errorf("run command in box: %w", err)
	}
	profile, err := seatbeltProfile(real)
	if err != nil {
		return Result{}, fmt.Errorf("run command in box: %w", err)
	}
	argv := append([]string{sandboxExec, "-p", profile}, limited("", p.Limits.withDefaults(), c.Argv)...)
	return runTree(ctx, p, c, argv, []string{"TMPDIR=" + real.Temp, "GIT_CONFIG_NOSYSTEM=1"})
}

// realPaths follows links, because the profile is matched against what is really there. What does not exist stays as it is written.
func realPaths(p Policy) (Policy, error) {
	for _, path := range []*string{&p.Workspace, &p.Home, &p.Temp} {
		if *path == "" {
			continue
		}
		real, err := filepath.EvalSymlinks(*path)
		if err != nil {
			return p, err
		}
		*path = real
	}
	for _, list := range []*[]string{&p.Caches, &p.Writable, &p.Readable, &p.ForbidRead} {
		out := make([]string, len(*list))
		for i, path := range *list {
			out[i] = path
			if real, err := filepath.EvalSymlinks(path); err == nil {
				out[i] = real
			}
		}
		*list = out
	}
	return p, nil
}

func detect(ctx context.Context, cfg Config) (Box, Report, error) {
	r := Report{Mode: "enforce", Program: sandboxExec}
	if cfg.Backend != "" && cfg.Backend != "auto" {
		r.Reason, r.Mend = fmt.Sprintf("backend = %q is a box of Linux", cfg.Backend), "write backend = \"auto\" for the box of macOS"
		return unavailable(r)
	}
	dir, err := os.MkdirTemp("", "reasonix-probe-")
	if err != nil {
		return nil, r, err
	}
	defer os.RemoveAll(dir)
	res, err := seatbelt{}.Run(ctx, Policy{Workspace: dir, Env: []string{"PATH=" + defaultPath}}, Command{Argv: []string{"/bin/sh", "-c", "echo box-$((40+2)) >probe && cat probe"}})
	if err == nil && (res.ExitCode != 0 || !bytes.Contains(res.Output, []byte("box-42"))) {
		err = fmt.Errorf("the probe ended with %d: %s", res.ExitCode, firstLine(string(res.Output)))
	}
	if err != nil {
		r.Reason, r.Mend = "a command did not run under sandbox-exec: "+firstLine(err.Error()), "set [sandbox] bash = \"off\" to run commands unconfined, and report it"
		return unavailable(r)
	}
	r.Backend = seatbelt{}.Name()
	r.Limits = []string{"wall time", "output", "open files", "file size", "CPU time per process"}
	r.Warnings = []string{"the box of macOS was never run by its makers: its profile is tested as text alone"}
	return seatbelt{}, r, nil
}
