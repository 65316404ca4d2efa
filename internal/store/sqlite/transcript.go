package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"reasonix/internal/flow"
	"reasonix/internal/session"
)

// transcript is a session.Log whose appends hold a lease.
type transcript struct {
	s       *Store
	held    flow.Held
	session string
}

// Transcript returns the log of a session. With fence 0 it can only be read.
func (s *Store) Transcript(taskID, sessionID string, fence int64) session.Log {
	return &transcript{s: s, held: flow.Held{TaskID: taskID, Fence: fence}, session: sessionID}
}

// ID is the session's.
func (l *transcript) ID() string { return l.session }

// Append writes all entries or none. Seq and At are assigned here.
func (l *transcript) Append(ctx context.Context, entries ...session.Entry) error {
	if l.held.Fence == 0 {
		return fmt.Errorf("append to transcript: it was opened for reading: %w", flow.ErrFenced)
	}
	return l.s.write(ctx, "append to transcript", func(tx *txn) error {
		if err := tx.mayAppend(l.held); err != nil {
			return err
		}
		var last int64
		if err := tx.row(`SELECT coalesce(max(seq), 0) FROM entries WHERE session_id = ?`, l.session).Scan(&last); err != nil {
			return err
		}
		for i, e := range entries {
			e.Seq, e.At = last+1+int64(i), tx.now
			doc, err := json.Marshal(e)
			if err != nil {
				return err
			}
			if err := tx.exec(`INSERT INTO entries (session_id, seq, doc) VALUES (?,?,?)`, l.session, e.Seq, doc); err != nil {
				return err
			}
		}
		tx.changed = append(tx.changed, l.held.TaskID)
		return nil
	})
}

// mayAppend is the check of held without reading the whole task.
func (tx *txn) mayAppend(h flow.Held) error {
	var ok bool
	err := tx.row(`SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ? AND state = 'running' AND fence = ? AND lease_until > ?)`,
		h.TaskID, h.Fence, nanos(tx.now)).Scan(&ok)
	if err == nil && !ok {
		return flow.ErrFenced
	}
	return err
}

// Entries returns everything after the given Seq, in order.
func (l *transcript) Entries(ctx context.Context, after int64) ([]session.Entry, error) {
	scan := func(scan func(...any) error) (e session.Entry, err error) {
		var doc []byte
		if err := scan(&doc); err != nil {
			return e, err
		}
		return e, json.Unmarshal(doc, &e)
	}
	entries, err := collect(ctx, l.s.r, scan, `SELECT doc FROM entries WHERE session_id = ? AND seq > ? ORDER BY seq`, l.session, after)
	if err != nil {
		return nil, l.s.reading("read transcript "+l.session, err)
	}
	return entries, nil
}
