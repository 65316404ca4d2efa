package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

const stageDir = "/tmp"

// stage gives the calling thread a mount namespace of its own in which everything that the box binds lies where an unprivileged
// bubblewrap can reach it: the folders above a workspace may belong to root alone. The thread must not be reused.
func stage(mounts []mount, workspace string) ([]mount, error) {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return nil, fmt.Errorf("stage mounts: own mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("stage mounts: make private: %w", err)
	}
	opened, err := openSources(mounts, workspace)
	defer func() {
		for _, fd := range opened {
			unix.Close(fd)
		}
	}()
	if err != nil {
		return nil, err
	}
	if err := unix.Mount("stage", stageDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return nil, fmt.Errorf("stage mounts: %w", err)
	}
	out := make([]mount, len(mounts))
	for i, m := range mounts {
		out[i] = m
		fd, ok := opened[i]
		if !ok {
			continue
		}
		at := filepath.Join(stageDir, strconv.Itoa(i))
		if err := bindAt(fd, at); err != nil {
			return nil, fmt.Errorf("stage %s: %w", m.src, err)
		}
		out[i].src = at
	}
	return out, nil
}

// openSources takes a handle of every source.
func openSources(mounts []mount, workspace string) (map[int]int, error) {
	opened := map[int]int{}
	for i, m := range mounts {
		if m.kind != bindRO && m.kind != bindRW {
			continue
		}
		fd, err := openSource(m.src, workspace)
		if err != nil {
			return opened, fmt.Errorf("stage %s: %w", m.src, err)
		}
		opened[i] = fd
	}
	return opened, nil
}

// openSource follows no link inside the workspace, where a command that still runs could have put one since it was looked at.
func openSource(src, workspace string) (int, error) {
	if !within(workspace, src) || src == workspace {
		return unix.Open(src, unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	root, err := unix.Open(workspace, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	rel, err := filepath.Rel(workspace, src)
	if err != nil {
		return -1, err
	}
	return unix.Openat2(root, rel, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
}

func bindAt(fd int, at string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	var err error
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = os.Mkdir(at, 0o755)
	} else {
		err = os.WriteFile(at, nil, 0o644)
	}
	if err != nil {
		return err
	}
	return unix.Mount("/proc/self/fd/"+strconv.Itoa(fd), at, "", unix.MS_BIND|unix.MS_REC, "")
}
