package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"reasonix/internal/approval"
	"reasonix/internal/flow"
)

func scanAsk(scan func(...any) error) (approval.Ask, error) {
	var a approval.Ask
	var doc []byte
	if err := scan(&doc); err != nil {
		return a, err
	}
	return a, json.Unmarshal(doc, &a)
}

func loadAsks(ctx context.Context, q querier, where string, args ...any) ([]approval.Ask, error) {
	return collect(ctx, q, scanAsk, `SELECT doc FROM asks WHERE `+where, args...)
}

func loadAsk(ctx context.Context, q querier, id string) (approval.Ask, error) {
	a, err := scanAsk(q.QueryRowContext(ctx, `SELECT doc FROM asks WHERE id = ?`, id).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return a, fmt.Errorf("ask %s: %w", id, flow.ErrUnknown)
	}
	return a, err
}

func (tx *txn) ask(id string) (approval.Ask, error) { return loadAsk(tx.ctx, tx, id) }

func (tx *txn) openAsks(taskID string) (n int, err error) {
	err = tx.row(`SELECT count(*) FROM asks WHERE task_id = ? AND state = 'open'`, taskID).Scan(&n)
	return n, err
}

func (tx *txn) insertAsk(a approval.Ask) error {
	if a.ID == "" {
		return errors.New("an ask has no id")
	}
	if _, err := tx.ask(a.ID); err == nil {
		return fmt.Errorf("ask %s exists: ids of asks are never used twice", a.ID)
	} else if !errors.Is(err, flow.ErrUnknown) {
		return err
	}
	doc, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return tx.exec(`INSERT INTO asks (id, task_id, state, due, created, doc) VALUES (?,?,?,?,?,?)`,
		a.ID, a.TaskID, a.State, nanos(a.Expires), nanos(a.Created), doc)
}

func (tx *txn) storeAsk(a approval.Ask) error { return tx.storeAskDue(a, a.Expires) }

func (tx *txn) storeAskDue(a approval.Ask, due time.Time) error {
	doc, err := json.Marshal(a)
	if err != nil {
		return err
	}
	tx.changed = append(tx.changed, a.TaskID)
	return tx.exec(`UPDATE asks SET state = ?, due = ?, doc = ? WHERE id = ?`, a.State, nanos(due), doc, a.ID)
}

// closeAsks cancels what a task still asks when it ends.
func (tx *txn) closeAsks(taskID string) error {
	asks, err := loadAsks(tx.ctx, tx, `task_id = ? AND state = 'open'`, taskID)
	if err != nil {
		return err
	}
	for _, a := range asks {
		a.State = approval.StateCancelled
		if err := tx.storeAsk(a); err != nil {
			return err
		}
	}
	return nil
}

// dueAfter is when an ask is looked at again that was judged because its time had come and stays open: at its new expiry,
// else after as long as it was given, so that nobody is reminded at every tick.
func dueAfter(a approval.Ask, now time.Time) time.Time {
	if a.Expires.IsZero() || a.Expires.After(now) {
		return a.Expires
	}
	return now.Add(max(a.Expires.Sub(a.Created), time.Minute))
}

// Ask returns one ask.
func (s *Store) Ask(ctx context.Context, id string) (approval.Ask, error) {
	a, err := loadAsk(ctx, s.r, id)
	if err != nil {
		return a, s.reading("read ask", err)
	}
	return a, nil
}

// Asks lists asks, newest first.
func (s *Store) Asks(ctx context.Context, taskID string, openOnly bool) ([]approval.Ask, error) {
	where, args := `true`, []any{}
	if taskID != "" {
		where, args = where+` AND task_id = ?`, append(args, taskID)
	}
	if openOnly {
		where += ` AND state = 'open'`
	}
	asks, err := loadAsks(ctx, s.r, where+` ORDER BY seq DESC`, args...)
	if err != nil {
		return nil, s.reading("list asks", err)
	}
	return asks, nil
}

// DueAsks lists open asks whose reminder or expiry has come, the longest due first. A
// reminder is an expiry that the judge puts off.
func (s *Store) DueAsks(ctx context.Context, now time.Time) ([]approval.Ask, error) {
	asks, err := loadAsks(ctx, s.r, `state = 'open' AND due > 0 AND due <= ? ORDER BY due, seq`, nanos(now))
	if err != nil {
		return nil, s.reading("list due asks", err)
	}
	return asks, nil
}
