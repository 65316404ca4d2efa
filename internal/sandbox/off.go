package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"
)

// offBox runs commands unconfined, as the user asked with bash = "off". It still bounds time and output and ends the whole tree.
type offBox struct{}

// Name is "off": callers that need a real box look for it.
func (offBox) Name() string { return "off" }

func (offBox) Run(ctx context.Context, p Policy, c Command) (Result, error) {
	if len(c.Argv) == 0 {
		return Result{}, errors.New("run command: no command")
	}
	return runTree(ctx, p, c, c.Argv, nil)
}

// runTree runs argv, with env besides the policy's, as a tree of processes of the host's user.
func runTree(ctx context.Context, p Policy, c Command, argv, env []string) (Result, error) {
	dir, err := commandDir(p, c)
	if err != nil {
		return Result{}, fmt.Errorf("run command: %w", err)
	}
	limits := p.Limits.withDefaults()
	wall := wallFor(limits, c)
	runCtx, cancel := context.WithTimeout(ctx, wall)
	defer cancel()
	mark := "REASONIX_CALL=" + callID()
	cmd := exec.CommandContext(runCtx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = slices.Concat(p.Env, c.Env, env, []string{mark})
	cmd.Stdin = c.Stdin
	out := newCapture(limits.Output, c.Output)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Second // a child that holds the pipe cannot hold the call
	ownGroup(cmd)
	cmd.Cancel = func() error { return killTree(cmd.Process.Pid, mark) }
	start := time.Now()
	err = cmd.Run()
	if cmd.Process != nil {
		_ = killTree(cmd.Process.Pid, mark) // what it left behind ends with it
	}
	r := Result{Duration: time.Since(start), TimedOut: ctx.Err() == nil && runCtx.Err() != nil}
	r.Output, r.Omitted = out.bytes()
	if cmd.ProcessState == nil {
		return r, fmt.Errorf("run command: %w", err)
	}
	r.ExitCode = exitCode(cmd.ProcessState)
	if ctx.Err() != nil {
		return r, fmt.Errorf("run command: %w", ctx.Err())
	}
	return r, nil
}
