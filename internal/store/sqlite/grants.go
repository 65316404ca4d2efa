package sqlite

import (
	"context"
	"fmt"

	"reasonix/internal/flow"
)

// grant keeps rules that a person added; the same rule twice is one.
func (tx *txn) grant(grants []flow.Grant) error {
	for _, g := range grants {
		if g.At.IsZero() {
			g.At = tx.now
		}
		err := tx.exec(`INSERT INTO grants (route, task_id, rule, by, ask_id, at) VALUES (?,?,?,?,?,?) ON CONFLICT DO NOTHING`,
			g.Route, g.TaskID, g.Rule, g.By, g.AskID, nanos(g.At))
		if err != nil {
			return err
		}
	}
	return nil
}

// Grants lists the rules that hold for a route or a task, oldest first; both empty lists all.
func (s *Store) Grants(ctx context.Context, route, taskID string) ([]flow.Grant, error) {
	scan := func(scan func(...any) error) (g flow.Grant, err error) {
		var at int64
		err = scan(&g.ID, &g.Route, &g.TaskID, &g.Rule, &g.By, &g.AskID, &at)
		g.At = fromNanos(at)
		return g, err
	}
	grants, err := collect(ctx, s.r, scan, `SELECT id, route, task_id, rule, by, ask_id, at FROM grants
		WHERE (?1 = '' AND ?2 = '') OR (?1 <> '' AND route = ?1) OR (?2 <> '' AND task_id = ?2) ORDER BY id`, route, taskID)
	if err != nil {
		return nil, s.reading("list grants", err)
	}
	return grants, nil
}

// RevokeGrant takes a rule back; ErrUnknown when there is none of that id.
func (s *Store) RevokeGrant(ctx context.Context, id int64) error {
	return s.write(ctx, "revoke grant", func(tx *txn) error {
		res, err := tx.ExecContext(ctx, `DELETE FROM grants WHERE id = ?`, id)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return fmt.Errorf("grant %d: %w", id, flow.ErrUnknown)
		}
		return nil
	})
}
