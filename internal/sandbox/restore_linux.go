package sandbox

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// restore compares one place with what was remembered and puts it back. lost: the folder itself was deleted.
func (k kept) restore(root *os.Root) (differs, lost bool, err error) {
	if k.Island {
		return k.restoreIsland(root)
	}
	want := map[string]leaf{}
	for _, l := range k.Entries {
		want[l.Path] = l
	}
	now, err := k.list(root, k.Path, func(path string) (int, error) { return len(want[path].Content), nil })
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		now, err = nil, nil
	}
	if err == nil && slices.EqualFunc(k.Entries, now, sameLeaf) {
		return false, false, nil
	}
	if err != nil && len(k.Skip) == 0 { // nothing in it is the task's: away with all of it
		err, now = clearAll(root, k.Path), nil
	}
	return true, false, errors.Join(err, k.rewrite(root, want, now))
}

// sameLeaf ignores times: reading is no change. A file that got a second name is one, or it could be changed later through that name.
func sameLeaf(a, b leaf) bool {
	return a.Path == b.Path && a.Mode == b.Mode && a.UID == b.UID && a.GID == b.GID && a.Links == b.Links && bytes.Equal(a.Content, b.Content)
}

// rewrite removes what was added or changed and makes what is missing.
func (k kept) rewrite(root *os.Root, want map[string]leaf, now []leaf) error {
	errs := []error{clearWay(root, k.Path)}
	for _, l := range slices.Backward(now) { // the deepest first
		if w, ok := want[l.Path]; !ok || (!sameLeaf(w, l) && !(w.Mode.IsDir() && l.Mode.IsDir())) {
			errs = append(errs, clearAll(root, l.Path))
		}
	}
	if len(k.Entries) == 0 {
		return errors.Join(append(errs, clearAll(root, k.Path))...)
	}
	for _, l := range k.Entries {
		errs = append(errs, l.make(root))
	}
	return errors.Join(errs...)
}

// make creates the leaf where it is missing and gives it its mode and owner.
func (l leaf) make(root *os.Root) error {
	_, err := root.Lstat(l.Path)
	if err == nil && !l.Mode.IsDir() {
		return nil
	}
	switch {
	case err == nil:
	case l.Mode.IsDir():
		err = root.MkdirAll(l.Path, 0o755)
	case l.Mode&fs.ModeSymlink != 0:
		return root.Symlink(string(l.Content), l.Path)
	default:
		err = errors.Join(root.MkdirAll(filepath.Dir(l.Path), 0o755), writeNew(root, l.Path, string(l.Content)))
	}
	if err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := root.Lchown(l.Path, l.UID, l.GID); err != nil {
			return err
		}
	}
	if err := root.Chmod(l.Path, l.Mode.Perm()); err != nil {
		return err
	}
	return root.Chtimes(l.Path, l.Time, l.Time)
}

// restoreIsland moves the folder back to its place, wherever in the root it went, and removes what stands there instead.
func (k kept) restoreIsland(root *os.Root) (differs, lost bool, err error) {
	if info, err := root.Lstat(k.Path); err == nil && k.same(info) {
		if info.Mode().Perm() == k.Mode {
			return false, false, nil
		}
		return true, false, root.Chmod(k.Path, k.Mode)
	}
	at, err := k.find(root)
	if err != nil {
		return true, false, err
	}
	if at == "" && k.Path == ".git" {
		return true, false, k.remake(root)
	}
	if at == "" {
		return true, true, clearAll(root, k.Path)
	}
	aside := ".reasonix-aside-" + callID()
	if err := errors.Join(open(root, at), root.Rename(at, aside)); err != nil { // a folder that nobody may write cannot be moved either
		return true, false, err
	}
	return true, false, errors.Join(clearWay(root, k.Path), clearAll(root, k.Path), root.MkdirAll(filepath.Dir(k.Path), 0o755), root.Rename(aside, k.Path), root.Chmod(k.Path, k.Mode))
}

// remake makes an empty folder in the place of a repository that is gone, or lies where nobody finds it. Configuration and hooks follow as
// they were; otherwise the next command could bring its own along with a copy of the repository, and nothing would be known of the first.
func (k kept) remake(root *os.Root) error {
	if err := errors.Join(clearAll(root, k.Path), root.Mkdir(k.Path, 0o700)); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := root.Lchown(k.Path, k.UID, k.GID); err != nil {
			return err
		}
	}
	return root.Chmod(k.Path, k.Mode)
}

// clearWay removes what stands where a folder on the way to path has to be: a link there would lead elsewhere.
func clearWay(root *os.Root, path string) error {
	parts := strings.Split(filepath.Dir(path), string(filepath.Separator))
	for i := range parts {
		at := filepath.Join(parts[:i+1]...)
		info, err := root.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return clearAll(root, at)
		}
	}
	return nil
}

func (k kept) same(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && uint64(st.Dev) == k.Dev && st.Ino == k.Ino
}

// find looks for the folder by its inode; it cannot have left the root, since the box may not move anything out of it.
func (k kept) find(root *os.Root) (string, error) {
	at := ""
	err := fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // went away meanwhile
		}
		if info, err := d.Info(); err == nil && k.same(info) {
			at = path
			return fs.SkipAll
		}
		return open(root, path)
	})
	return at, err
}

// clearAll removes path and what lies below, closed folders included.
func clearAll(root *os.Root, path string) error {
	if err := root.RemoveAll(path); err == nil {
		return nil
	}
	_ = fs.WalkDir(root.FS(), path, func(at string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			return open(root, at)
		}
		return nil
	})
	return root.RemoveAll(path)
}
