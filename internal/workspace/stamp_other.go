//go:build !linux

package workspace

import (
	"io/fs"
	"time"
)

const openFlags = 0

// stampOf: without a change time that a task cannot set, every file is read each time.
func stampOf(fs.FileInfo) string { return "" }

func settled(fs.FileInfo, time.Time) bool { return false }
