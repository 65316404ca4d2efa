//go:build !linux

package workspace

import (
	"io/fs"
	"time"
)

const openFlags = 0

// stamps: a change time can be read that a task cannot set.
const stamps = false

// stampOf: without a change time that a task cannot set, every file is read each time.
func stampOf(fs.FileInfo) string { return "" }

func changeTime(fs.FileInfo) time.Time { return time.Time{} }

func settled(fs.FileInfo, time.Time) bool { return false }

func onDisk(info fs.FileInfo) int64 { return info.Size() }
