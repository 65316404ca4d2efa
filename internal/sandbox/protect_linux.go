package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func gitExclude() string {
	return "/" + strings.Join(Protected, "\n/") + "\n"
}

// protection collects what is carved out of a workspace.
type protection struct {
	root    string // the workspace
	base    string // the folder that shadows must stay in: root, or a git folder outside of it
	mounts  []mount
	shadows []shadow
}

// protect lists the places inside root that stay read-only: the agent's own configuration and everything in a git folder that
// makes a later command run something. The git folder itself is bound onto itself, so that it cannot be moved away.
func protect(root string) ([]mount, []shadow, error) {
	c := &protection{root: root, base: root}
	for _, name := range Protected {
		if err := c.readOnly(filepath.Join(root, name), shadow{}); err != nil {
			return nil, nil, err
		}
	}
	dotGit := filepath.Join(root, ".git")
	info, err := os.Lstat(dotGit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil // no repository: a task may create one (S58)
	case err != nil:
		return nil, nil, fmt.Errorf("protect git folder: %w", err)
	case info.IsDir():
		err = c.gitDir(dotGit, dotGit)
	case info.Mode().IsRegular():
		err = c.pointer(dotGit)
	default:
		err = fmt.Errorf("protect git folder: %s is a link or a special file; replace it by its target", dotGit)
	}
	return c.mounts, c.shadows, err
}

// readOnly protects path, or shadows it when it is missing. A link cannot be protected: the mount would land on its target.
func (c *protection) readOnly(path string, missing shadow) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		missing.root, missing.path = c.base, path
		c.shadows = append(c.shadows, missing)
	case err != nil:
		return fmt.Errorf("protect %s: %w", path, err)
	case IsShadow(info): // of a box that runs now, or left by a crash
		missing.root, missing.path, missing.dir = c.base, path, info.IsDir()
		c.shadows = append(c.shadows, missing)
	case !info.Mode().IsRegular() && !info.IsDir():
		return fmt.Errorf("protect %s: it is a link or a special file; replace it by its target", path)
	}
	c.mounts = append(c.mounts, mount{kind: bindRO, src: path, dest: path})
	return nil
}

// existing protects path only if it is there.
func (c *protection) existing(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return c.readOnly(path, shadow{})
}

// island binds path writable onto itself: a mount point cannot be renamed or removed.
func (c *protection) island(path string) {
	c.mounts = append(c.mounts, mount{kind: bindRW, src: path, dest: path})
}

// gitDir carves out one repository folder. common is where its config and hooks are; it differs for a linked worktree.
func (c *protection) gitDir(dir, common string) error {
	c.island(common)
	if err := c.commonDir(common); err != nil {
		return err
	}
	if dir == common {
		// A commondir file would let git read config and hooks from elsewhere; "." says what is true anyway.
		return c.readOnly(filepath.Join(dir, "commondir"), shadow{text: ".\n"})
	}
	c.island(dir)
	for _, name := range []string{"commondir", "gitdir", "config.worktree"} {
		if err := c.existing(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func (c *protection) commonDir(dir string) error {
	config, err := os.ReadFile(filepath.Join(dir, "config"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("protect git folder: %w", err)
	}
	info := filepath.Join(dir, "info")
	switch st, err := os.Lstat(info); {
	case errors.Is(err, fs.ErrNotExist):
		c.shadows = append(c.shadows, shadow{root: c.base, path: info, dir: true})
	case err != nil:
		return fmt.Errorf("protect git folder: %w", err)
	case !st.IsDir():
		return fmt.Errorf("protect git folder: %s is not a folder", info)
	}
	c.island(info)
	steps := []func() error{
		func() error { return c.readOnly(filepath.Join(dir, "config"), shadow{}) },
		func() error { return c.readOnly(filepath.Join(dir, "hooks"), shadow{dir: true}) },
		func() error { return c.readOnly(filepath.Join(info, "attributes"), shadow{}) },
		func() error { return c.existing(filepath.Join(dir, "worktrees")) },
		func() error { return c.modules(dir) },
	}
	if strings.Contains(strings.ToLower(string(config)), "worktreeconfig") {
		steps = append(steps, func() error { return c.readOnly(filepath.Join(dir, "config.worktree"), shadow{}) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// modules keeps submodules usable and their hooks and config out of reach; no new module can be planted for a later
// `git submodule update` to find.
func (c *protection) modules(dir string) error {
	modules := filepath.Join(dir, "modules")
	if err := c.readOnly(modules, shadow{}); err != nil {
		return err
	}
	return filepath.WalkDir(modules, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("protect submodules: %w", err)
		}
		if !d.IsDir() || path == modules {
			return nil
		}
		if _, err := os.Lstat(filepath.Join(path, "HEAD")); err != nil {
			return nil // a folder of a name with a slash
		}
		if err := c.submodule(path); err != nil {
			return err
		}
		return fs.SkipDir
	})
}

func (c *protection) submodule(dir string) error {
	if err := c.gitDir(dir, dir); err != nil {
		return err
	}
	work := worktreeOf(dir)
	if work == "" || !within(c.root, work) || work == c.root {
		return nil
	}
	pointer := filepath.Join(work, ".git")
	if info, err := os.Lstat(pointer); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	// Every folder on the way becomes a mount point, or renaming one of them would take the pointer along.
	rel, _ := filepath.Rel(c.root, work)
	at := c.root
	for _, part := range strings.Split(rel, string(filepath.Separator)) {
		at = filepath.Join(at, part)
		if info, err := os.Lstat(at); err != nil || !info.IsDir() {
			return nil
		}
		c.island(at)
	}
	return c.readOnly(pointer, shadow{})
}

// worktreeOf reads core.worktree of a submodule's config, which git writes as a relative path.
func worktreeOf(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "config"))
	if err != nil {
		return ""
	}
	for _, line := range strings.Split(string(text), "\n") {
		key, value, ok := strings.Cut(line, "=")
		if !ok || !strings.EqualFold(strings.TrimSpace(key), "worktree") {
			continue
		}
		path := strings.Trim(strings.TrimSpace(value), `"`)
		if filepath.IsAbs(path) {
			return filepath.Clean(path)
		}
		return filepath.Join(dir, path)
	}
	return ""
}

// pointer handles a linked worktree or a submodule opened by itself: `.git` is a file that names the real folder. That folder is
// bound only if it points back here, so that a planted file cannot open a way to any other place.
func (c *protection) pointer(file string) error {
	if err := c.readOnly(file, shadow{}); err != nil {
		return err
	}
	dir := target(file, "gitdir:", c.root)
	if dir == "" {
		return nil
	}
	if back := target(filepath.Join(dir, "gitdir"), "", dir); samePath(back, file) {
		common := target(filepath.Join(dir, "commondir"), "", dir)
		if common == "" || filepath.Dir(filepath.Dir(dir)) != common {
			return nil
		}
		c.base = common
		return c.gitDir(dir, common)
	}
	if samePath(worktreeOf(dir), c.root) {
		c.base = dir
		return c.gitDir(dir, dir)
	}
	return nil
}

// target reads a one-line file that names a path, relative to base.
func target(file, prefix, base string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	path, ok := strings.CutPrefix(strings.TrimSpace(string(text)), prefix)
	path = strings.TrimSpace(path)
	if !ok || path == "" {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return filepath.Clean(path)
}

// samePath compares through links: git writes resolved paths, people configure others.
func samePath(a, b string) bool {
	ia, errA := os.Lstat(a)
	ib, errB := os.Lstat(b)
	return errA == nil && errB == nil && os.SameFile(ia, ib)
}
