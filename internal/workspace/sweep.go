package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// A git that writes references holds its lock for milliseconds; one that was killed leaves it for ever.
	staleLock = time.Minute
	// What a killed git or host was just receiving is whole gigabytes; a living one still writes to it.
	staleData = 24 * time.Hour
)

// sweepGit takes away what a git that was killed left in a repository of the host: lock files, which would refuse every later change, and
// objects that were not received to the end.
func sweepGit(dir string, now time.Time) {
	old := func(d fs.DirEntry, age time.Duration) bool {
		info, err := d.Info()
		return err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > age
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case d.IsDir() && path == filepath.Join(dir, "objects"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".lock") && old(d, staleLock):
			_ = os.Remove(path)
		}
		return nil
	})
	sweepFiles(filepath.Join(dir, "objects", "pack"), "tmp_", now)
}

// sweepFiles takes away files that were begun a day ago and never got their name.
func sweepFiles(dir, prefix string, now time.Time) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range list {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), prefix) && info.Mode().IsRegular() && now.Sub(info.ModTime()) > staleData {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// sweepHost does it for the host's repository of a workspace, and for the bundles beside it. Its caller holds the workspace.
func (s *Store) sweepHost(id string, now time.Time) {
	sweepGit(s.hostGit(id), now)
	for _, prefix := range []string{"incoming-", "export.bundle", "import.bundle", ".new-"} {
		sweepFiles(s.hostDir(id), prefix, now)
	}
}
