package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// writeFile replaces path in one step and keeps it to the host's user.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// removeTree also removes folders that their owner made read-only, as Go's module cache does, at any depth.
func removeTree(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = os.Chmod(dir, 0o700)
	if root, err := os.OpenRoot(dir); err == nil {
		openFolders(root)
		root.Close()
	}
	return os.RemoveAll(dir)
}

// openFolders goes by descriptors: a path can be too long to be named.
func openFolders(root *os.Root) {
	f, err := root.Open(".")
	if err != nil {
		return
	}
	list, _ := f.ReadDir(-1)
	f.Close()
	for _, e := range list {
		if !e.IsDir() {
			continue
		}
		_ = root.Chmod(e.Name(), 0o700)
		if sub, err := root.OpenRoot(e.Name()); err == nil {
			openFolders(sub)
			sub.Close()
		}
	}
}

// chownTree gives everything below dir, links themselves included, to an account. Nothing else can write there yet.
func chownTree(dir string, uid, gid int) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
}
