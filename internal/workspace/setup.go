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
	for _, line := range commands {
		res, err := w.store.opt.Box.Run(ctx, w.Policy(extra), sandbox.Command{Argv: []string{"/bin/sh", "-c", line}, Output: output})
		if err != nil {
			return fmt.Errorf("set up workspace %s: %w", w.ID, err)
		}
		if res.TimedOut || res.ExitCode != 0 {
			return fmt.Errorf("set up workspace %s: %w: %q ended with %d: %s", w.ID, ErrSetup, line, res.ExitCode, lastLine(string(res.Output)))
		}
	}
	if err := writeFile(mark, []byte(key)); err != nil {
		return fmt.Errorf("set up workspace %s: %w", w.ID, err)
	}
	w.Restored = false
	return nil
}
