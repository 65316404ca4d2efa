package workspace

import (
	"io/fs"
	"strconv"
	"syscall"
	"time"
)

// openFlags keep a pipe from blocking the host and a link from being followed.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

// stamps: a change time can be read that a task cannot set.
const stamps = true

// stampOf changes whenever the content may have: the change time is the kernel's and cannot be set.
func stampOf(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	b := make([]byte, 0, 64)
	for _, n := range []int64{int64(st.Dev), int64(st.Ino), int64(st.Mode), st.Size, int64(st.Ctim.Sec), int64(st.Ctim.Nsec)} {
		b = append(strconv.AppendInt(b, n, 10), ':')
	}
	return string(b)
}

func changeTime(info fs.FileInfo) time.Time {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}
	}
	return time.Unix(int64(st.Ctim.Sec), int64(st.Ctim.Nsec))
}

// settled: a file changed just now could change again within the clock's grain without a new stamp.
func settled(info fs.FileInfo, now time.Time) bool {
	at := changeTime(info)
	return !at.IsZero() && now.Sub(at) > 2*time.Second
}

// onDisk is what a file takes of the disk: holes take nothing.
func onDisk(info fs.FileInfo) int64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size()
	}
	return min(info.Size(), st.Blocks*512)
}
