// Package filelock is a lock on a file that another process of the same machine can see and that ends with its holder.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrLocked: somebody else holds the lock.
var ErrLocked = errors.New("locked by another process")

// Try takes the lock without waiting and creates the file where it is missing; the file stays. ErrLocked when somebody holds it.
func Try(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f.Close, nil
}

// every is how often Take looks: a lock of another process gives no signal.
const every = 20 * time.Millisecond

// Take waits for the lock until ctx ends.
func Take(ctx context.Context, path string) (unlock func() error, err error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		unlock, err := Try(path)
		if !errors.Is(err, ErrLocked) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lock %s: %w", path, ctx.Err())
		case <-tick.C:
		}
	}
}
