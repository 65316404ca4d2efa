package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const stageDir = "/tmp"

// stage gives the calling thread a mount namespace of its own in which everything that the box binds lies where an unprivileged
// bubblewrap can reach it: the folders above a workspace may belong to root alone. The thread must not be reused.
func stage(mounts []mount) ([]mount, error) {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return nil, fmt.Errorf("stage mounts: own mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("stage mounts: make private: %w", err)
	}
	opened, err := openSources(mounts)
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

// openSources takes a handle of every source. What lies inside another root is opened without following a link in its last part.
func openSources(mounts []mount) (map[int]int, error) {
	opened := map[int]int{}
	for i, m := range mounts {
		if m.kind != bindRO && m.kind != bindRW {
			continue
		}
		how := unix.O_PATH | unix.O_CLOEXEC
		if strings.Contains(m.src, "/.git") {
			how |= unix.O_NOFOLLOW
		}
		fd, err := unix.Open(m.src, how, 0)
		if err != nil {
			return opened, fmt.Errorf("stage %s: %w", m.src, err)
		}
		opened[i] = fd
	}
	return opened, nil
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
