package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"reasonix/internal/chat"
	"reasonix/internal/flow"
)

// event is the record of one platform event: what it did, so that a second delivery can be told the same.
type event struct {
	key, arrow    string
	kind          chat.OutcomeKind
	reason, actor string
	taskID, askID string
	result        string // JSON of the first result, where the task alone is not enough
}

// firstTime fills e with the first record and returns ErrDuplicate when the key had its effect before.
func (tx *txn) firstTime(e *event) error {
	row := tx.row(`SELECT arrow, kind, reason, actor, task_id, ask_id, result FROM events WHERE key = ?`, e.key)
	var first event
	err := row.Scan(&first.arrow, &first.kind, &first.reason, &first.actor, &first.taskID, &first.askID, &first.result)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	first.key = e.key
	*e = first
	return flow.ErrDuplicate
}

func (tx *txn) record(e *event) error {
	return tx.exec(`INSERT INTO events (key, arrow, kind, reason, actor, task_id, ask_id, result, at) VALUES (?,?,?,?,?,?,?,?,?)`,
		e.key, e.arrow, e.kind, e.reason, e.actor, e.taskID, e.askID, e.result, nanos(tx.now))
}

// countAgain notes a repeated delivery; losing the count would not harm anything.
func (s *Store) countAgain(ctx context.Context, key string) {
	if _, err := s.w.ExecContext(ctx, `UPDATE events SET again = again + 1 WHERE key = ?`, key); err != nil {
		s.log.Warn("a repeated event was not counted", "err", err)
	}
}

// Counted counts events by "kind", or "kind: reason" where there is one; repeated deliveries count as duplicate.
func (s *Store) Counted(ctx context.Context) (map[string]int64, error) {
	type line struct {
		name string
		n    int64
	}
	lines, err := collect(ctx, s.r, func(scan func(...any) error) (l line, err error) { return l, scan(&l.name, &l.n) }, `
		SELECT CASE reason WHEN '' THEN kind ELSE kind || ': ' || reason END, count(*) FROM events GROUP BY 1
		UNION ALL SELECT 'duplicate', coalesce(sum(again), 0) FROM events`)
	if err != nil {
		return nil, s.reading("count events", err)
	}
	counted := map[string]int64{}
	for _, l := range lines {
		if l.n > 0 {
			counted[l.name] += l.n
		}
	}
	return counted, nil
}
