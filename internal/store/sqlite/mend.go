package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// mend adds to an error of the database what a person can do about it. Whatever it says, the transaction left nothing behind.
func (s *Store) mend(err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_FULL:
		return fmt.Errorf("the disk is full, nothing was written: free space in %s: %w", filepath.Dir(s.path), err)
	case lib.SQLITE_READONLY:
		return fmt.Errorf("the state file cannot be written, nothing was stored: make %s and its folder writable for this user: %w", s.path, err)
	case lib.SQLITE_IOERR:
		return fmt.Errorf("the disk of %s failed, nothing was written: check its space and health: %w", s.path, err)
	case lib.SQLITE_BUSY:
		return fmt.Errorf("another process holds %s locked for more than 10 s: end it and try again: %w", s.path, err)
	case lib.SQLITE_CORRUPT:
		return fmt.Errorf("%s is damaged: restore it from a backup: %w", s.path, err)
	case lib.SQLITE_NOTADB:
		return fmt.Errorf("%s is not a state database: name another file: %w", s.path, err)
	}
	return err
}
