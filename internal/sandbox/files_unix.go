//go:build unix

package sandbox

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openNonBlocking keeps a pipe that was swapped in from hanging the host.
const openNonBlocking = syscall.O_NONBLOCK

func links(_ *os.File, info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// keepOwner gives a file the owner that info shows; only root can, and nobody else needs it.
func keepOwner(f *os.File, info fs.FileInfo) {
	if os.Geteuid() != 0 {
		return
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(st.Uid), int(st.Gid))
	}
}

// renameBetween moves a name from one open folder to another.
func renameBetween(from *os.Root, a string, to *os.Root, b string) error {
	src, err := from.Open(".")
	if err != nil {
		return pathless(err)
	}
	defer src.Close()
	dst, err := to.Open(".")
	if err != nil {
		return pathless(err)
	}
	defer dst.Close()
	return unix.Renameat(int(src.Fd()), a, int(dst.Fd()), b)
}
