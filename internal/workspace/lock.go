package workspace

import (
	"context"
	"path/filepath"

	"reasonix/internal/filelock"
)

// lock holds a file lock across processes; it ends with its holder. The file itself stays.
func (s *Store) lock(ctx context.Context, name string) (unlock func(), err error) {
	free, err := filelock.Take(ctx, filepath.Join(s.root, "locks", name))
	if err != nil {
		return nil, err
	}
	return func() { _ = free() }, nil
}
