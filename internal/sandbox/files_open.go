package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"reasonix/internal/tool"
)

// openFolder opens the folder at parts below root, one component after the other, and follows no link: each opened descriptor
// must be the folder that was looked at. With create, missing folders are made.
func openFolder(root string, parts []string, create bool) (*os.Root, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, pathless(err)
	}
	for _, part := range parts {
		next, err := stepInto(dir, part, create)
		dir.Close()
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

// stepInto opens the folder part of dir; with create it makes it when nothing is there.
func stepInto(dir *os.Root, part string, create bool) (*os.Root, error) {
	before, err := dir.Lstat(part)
	if create && errors.Is(err, fs.ErrNotExist) {
		return makeFolder(dir, part)
	}
	if err != nil {
		return nil, pathless(err)
	}
	if before.Mode()&fs.ModeSymlink != 0 {
		return nil, errSwapped
	}
	if !before.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", part)
	}
	next, err := dir.OpenRoot(part)
	if err != nil {
		return nil, pathless(err)
	}
	after, err := next.Lstat(".")
	if err != nil || !os.SameFile(before, after) {
		next.Close()
		return nil, errSwapped
	}
	return next, nil
}

func makeFolder(dir *os.Root, part string) (*os.Root, error) {
	err := dir.Mkdir(part, 0o777) // the process's umask narrows it
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, pathless(err)
	}
	next, openErr := stepInto(dir, part, false)
	if openErr != nil || err != nil {
		return next, openErr
	}
	if self, err := next.Open("."); err == nil {
		giveToOwnerOf(dir, self)
		self.Close()
	}
	return next, nil
}

// openRegular opens a regular file of an open folder and nothing else: no link, no pipe (it would hang), no device.
func openRegular(dir *os.Root, name string) (*os.File, fs.FileInfo, error) {
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, nil, pathless(err)
	}
	if err := mustBeRegular(before); err != nil {
		return nil, nil, err
	}
	file, err := dir.OpenFile(name, os.O_RDONLY|openNonBlocking, 0)
	if err != nil {
		return nil, nil, pathless(err)
	}
	after, err := file.Stat()
	if err != nil || !os.SameFile(before, after) || !after.Mode().IsRegular() {
		file.Close()
		return nil, nil, errSwapped
	}
	return file, after, nil
}

func mustBeRegular(info fs.FileInfo) error {
	m := info.Mode()
	switch {
	case m.IsRegular():
		return nil
	case m.IsDir():
		return fmt.Errorf("%w: it is a folder", tool.ErrSpecial)
	case m&fs.ModeSymlink != 0:
		return errSwapped
	case m&fs.ModeNamedPipe != 0:
		return fmt.Errorf("%w: it is a named pipe", tool.ErrSpecial)
	case m&fs.ModeSocket != 0:
		return fmt.Errorf("%w: it is a socket", tool.ErrSpecial)
	default:
		return fmt.Errorf("%w: it is a device", tool.ErrSpecial)
	}
}

// linkedInto tells whether a file with several names is one of those below paths. A hard link has no path to resolve, so the
// names are looked up; more than the bound counts as a match, because nothing is proven then.
func linkedInto(info fs.FileInfo, paths []string) (string, bool) {
	const most = 20_000
	seen, hit := 0, ""
	for _, p := range paths {
		err := filepath.WalkDir(resolveLinks(p), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // what the host cannot see cannot be compared; the box cannot link it either
			}
			if d.IsDir() && d.Name() == "objects" && isGitName(filepath.Base(filepath.Dir(path))) {
				return fs.SkipDir // contents of objects are public in the repository
			}
			if seen++; seen > most {
				hit = p
				return fs.SkipAll
			}
			if !d.Type().IsRegular() {
				return nil
			}
			if other, err := d.Info(); err == nil && os.SameFile(info, other) {
				hit = path
				return fs.SkipAll
			}
			return nil
		})
		if err == nil && hit != "" {
			return hit, true
		}
	}
	return "", false
}
