package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// diskEvery is how often the task's folders are measured while a command runs: a limit on disk is sampled, not exact.
const diskEvery = 2 * time.Second

// entryBytes is what every file and folder counts at least, so that a file system cannot be used up by empty ones.
const entryBytes = 1 << 10

// watchDisk says when the task's own folders hold more than the limit. Without a limit it never does.
func watchDisk(ctx context.Context, p Policy) <-chan string {
	if p.Limits.DiskBytes <= 0 {
		return nil
	}
	over := make(chan string, 1)
	go func() {
		tick := time.NewTicker(diskEvery)
		defer tick.Stop()
		for {
			used, deep := usage(ctx, p)
			switch {
			case deep:
				over <- "stopped: the task's folders are nested deeper than a path can be, so what they hold cannot be measured"
				return
			case used > p.Limits.DiskBytes:
				over <- fmt.Sprintf("stopped: the task's folders hold more than %d bytes", p.Limits.DiskBytes)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return over
}

// usage counts allocated bytes, so that a sparse file costs what it takes and a hard link is counted once. deep tells that some of it
// lies below a path that is too long to be looked at.
func usage(ctx context.Context, p Policy) (total int64, deep bool) {
	seen := map[uint64]bool{}
	for _, dir := range slices.Concat([]string{p.Workspace}, present(p.Home), present(p.Temp), p.Caches) {
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return fs.SkipAll
			}
			if errors.Is(err, syscall.ENAMETOOLONG) {
				deep = true
				return fs.SkipAll
			}
			if err != nil {
				return nil // went away meanwhile, or a folder that the task closed to an ordinary user
			}
			info, err := d.Info()
			if err != nil {
				return nil
			}
			st, ok := info.Sys().(*syscall.Stat_t)
			if !ok || (st.Nlink > 1 && !d.IsDir() && seen[st.Ino]) {
				return nil
			}
			seen[st.Ino] = true
			total += max(st.Blocks*512, entryBytes)
			return nil
		})
	}
	return total, deep
}
