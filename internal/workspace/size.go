package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// longPath is where a walk goes on from a folder's descriptor: a task can nest folders deeper than a path can be.
const longPath = 3000

// folderSize adds up the files below dir as the disk holds them, without following links. What comes and goes meanwhile, and what cannot be
// opened, is left out.
func folderSize(ctx context.Context, dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, os.ErrPermission) {
				return nil // a task's files come and go
			}
			return err
		}
		if d.IsDir() && len(path) > longPath {
			root, err := os.OpenRoot(path)
			if err != nil {
				return fs.SkipDir
			}
			defer root.Close()
			n, err := deepSize(ctx, root, ".")
			total += n
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			total += onDisk(info)
		}
		return nil
	})
	return total, err
}

// deepSize keeps one descriptor open for every longPath bytes of a path.
func deepSize(ctx context.Context, root *os.Root, at string) (total int64, err error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if len(at) > longPath {
		sub, err := root.OpenRoot(at)
		if err != nil {
			return 0, nil
		}
		defer sub.Close()
		return deepSize(ctx, sub, ".")
	}
	f, err := root.Open(at)
	if err != nil {
		return 0, nil
	}
	list, _ := f.ReadDir(-1)
	f.Close()
	for _, e := range list {
		name := filepath.Join(at, e.Name())
		if e.IsDir() {
			n, err := deepSize(ctx, root, name)
			if total += n; err != nil {
				return total, err
			}
			continue
		}
		if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() {
			total += onDisk(info)
		}
	}
	return total, nil
}
