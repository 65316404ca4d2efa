package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reasonix/internal/sandbox"
)

// create makes a workspace from nothing: mirror, host repository, clone; meta last.
func (s *Store) create(ctx context.Context, r Request) (meta, error) {
	m := meta{ID: r.ID, Repo: r.Repo, URL: withoutUserinfo(r.URL), Branch: r.Branch, Created: time.Now().UTC(), Pinned: r.SHA != ""}
	if err := s.discard(r.ID); err != nil { // what a crash left
		return m, err
	}
	if err := s.admit(ctx, r); err != nil {
		return m, err
	}
	if r.URL != "" {
		name, err := s.mirror(ctx, r)
		if err != nil {
			return m, err
		}
		m.Mirror = name
		if err := s.pin(ctx, &m, r); err != nil {
			return m, err
		}
	}
	if err := s.initHostGit(ctx, &m); err != nil {
		return m, err
	}
	if err := s.clone(ctx, m, m.Base, ""); err != nil {
		return m, err
	}
	return m, s.writeMeta(m)
}

// pin says where the task starts: at its own branch, when work that was pushed goes on, else at the base.
func (s *Store) pin(ctx context.Context, m *meta, r Request) (err error) {
	dir := s.mirrorDir(m.Mirror)
	if r.Resume {
		if sha, err := s.git(ctx, dir, "rev-parse", "--verify", "--quiet", "refs/heads/"+r.Branch+"^{commit}"); err == nil {
			m.BaseRef, m.Base, m.Pushed = r.Branch, sha, sha
			return nil
		}
	}
	m.BaseRef, m.Base, err = s.resolve(ctx, dir, r)
	return err
}

// initHostGit is where the task's bundles are read into; it borrows from the mirror. A task without upstream commits starts
// from an empty commit, so that everything has a base.
func (s *Store) initHostGit(ctx context.Context, m *meta) error {
	dir := s.hostGit(m.ID)
	if err := s.initBare(ctx, dir, *m); err != nil {
		return err
	}
	if m.Base == "" {
		tree, err := s.git(ctx, dir, "hash-object", "-t", "tree", "-w", os.DevNull)
		if err != nil {
			return err
		}
		if m.Base, err = s.git(ctx, dir, "commit-tree", tree, "-m", "Start"); err != nil {
			return err
		}
	}
	_, err := s.git(ctx, dir, "update-ref", "refs/base", m.Base)
	return err
}

// initBare makes a bare repository that borrows from the mirror. Its objects are readable for the account of a box, whatever the umask.
func (s *Store) initBare(ctx context.Context, dir string, m meta) error {
	if _, err := s.git(ctx, "", "init", "--quiet", "--bare", "--template=", "--shared=0644", dir); err != nil {
		return err
	}
	return s.borrow(dir, m)
}

// borrow names the mirror's objects by a path below the store, so that the store can be moved as a whole.
func (s *Store) borrow(gitDir string, m meta) error {
	if m.Mirror == "" {
		return nil
	}
	objects := filepath.Join(gitDir, "objects")
	rel, err := filepath.Rel(objects, s.mirrorObjects(m.Mirror))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(objects, "info"), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(objects, "info", "alternates"), []byte(filepath.ToSlash(rel)+"\n"), 0o644)
}

