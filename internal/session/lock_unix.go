//go:build !windows

package session

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the lock file without waiting. The system drops the lock when the process dies, so it is never stale.
func tryLock(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrFenced
		}
		return nil, err
	}
	return f.Close, nil
}
