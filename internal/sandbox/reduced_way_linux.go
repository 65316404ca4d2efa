package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// leadIn makes sure that an unprivileged account reaches what it is granted: the folders above a workspace may belong to root alone.
// Where the host may make mounts, the calling thread gets a view of its own in which those folders hold nothing but the task's. Where
// it may not, they have to let others pass.
func (s stageSpec) leadIn() error {
	closed, err := s.closedFolders()
	if err != nil || len(closed) == 0 {
		return err
	}
	err = errNoMounts
	if !s.NoMounts {
		err = unix.Unshare(unix.CLONE_NEWNS)
	}
	if err != nil {
		return fmt.Errorf("the folder %s is closed to the account of the box (uid %d), and this host may make no mounts to lead around it (%w): "+
			"chmod o+x %s, or choose a place that others may pass, for example data = \"/var/lib/reasonix\" under [bot]", closed[0], s.UID, err, closed[0])
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of the box: make private: %w", err)
	}
	for _, dir := range closed {
		if err := s.screen(dir); err != nil {
			return fmt.Errorf("mounts of the box: %w", err)
		}
	}
	return nil
}

var errNoMounts = errors.New("mounts are refused")

// closedFolders are the topmost folders that keep the account out.
func (s stageSpec) closedFolders() (closed []string, err error) {
	for _, r := range s.Rules {
		var way []string // from the top
		for dir := filepath.Dir(r.Path); dir != "/"; dir = filepath.Dir(dir) {
			way = append([]string{dir}, way...)
		}
		for _, dir := range way {
			info, err := os.Stat(dir)
			if err != nil {
				return nil, err
			}
			if mayPass(info, s.UID, s.GID) {
				continue
			}
			if !slices.Contains(closed, dir) {
				closed = append(closed, dir)
			}
			break
		}
	}
	return closed, nil
}

func mayPass(info os.FileInfo, uid, gid int) bool {
	st := info.Sys().(*syscall.Stat_t)
	switch perm := info.Mode().Perm(); {
	case int(st.Uid) == uid:
		return perm&0o100 != 0
	case int(st.Gid) == gid:
		return perm&0o010 != 0
	default:
		return perm&0o001 != 0
	}
}

// screen covers a folder with an empty one and shows in it what the box is granted.
func (s stageSpec) screen(dir string) error {
	granted := map[string]int{}
	defer func() {
		for _, fd := range granted {
			unix.Close(fd)
		}
	}()
	for _, r := range s.Rules {
		if !within(dir, r.Path) || slices.ContainsFunc(s.Rules, func(o rule) bool { return o.Path != r.Path && within(dir, o.Path) && within(o.Path, r.Path) }) {
			continue // comes with the folder around it
		}
		fd, err := openSource(r.Path, s.Workspace)
		if err != nil {
			return fmt.Errorf("open %s: %w", r.Path, err)
		}
		if old, ok := granted[r.Path]; ok {
			unix.Close(old)
		}
		granted[r.Path] = fd
	}
	if err := unix.Mount("box", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("cover %s: %w", dir, err)
	}
	for path, fd := range granted {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := bindAt(fd, path); err != nil {
			return fmt.Errorf("show %s: %w", path, err)
		}
	}
	return nil
}