// clone makes work/ID beside its place and moves it there when it is whole. head is where the branch stands; content, when set,
// is the commit whose files lie in the tree, uncommitted.
func (s *Store) clone(ctx context.Context, m meta, head, content string) error {
	if err := removeTree(s.workDir(m.ID)); err != nil {
		return err
	}
	making := s.makingDir(m.ID)
	if err := removeTree(making); err != nil { // what a crash left; the caller holds the workspace
		return err
	}
	if err := os.Mkdir(making, 0o700); err != nil {
		return err
	}
	defer removeTree(making) // gone already when all went well
	for _, name := range []string{"tree", "home", "temp", "caches"} {
		if err := os.Mkdir(filepath.Join(making, name), 0o755); err != nil {
			return err
		}
	}
	if err := s.fillTree(ctx, m, filepath.Join(making, "tree"), head, content); err != nil {
		return err
	}
	if a, ok := s.opt.Box.(sandbox.Accounts); ok {
		if uid, gid, ok := a.Account(m.ID); ok {
			if err := chownTree(making, uid, gid); err != nil {
				return fmt.Errorf("give the workspace to the account of its box: %w", err)
			}
		}
	}
	mode := os.FileMode(0o755)
	if sandbox.OpenFolders(s.opt.Box) {
		mode = 0o700 // the folder around it lets everybody pass, and the account owns this one
	}
	if err := os.Chmod(making, mode); err != nil {
		return err
	}
	files := head
	if content != "" {
		files = content
	}
	if err := s.seed(ctx, m, filepath.Join(making, "tree"), files); err != nil {
		return fmt.Errorf("index the checkout: %w", err)
	}
	return os.Rename(making, s.workDir(m.ID))
}

// fillTree is the only time that the host runs git in a clone: before any task has seen it.
func (s *Store) fillTree(ctx context.Context, m meta, tree, head, content string) error {
	gitDir := filepath.Join(tree, ".git")
	if _, err := s.git(ctx, "", "init", "--quiet", "--template=", "--initial-branch="+m.Branch, tree); err != nil {
		return err
	}
	for _, dir := range []string{"hooks", "info"} {
		if err := os.MkdirAll(filepath.Join(gitDir, dir), 0o755); err != nil {
			return err
		}
	}
	if err := s.borrow(gitDir, m); err != nil {
		return err
	}
	if !s.has(ctx, gitDir, head) || (content != "" && !s.has(ctx, gitDir, content)) {
		if err := s.copyObjects(ctx, m.ID, gitDir, head, content); err != nil {
			return err
		}
	}
	steps := [][]string{
		{"config", "gc.auto", "0"},
		{"update-ref", "refs/heads/" + m.Branch, head},
	}
	if m.Mirror != "" {
		steps = append(steps, []string{"config", "remote.origin.url", m.URL},
			[]string{"config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"})
	}
	if m.BaseRef != "" {
		steps = append(steps, []string{"update-ref", "refs/remotes/origin/" + m.BaseRef, m.Base})
	}
	files := head
	if content != "" {
		files = content
	}
	steps = append(steps, []string{"--work-tree=" + tree, "-c", "checkout.workers=0", "read-tree", "--reset", "-u", files})
	if content != "" {
		steps = append(steps, []string{"read-tree", "--reset", head})
	}
	for _, args := range steps {
		if _, err := s.git(ctx, gitDir, args...); err != nil {
			return err
		}
	}
	return nil
}

// copyObjects brings what only the task's host repository has: own commits, or the first one of an empty repository.
func (s *Store) copyObjects(ctx context.Context, id, gitDir string, commits ...string) error {
	args := []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", s.hostGit(id)}
	for _, c := range commits {
		if c != "" {
			args = append(args, c)
		}
	}
	_, err := s.run(ctx, gitCall{dir: gitDir, args: args})
	return err
}

// rebuild makes the tree again from the newest snapshot.
func (s *Store) rebuild(ctx context.Context, w *Workspace) error {
	snap, err := s.newest(ctx, w.ID)
	if errors.Is(err, ErrNoSnapshot) {
		snap = Snapshot{Head: w.BaseSHA}
	} else if err != nil {
		return err
	}
	m := w.meta
	if snap.Branch != "" {
		m.Branch = snap.Branch
	}
	if err := s.clone(ctx, m, snap.Head, snap.SHA); err != nil {
		return fmt.Errorf("rebuild from snapshot: %w", err)
	}
	w.Restored, w.From = true, snap
	return nil
}

// lines splits NUL-terminated output.
func lines(out []byte) []string {
	text := strings.TrimSuffix(string(out), "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}
