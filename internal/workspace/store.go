package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"reasonix/internal/sandbox"
)

// Options are the store's surroundings.
type Options struct {
	Git    string                      // git program, empty: from PATH
	Box    sandbox.Box                 // where a task's git runs; without a real box snapshot and harvest are refused
	Lookup func(string) (string, bool) // host environment for the boxes, nil: os.LookupEnv
	Warn   func(error)                 // what went wrong and costs nothing but time, nil: nobody is told
	// SetupCache bounds the results of setup commands that are kept for other tasks, in bytes; 0: none are.
	SetupCache int64
	Scan       func(diff string) (found []string) // secrets in what would be published, described without showing them; may be nil
}

// Store keeps mirrors and workspaces below one folder of the host:
//
//	mirrors/   one bare repository per upstream, upstream objects only
//	work/ID/   tree, home, temp, caches: what the task's box can write
//	host/ID/   what the host keeps about the task: its bare repository, states, meta.json; no command of the task sees it
type Store struct {
	root    string
	opt     Options
	flights singleflight.Group
}

var idShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Open makes or opens the store below root, which must be absolute.
func Open(root string, opt Options) (*Store, error) {
	if !filepath.IsAbs(root) {
		return nil, fmt.Errorf("open workspaces: %s is not an absolute path", root)
	}
	if opt.Git == "" {
		path, err := exec.LookPath("git")
		if err != nil {
			return nil, fmt.Errorf("open workspaces: git is missing, install it: %w", err)
		}
		opt.Git = path
	}
	if opt.Warn == nil {
		opt.Warn = func(error) {}
	}
	if opt.Lookup == nil {
		opt.Lookup = os.LookupEnv
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("open workspaces: %w", err)
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, fmt.Errorf("open workspaces: %w", err)
	}
	s := &Store{root: root, opt: opt}
	for _, dir := range []string{"mirrors", "work", "host", "locks"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			return nil, fmt.Errorf("open workspaces: %w", err)
		}
	}
	if sandbox.OpenFolders(opt.Box) {
		for _, dir := range []string{".", "mirrors", "work"} {
			if err := os.Chmod(filepath.Join(root, dir), 0o711); err != nil {
				return nil, fmt.Errorf("open workspaces: let the accounts of boxes pass: %w", err)
			}
		}
	}
	// The paths that people configure may belong to another user; hooks and the like stay off for all of them.
	if err := writeFile(s.gitConfig(), []byte("[safe]\n\tdirectory = *\n")); err != nil {
		return nil, fmt.Errorf("open workspaces: %w", err)
	}
	return s, nil
}

func (s *Store) gitConfig() string            { return filepath.Join(s.root, "gitconfig") }
func (s *Store) workDir(id string) string     { return filepath.Join(s.root, "work", id) }
func (s *Store) makingDir(id string) string   { return filepath.Join(s.root, "work", ".making-"+id) } // no id begins with a dot
func (s *Store) hostDir(id string) string     { return filepath.Join(s.root, "host", id) }
func (s *Store) hostGit(id string) string     { return filepath.Join(s.hostDir(id), "git") }
func (s *Store) mirrorDir(name string) string { return filepath.Join(s.root, "mirrors", name) }
func (s *Store) mirrorObjects(name string) string {
	return filepath.Join(s.mirrorDir(name), "objects")
}

// Prepare opens the workspace of r.ID or makes it. What a crash left half made is discarded and made again; a workspace whose
// directory is gone is rebuilt from its newest snapshot.
func (s *Store) Prepare(ctx context.Context, r Request) (*Workspace, error) {
	w, err := s.prepare(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("prepare workspace %s: %w", r.ID, err)
	}
	return w, nil
}

