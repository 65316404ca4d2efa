package workspace

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// openFlags keep a pipe from blocking the host and a link from being followed.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

// stampOf changes whenever the content may have: the change time is the kernel's and cannot be set.
func stampOf(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d:%d:%d:%d.%d", st.Dev, st.Ino, st.Mode, st.Size, st.Ctim.Sec, st.Ctim.Nsec)
}

// settled: a file changed just now could change again within the clock's grain without a new stamp.
func settled(info fs.FileInfo, now time.Time) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && now.Sub(time.Unix(st.Ctim.Sec, st.Ctim.Nsec)) > 2*time.Second
}
