package sqlite

import (
	"errors"
	"fmt"

	"reasonix/internal/filelock"
)

// HostRuns tells whether a process works as that host on this state right now, by the lock that ends with it.
func (s *Store) HostRuns(host string) (bool, error) {
	unlock, err := filelock.Try(s.hostLock(host))
	if errors.Is(err, filelock.ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for a running host: %w", err)
	}
	return false, unlock()
}
