package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"reasonix/internal/flow"
)

// txn is one write transaction with what must be told after its commit.
type txn struct {
	*sql.Tx
	ctx     context.Context
	s       *Store
	now     time.Time
	changed []string // tasks
	jobs    bool
	posts   bool
}

// write runs fn in one transaction. An error leaves nothing behind, except that a duplicate is counted.
func (s *Store) write(ctx context.Context, action string, fn func(*txn) error) error {
	tx, err := s.begin(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", action, s.mend(err))
	}
	defer tx.Rollback() // without effect after the commit; a panic of fn must not keep the one connection
	if err := fn(tx); err != nil {
		return fmt.Errorf("%s: %w", action, s.mend(err))
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%s: %w", action, s.mend(err))
	}
	s.tell(tx)
	return nil
}

func (s *Store) begin(ctx context.Context) (*txn, error) {
	tx, err := s.w.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	return &txn{Tx: tx, ctx: ctx, s: s, now: s.now()}, nil
}

func (s *Store) tell(tx *txn) {
	if tx.jobs {
		s.jobs.wake()
	}
	if tx.posts {
		s.news.wakeOutbox()
	}
	for _, id := range tx.changed {
		s.news.taskChanged(id)
	}
}

// arrow is write for an event: its key is looked up first and recorded last, in the same transaction.
func (s *Store) arrow(ctx context.Context, action string, e *event, fn func(*txn) error) error {
	if e.key == "" {
		return fmt.Errorf("%s: the event has no key", action)
	}
	err := s.write(ctx, action, func(tx *txn) error {
		if err := tx.firstTime(e); err != nil {
			return err
		}
		if err := fn(tx); err != nil {
			return err
		}
		return tx.record(e)
	})
	if errors.Is(err, flow.ErrDuplicate) {
		s.countAgain(ctx, e.key)
	}
	return err
}

func (tx *txn) exec(query string, args ...any) error {
	_, err := tx.ExecContext(tx.ctx, query, args...)
	return err
}

func (tx *txn) row(query string, args ...any) *sql.Row {
	return tx.QueryRowContext(tx.ctx, query, args...)
}

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// collect reads all rows with scan.
func collect[T any](ctx context.Context, q querier, scan func(func(...any) error) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}
