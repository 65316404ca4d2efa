package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// LastSlot returns the newest moment of a schedule whose event was accepted.
func (s *Store) LastSlot(ctx context.Context, schedule string) (time.Time, bool, error) {
	var at int64
	err := s.r.QueryRowContext(ctx, `SELECT at FROM slots WHERE schedule = ?`, schedule).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, s.reading("read the last moment of a schedule", err)
	}
	return fromNanos(at), true, nil
}

// AdvanceSlot moves a schedule on; it never goes back.
func (s *Store) AdvanceSlot(ctx context.Context, schedule string, at time.Time) error {
	return s.write(ctx, "advance schedule", func(tx *txn) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO slots (schedule, at) VALUES (?1, ?2)
			ON CONFLICT (schedule) DO UPDATE SET at = max(at, ?2)`, schedule, nanos(at))
		return err
	})
}
