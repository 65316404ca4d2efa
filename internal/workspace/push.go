package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Push publishes h.Head as branch at url and may be repeated: a remote branch that already stands there is left alone, one that
// the task does not know is ErrMoved. Only the one branch is ever written.
func (w *Workspace) Push(ctx context.Context, h Harvest, url, branch string, cred Credential) error {
	if err := w.push(ctx, h, url, branch, cred); err != nil {
		return fmt.Errorf("push workspace %s: %w", w.ID, err)
	}
	return nil
}

func (w *Workspace) push(ctx context.Context, h Harvest, url, branch string, cred Credential) error {
	s := w.store
	if h.Empty() || !shaShape.MatchString(h.Head) {
		return errors.New("there is nothing to publish")
	}
	if err := s.checkNames(ctx, Request{URL: url, Branch: branch}); err != nil {
		return err
	}
	remote, err := w.RemoteHead(ctx, url, branch, cred)
	if err != nil {
		return err
	}
	if remote == h.Head {
		return w.notePush(h.Head)
	}
	if remote != "" && remote != w.meta.Pushed && !w.knows(ctx, remote, h.Head) {
		return fmt.Errorf("%w: %s stands at %s", ErrMoved, branch, remote)
	}
	ref := "refs/heads/" + branch
	args := []string{"push", "--porcelain", "--no-verify", "--no-recurse-submodules", "--force-with-lease=" + ref + ":" + remote, url, h.Head + ":" + ref}
	if _, err := s.run(ctx, gitCall{dir: s.hostGit(w.ID), args: args, cred: cred, url: url}); err != nil {
		if now, lookErr := w.RemoteHead(ctx, url, branch, cred); lookErr == nil && now != remote && now != h.Head {
			return fmt.Errorf("%w: %s stands at %s", ErrMoved, branch, now)
		}
		return err
	}
	return w.notePush(h.Head)
}

// knows tells whether what stands at the remote is part of what would be pushed.
func (w *Workspace) knows(ctx context.Context, remote, head string) bool {
	_, err := w.store.git(ctx, w.store.hostGit(w.ID), "merge-base", "--is-ancestor", remote, head)
	return err == nil
}

func (w *Workspace) notePush(head string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meta.Pushed = head
	return w.store.writeMeta(w.meta)
}

// RemoteHead is the commit at which branch stands at url, empty when there is no such branch. ErrNoRepository.
func (w *Workspace) RemoteHead(ctx context.Context, url, branch string, cred Credential) (string, error) {
	ref := "refs/heads/" + branch
	out, err := w.store.run(ctx, gitCall{args: []string{"ls-remote", "--refs", url, ref}, cred: cred, url: url})
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrNoRepository, withoutUserinfo(url), err)
	}
	for _, line := range strings.Split(string(out), "\n") {
		if sha, name, ok := strings.Cut(line, "\t"); ok && name == ref {
			return sha, nil
		}
	}
	return "", nil
}
