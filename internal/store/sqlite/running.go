package sqlite

import (
	"errors"
	"fmt"
)

// HostRuns tells whether a process works as that host on this state right now, by the lock that ends with it.
func (s *Store) HostRuns(host string) (bool, error) {
	unlock, err := tryLock(s.hostLock(host))
	if errors.Is(err, errLocked) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for a running host: %w", err)
	}
	unlock()
	return false, nil
}
