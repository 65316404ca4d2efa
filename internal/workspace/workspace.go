// Package workspace is a directory per task: mirrored once, cloned per task, snapshotted at every park, harvested at the end.
package workspace

import (
	"context"
	"errors"
)

// Request says what a task works on.
type Request struct {
	ID         string // workspace id; Prepare with the same id opens what is there
	Repo       string // name, for messages and the mirror's folder
	URL        string // path or URL; empty: an empty repository
	Base       string // branch, empty for the repository's default
	SHA        string // exact commit, wins over Base
	Branch     string // the task's own branch
	Credential Credential
}

// Credential gives access for one fetch or push; it lives in the host process alone.
type Credential func(ctx context.Context) (user, secret string, err error)

// Harvest is what the host read from the task's bundle, in its own repository of that task.
type Harvest struct {
	GitDir    string // host-side repository that holds Head
	Base      string
	Head      string // commit with everything, uncommitted changes included; equals Base when nothing changed
	Diff      string // unified diff Base..Head, bounded; the whole when Truncated is false
	Truncated bool
	Files     []string // changed paths
	Ignored   []string // notes for people: what was left out and why
}

// Empty tells whether the task changed nothing.
func (h Harvest) Empty() bool { return h.Head == h.Base }

// Promised errors.
var (
	ErrNoRepository = errors.New("repository cannot be reached")
	ErrNoBase       = errors.New("base does not exist")
	ErrPolicy       = errors.New("the change is outside what this route may publish")
)
