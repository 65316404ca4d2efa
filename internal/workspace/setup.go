package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reasonix/internal/sandbox"
)

// setupWall bounds one setup command.
const setupWall = 30 * time.Minute

// ErrSetup: a setup command failed; the message has the command and the end of its output.
var ErrSetup = errors.New("setup failed")

// Setup runs the repository's setup commands in the workspace's box, in order, and once: commands that ended well are remembered
// for this workspace and run again only when they or the base changed, or when the tree was rebuilt. output may be nil.
func (w *Workspace) Setup(ctx context.Context, commands []string, extra sandbox.Policy, output func([]byte)) error {
	if len(commands) == 0 {
		return nil
	}
	if w.store.opt.Box == nil {
		return fmt.Errorf("set up workspace %s: %w", w.ID, ErrNoBox)
	}
	mark := filepath.Join(w.store.hostDir(w.ID), "setup")
	key := digest(w.BaseSHA + "\x00" + strings.Join(commands, "\x00"))
	done, err := os.ReadFile(mark)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set up workspace %s: %w", w.ID, err)
	}
	if string(done) == key && !w.Restored {
		return nil
	}
	if err := os.Remove(mark); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set up workspace %s: %w", w.ID, err)
	}
	if extra.Limits.Wall == 0 {
		extra.Limits.Wall = setupWall
	}
	made, err := w.setUp(ctx, commands, extra, output)
	if err != nil {
		return fmt.Errorf("set up workspace %s: %w", w.ID, err)
	}
	if err := writeFile(mark, []byte(key)); err != nil {
		return fmt.Errorf("set up workspace %s: %w", w.ID, err)
	}
	w.Restored, w.SetupCached = false, made
	return nil
}

// setUp takes an earlier result from the cache, or runs the commands and keeps theirs. A cache that fails costs time and nothing else.
func (w *Workspace) setUp(ctx context.Context, commands []string, extra sandbox.Policy, output func([]byte)) (cached bool, err error) {
	if !w.pristine() {
		return false, w.runSetup(ctx, commands, extra, output)
	}
	w.touched = true
	file, fill, err := w.setupFile(ctx, commands, extra)
	if err != nil {
		return false, err
	}
	hit, err := w.fromCache(file)
	if hit && err == nil {
		return true, nil
	}
	if err != nil {
		w.store.opt.Warn(fmt.Errorf("the cached setup of workspace %s could not be used: %w", w.ID, errors.Join(err, os.Remove(file))))
		fill = false // a part of it may lie here
	}
	if err := w.runSetup(ctx, commands, extra, output); err != nil || !fill {
		return false, err
	}
	if err := w.toCache(ctx, file); err != nil {
		w.store.opt.Warn(fmt.Errorf("the setup of workspace %s is not cached: %w", w.ID, err))
	}
	return false, nil
}

func (w *Workspace) runSetup(ctx context.Context, commands []string, extra sandbox.Policy, output func([]byte)) error {
	for _, line := range commands {
		res, err := w.store.opt.Box.Run(ctx, w.Policy(extra), sandbox.Command{Argv: []string{"/bin/sh", "-c", line}, Output: output})
		if err != nil {
			return err
		}
		if res.TimedOut || res.ExitCode != 0 {
			return fmt.Errorf("%w: %q ended with %d: %s", ErrSetup, line, res.ExitCode, lastLine(string(res.Output)))
		}
	}
	return nil
}