func (s *Store) prepare(ctx context.Context, r Request) (*Workspace, error) {
	if !idShape.MatchString(r.ID) {
		return nil, fmt.Errorf("id %q: use letters, digits, dot, dash and underscore, at most 64", r.ID)
	}
	if err := s.checkNames(ctx, r); err != nil {
		return nil, err
	}
	unlock, err := s.lock(ctx, "work-"+r.ID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	m, err := s.readMeta(r.ID)
	fresh := errors.Is(err, ErrUnknown)
	switch {
	case fresh:
		if m, err = s.create(ctx, r); err != nil {
			return nil, errors.Join(err, s.discard(r.ID))
		}
	case err != nil:
		return nil, err
	}
	if !fresh {
		s.sweepHost(r.ID, time.Now())
	}
	w := s.workspace(m, r.Rules)
	w.setupFiles = r.SetupFiles
	if w.Fresh = fresh; fresh {
		w.Pushed = m.Pushed
	}
	if _, err := os.Stat(w.Dir); errors.Is(err, fs.ErrNotExist) {
		if err := s.rebuild(ctx, w); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// checkNames refuses what git would take for an option or another kind of reference.
func (s *Store) checkNames(ctx context.Context, r Request) error {
	if r.Branch == "" {
		return errors.New("no branch given")
	}
	for _, name := range []string{r.Branch, r.Base} {
		if name == "" {
			continue
		}
		if _, err := s.git(ctx, "", "check-ref-format", "--branch", name); err != nil || strings.HasPrefix(name, "-") {
			return fmt.Errorf("%q is not a branch name", name)
		}
	}
	if r.SHA != "" && !shaShape.MatchString(r.SHA) {
		return fmt.Errorf("%q is not a full commit id", r.SHA)
	}
	if strings.HasPrefix(r.URL, "-") || strings.Contains(r.URL, "::") || strings.ContainsAny(r.URL, "\x00\n") {
		return fmt.Errorf("%q is not a repository address", r.URL)
	}
	return nil
}

var shaShape = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

func (s *Store) workspace(m meta, rules Rules) *Workspace {
	dir := s.workDir(m.ID)
	return &Workspace{ID: m.ID, Dir: filepath.Join(dir, "tree"), Home: filepath.Join(dir, "home"), Temp: filepath.Join(dir, "temp"),
		Caches: filepath.Join(dir, "caches"), BaseSHA: m.Base, Branch: m.Branch, store: s, meta: m, rules: rules}
}

// Info describes a workspace to people.
type Info struct {
	ID, Repo, Branch, Base string
	Dir                    string
	Snapshots              int
	Created                time.Time
}

// List names the workspaces in order of their ids.
func (s *Store) List(ctx context.Context) ([]Info, error) {
	entries, err := os.ReadDir(filepath.Join(s.root, "host"))
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	var out []Info
	for _, e := range entries {
		m, err := s.readMeta(e.Name())
		if errors.Is(err, ErrUnknown) {
			continue // half made
		}
		if err != nil {
			return nil, fmt.Errorf("list workspaces: %w", err)
		}
		snaps, err := s.snapshots(ctx, m.ID)
		if err != nil {
			return nil, fmt.Errorf("list workspaces: %w", err)
		}
		out = append(out, Info{ID: m.ID, Repo: m.Repo, Branch: m.Branch, Base: m.Base, Dir: s.workspace(m, Rules{}).Dir, Snapshots: len(snaps), Created: m.Created})
	}
	slices.SortFunc(out, func(a, b Info) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// Remove takes away everything about a workspace. An unknown id is no error.
func (s *Store) Remove(ctx context.Context, id string) error {
	if !idShape.MatchString(id) {
		return fmt.Errorf("remove workspace %q: %w", id, ErrUnknown)
	}
	unlock, err := s.lock(ctx, "work-"+id)
	if err != nil {
		return fmt.Errorf("remove workspace %s: %w", id, err)
	}
	defer unlock()
	if err := s.discard(id); err != nil {
		return fmt.Errorf("remove workspace %s: %w", id, err)
	}
	return nil
}

// discard removes the mark of completeness first, so that a crash in between leaves a half-made workspace and not a broken one.
func (s *Store) discard(id string) error {
	if err := os.Remove(filepath.Join(s.hostDir(id), "meta.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(removeTree(s.workDir(id)), removeTree(s.makingDir(id)), removeTree(s.hostDir(id)))
}

func (s *Store) readMeta(id string) (meta, error) {
	var m meta
	data, err := os.ReadFile(filepath.Join(s.hostDir(id), "meta.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return m, ErrUnknown
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("read %s of workspace %s: %w", "meta.json", id, err)
	}
	return m, nil
}

func (s *Store) writeMeta(m meta) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(s.hostDir(m.ID), "meta.json"), data)
}
