package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reasonix/internal/tool"
)

// NewShell lets the bash tool run lines in box. policy is asked before each line, so that a plan's read-only window or a
// granted directory counts at once; its Limits bound every line and a Command can only tighten the wall time.
func NewShell(box Box, policy func() Policy) tool.Shell {
	return Interpreter{}.Shell(box, policy)
}

type shell struct {
	box    Box
	policy func() Policy
	with   Interpreter
}

// maxLine is what the kernel takes as one argument (MAX_ARG_STRLEN), less one byte.
const maxLine = 128<<10 - 1

// prepare checks a line and gives what the box needs for it.
func (s shell) prepare(c tool.Command) (Policy, Command, error) {
	if strings.ContainsRune(c.Line, 0) {
		return Policy{}, Command{}, errors.New("run command: the line contains a NUL byte")
	}
	if len(c.Line) > maxLine {
		return Policy{}, Command{}, fmt.Errorf("run command: the line is longer than %d bytes; write it to a file and run that", maxLine)
	}
	p := s.policy()
	for _, w := range c.Writes {
		if err := checkGrant(w); err != nil {
			return Policy{}, Command{}, fmt.Errorf("run command: %w", err)
		}
		p.Writable = append(p.Writable[:len(p.Writable):len(p.Writable)], w)
	}
	dir, err := dirIn(p.Workspace, c.Dir)
	if err != nil {
		return Policy{}, Command{}, fmt.Errorf("run command: %w", err)
	}
	return p, Command{Argv: s.with.argv(c.Line), Dir: dir, Output: c.Output, Wall: c.Timeout}, nil
}

func (s shell) Run(ctx context.Context, c tool.Command) (tool.Result, error) {
	p, command, err := s.prepare(c)
	if err != nil {
		return tool.Result{}, err
	}
	r, err := s.box.Run(ctx, p, command)
	r.Output = append(r.Output, stoppedNote(r.Stopped)+restoredNote(r.Restored)+reachedNote(r.Reached)...)
	return tool.Result{Output: string(r.Output), ExitCode: r.ExitCode, TimedOut: r.TimedOut, Omitted: r.Omitted,
		Duration: r.Duration}, err
}

func stoppedNote(why string) string {
	if why == "" {
		return ""
	}
	return "\n[" + why + "]\n"
}

// restoredNote tells that a change was undone, and why.
func restoredNote(restored []string) string {
	if len(restored) == 0 {
		return ""
	}
	return "\n[put back, because a task may not change it: " + strings.Join(restored, ", ") + "]\n"
}

// reachedNote goes to the transcript with the output: what was reached stays on record, and a refusal is explained.
func reachedNote(reached []string) string {
	const most = 20
	if len(reached) == 0 {
		return ""
	}
	more := ""
	if len(reached) > most {
		more = fmt.Sprintf(" and %d more", len(reached)-most)
		reached = reached[:most]
	}
	return "\n[network: " + strings.Join(reached, ", ") + more + "]\n"
}

// checkGrant: what was approved is what is bound, so a link in the place of the folder is refused.
func checkGrant(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("write access to %s: %w", dir, err)
	}
	if real != filepath.Clean(dir) {
		return fmt.Errorf("write access to %s: it is a link; ask for %s", dir, real)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return fmt.Errorf("write access to %s: it is not a folder", dir)
	}
	return nil
}

// dirIn resolves dir inside root; a symlink that leads out of root is refused like any other way out.
func dirIn(root, dir string) (string, error) {
	full := filepath.Join(root, dir)
	if filepath.IsAbs(dir) {
		full = filepath.Clean(dir)
	}
	if !within(root, full) {
		return "", fmt.Errorf("%s: %w", dir, tool.ErrOutside)
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return "", err
	}
	defer r.Close()
	rel, err := filepath.Rel(root, full)
	if err != nil {
		return "", err
	}
	info, err := r.Stat(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("directory %s: %w", dir, fs.ErrNotExist)
	}
	if err != nil {
		return "", fmt.Errorf("directory %s: %w (%v)", dir, tool.ErrOutside, err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory", dir)
	}
	return full, nil
}

// within tells whether path is root or below it; both must be clean and absolute.
func within(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
