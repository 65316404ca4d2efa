package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
)

const (
	maxNewCommits = 10000   // in one bundle
	maxTree       = 1 << 20 // entries of a tree beyond those of the base
)

// ErrTooMuch: what a bundle unfolds to is more than the host reads.
var ErrTooMuch = errors.New("too much to be read")

// checkSizes looks at what the trees of new commits unfold to, before anything reads them whole: a few small objects that name each other can
// stand for more files than there is memory.
func (w *Workspace) checkSizes(ctx context.Context, tip string) error {
	dir := w.store.hostGit(w.ID)
	out, err := w.store.git(ctx, dir, "rev-list", fmt.Sprintf("--max-count=%d", maxNewCommits+1), tip, "--not", "--all", "--alternate-refs")
	if err != nil {
		return err
	}
	commits := strings.Fields(out)
	if len(commits) > maxNewCommits {
		return fmt.Errorf("%w: more than %d new commits", ErrTooMuch, maxNewCommits)
	}
	most := maxTree
	for _, c := range commits {
		n, err := w.store.treeSize(ctx, dir, c, most)
		if err == nil && n > most && most == maxTree { // a base as large as that is fine
			if most, err = w.store.treeSize(ctx, dir, w.BaseSHA, 1<<30); err == nil {
				most += maxTree
				n, err = w.store.treeSize(ctx, dir, c, most)
			}
		}
		if err != nil {
			return err
		}
		if n > most {
			return fmt.Errorf("%w: commit %s holds more than %d files and folders", ErrTooMuch, c, most)
		}
	}
	return nil
}

// treeSize counts files and folders of a commit, to one more than most.
func (s *Store) treeSize(ctx context.Context, dir, commit string, most int) (int, error) {
	c := &counter{left: most}
	_, err := s.run(ctx, gitCall{dir: dir, args: []string{"ls-tree", "-r", "-t", "-z", "--name-only", commit}, out: c})
	if c.left < 0 {
		err = nil
	}
	return most - c.left, err
}

// counter counts NUL bytes and ends the writer when there are too many.
type counter struct{ left int }

func (c *counter) Write(p []byte) (int, error) {
	if c.left -= bytes.Count(p, []byte{0}); c.left < 0 {
		return 0, errOutputLimit
	}
	return len(p), nil
}
