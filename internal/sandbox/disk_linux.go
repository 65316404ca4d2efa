package sandbox

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// diskEvery is how often the task's folders are measured while a command runs: a limit on disk is sampled, not exact.
const diskEvery = 2 * time.Second

// watchDisk is closed when the task's own folders hold more than the limit. Without a limit it never is.
func watchDisk(ctx context.Context, p Policy) <-chan struct{} {
	if p.Limits.DiskBytes <= 0 {
		return nil
	}
	over := make(chan struct{})
	go func() {
		tick := time.NewTicker(diskEvery)
		defer tick.Stop()
		for {
			if usage(ctx, p) > p.Limits.DiskBytes {
				close(over)
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

// usage counts allocated bytes, so that a sparse file costs what it takes and a hard link is counted once.
func usage(ctx context.Context, p Policy) int64 {
	var total int64
	seen := map[uint64]bool{}
	for _, dir := range slices.Concat([]string{p.Workspace}, present(p.Home), present(p.Temp), p.Caches) {
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if ctx.Err() != nil {
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
			total += st.Blocks * 512
			return nil
		})
	}
	return total
}
