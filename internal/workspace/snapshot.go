package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// keptSnapshots of one workspace; older ones go when a new one is made.
const keptSnapshots = 20

// Snapshot is the tree of a workspace at one moment, in the host's own repository of the task.
type Snapshot struct {
	Ref    string
	SHA    string // commit with every tracked and untracked file; ignored files are not in it
	Head   string // where the task's branch stood: SHA's parent
	Branch string // the branch the task was on, empty when detached
	At     time.Time
}

// Snapshot reads the whole tree out of the box. It changes nothing in the workspace. When nothing changed since the newest one, that
// one is returned. One at a time.
func (w *Workspace) Snapshot(ctx context.Context) (Snapshot, error) {
	w.packing.Lock()
	defer w.packing.Unlock()
	snap, err := w.snapshot(ctx)
	if err != nil {
		return Snapshot{}, fmt.Errorf("snapshot workspace %s: %w", w.ID, err)
	}
	return snap, nil
}

func (w *Workspace) snapshot(ctx context.Context) (Snapshot, error) {
	last, err := w.store.newest(ctx, w.ID)
	if err != nil && !errors.Is(err, ErrNoSnapshot) {
		return Snapshot{}, err
	}
	at := time.Now().UTC()
	ref := fmt.Sprintf("refs/snapshots/%020d", at.UnixNano())
	p, err := w.pack(ctx, "snapshot", "Snapshot", ref, last.SHA)
	if err != nil {
		return Snapshot{}, err
	}
	p.branch = w.store.branchName(ctx, p.branch)
	if last.SHA != "" && p.commit == last.SHA {
		if p.branch == last.Branch {
			return last, nil
		}
		if _, err := w.store.git(ctx, w.store.hostGit(w.ID), "update-ref", ref, p.commit); err != nil {
			return Snapshot{}, err
		}
	}
	snap := Snapshot{Ref: ref, SHA: p.commit, Head: p.head, Branch: p.branch, At: at}
	return snap, w.store.nameSnapshot(ctx, w.ID, snap)
}

// branchName is the name that the box reported, if it is one.
func (s *Store) branchName(ctx context.Context, name string) string {
	if _, err := s.git(ctx, "", "check-ref-format", "--branch", name); err != nil || strings.HasPrefix(name, "-") {
		return ""
	}
	return name
}

// nameSnapshot notes the branch beside the ref and lets old snapshots go.
func (s *Store) nameSnapshot(ctx context.Context, id string, snap Snapshot) error {
	if err := s.noteBranch(id, snap); err != nil {
		return err
	}
	all, err := s.snapshots(ctx, id)
	if err != nil {
		return err
	}
	for _, old := range all[:max(0, len(all)-keptSnapshots)] {
		if _, err := s.git(ctx, s.hostGit(id), "update-ref", "-d", old.Ref); err != nil {
			return err
		}
		_ = os.Remove(s.branchFile(id, old))
	}
	return s.tidy(ctx, id)
}

func (s *Store) branchFile(id string, snap Snapshot) string {
	return filepath.Join(s.hostDir(id), "branches", filepath.Base(snap.Ref))
}

func (s *Store) noteBranch(id string, snap Snapshot) error {
	file := s.branchFile(id, snap)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return writeFile(file, []byte(snap.Branch))
}

// looseLimit is how many loose objects a task's host repository may hold before they are packed and the unreachable ones go.
const looseLimit = 4000

// tidy packs from time to time. Objects that arrived a moment ago stay: somebody may be about to name them.
func (s *Store) tidy(ctx context.Context, id string) error {
	// Object ids are spread evenly, so one of the 256 folders tells about all.
	few, err := os.ReadDir(filepath.Join(s.hostGit(id), "objects", "17"))
	packs, _ := filepath.Glob(filepath.Join(s.hostGit(id), "objects", "pack", "*.pack"))
	if (err != nil || len(few)*256 < looseLimit) && len(packs) < 50 {
		return nil
	}
	_, err = s.git(ctx, s.hostGit(id), "gc", "--quiet", "--prune=10.minutes.ago")
	return err
}

// snapshots lists them, oldest first.
func (s *Store) snapshots(ctx context.Context, id string) ([]Snapshot, error) {
	out, err := s.git(ctx, s.hostGit(id), "for-each-ref", "--sort=refname", "--format=%(refname) %(objectname) %(parent)", "refs/snapshots")
	if err != nil {
		return nil, err
	}
	var all []Snapshot
	for _, line := range strings.Split(out, "\n") {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		var nano int64
		if _, err := fmt.Sscanf(filepath.Base(f[0]), "%d", &nano); err != nil {
			continue
		}
		snap := Snapshot{Ref: f[0], SHA: f[1], Head: f[2], At: time.Unix(0, nano).UTC()}
		branch, _ := os.ReadFile(s.branchFile(id, snap))
		snap.Branch = string(branch)
		all = append(all, snap)
	}
	return all, nil
}

func (s *Store) newest(ctx context.Context, id string) (Snapshot, error) {
	all, err := s.snapshots(ctx, id)
	if err != nil {
		return Snapshot{}, err
	}
	if len(all) == 0 {
		return Snapshot{}, ErrNoSnapshot
	}
	return all[len(all)-1], nil
}

// Restore writes the newest snapshot's files into dir, which must be absent or empty. It is for people: no repository is made.
// ErrNoSnapshot, ErrUnknown.
func (s *Store) Restore(ctx context.Context, id, dir string) error {
	if err := s.restore(ctx, id, dir); err != nil {
		return fmt.Errorf("restore workspace %s: %w", id, err)
	}
	return nil
}

func (s *Store) restore(ctx context.Context, id, dir string) error {
	if !idShape.MatchString(id) {
		return ErrUnknown
	}
	if _, err := s.readMeta(id); err != nil {
		return err
	}
	snap, err := s.newest(ctx, id)
	if err != nil {
		return err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return fmt.Errorf("%s is not empty", dir)
	}
	own, err := os.MkdirTemp(s.hostDir(id), "restore-*") // several may be at work, and one that was killed leaves a lock
	if err != nil {
		return err
	}
	defer os.RemoveAll(own)
	index := filepath.Join(own, "index")
	_, err = s.run(ctx, gitCall{dir: s.hostGit(id), args: []string{"--work-tree=" + dir, "read-tree", "--reset", "-u", snap.SHA},
		env: []string{"GIT_INDEX_FILE=" + index}})
	return err
}
