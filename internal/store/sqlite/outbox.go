package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"reasonix/internal/chat"
	"reasonix/internal/flow"
)

// The states of a post.
const (
	postPending = "pending"
	postDead    = "dead"
)

// post puts posts into the outbox. A key that is there already stays as it is. A post that edits one which was never made
// is stored as dead, so that it is seen and holds up nobody.
func (tx *txn) post(posts []flow.NewPost) error {
	for _, p := range posts {
		if p.Key == "" {
			return errors.New("a post has no key")
		}
		state, cause, err := tx.editable(p.Edits)
		if err != nil {
			return err
		}
		doc, err := json.Marshal(p)
		if err != nil {
			return err
		}
		err = tx.exec(`INSERT INTO posts (key, task_id, ask_id, connection, place, edits, state, cause, next_at, created, doc)
			VALUES (?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (key) DO NOTHING`, p.Key, p.TaskID, p.AskID, p.Place.Connection, p.Place.Key(),
			p.Edits, state, cause, nanos(tx.now), nanos(tx.now), doc)
		if err != nil {
			return err
		}
		tx.posts = true
	}
	return nil
}

func (tx *txn) editable(edits string) (state, cause string, err error) {
	if edits == "" {
		return postPending, "", nil
	}
	err = tx.row(`SELECT state FROM posts WHERE key = ?`, edits).Scan(&state)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return postDead, fmt.Sprintf("the post %q that it edits does not exist", edits), nil
	case err != nil:
		return "", "", err
	case state == postDead:
		return postDead, fmt.Sprintf("the post %q that it edits was given up", edits), nil
	}
	return postPending, "", nil
}

const postColumns = `p.doc, p.tries, p.uncertain, p.state, p.cause, p.ref, p.created, p.next_at,
	coalesce((SELECT e.ref FROM posts e WHERE e.key = p.edits), '')`

func scanPost(scan func(...any) error) (flow.Queued, error) {
	var q flow.Queued
	var doc, ref, editRef []byte
	var created, next int64
	if err := scan(&doc, &q.Tries, &q.Uncertain, &q.State, &q.Cause, &ref, &created, &next, &editRef); err != nil {
		return q, err
	}
	if err := json.Unmarshal(doc, &q.NewPost); err != nil {
		return q, fmt.Errorf("read post: %w", err)
	}
	q.Created, q.NextAt = fromNanos(created), fromNanos(next)
	var err error
	if q.Ref, err = readRef(ref); err == nil {
		q.EditRef, err = readRef(editRef)
	}
	return q, err
}

func readRef(doc []byte) (*chat.Ref, error) {
	if len(doc) == 0 {
		return nil, nil
	}
	var ref chat.Ref
	if err := json.Unmarshal(doc, &ref); err != nil {
		return nil, fmt.Errorf("read the reference of a post: %w", err)
	}
	return &ref, nil
}

// Due takes posts: of each place only the first that is not yet made, so that order survives failures and parallel senders.
// Tries counts the takings before this one.
func (s *Store) Due(ctx context.Context, connections []string, n int, hold time.Duration) ([]flow.Queued, error) {
	if len(connections) == 0 || n <= 0 {
		return nil, nil
	}
	some, err := s.anyDue(ctx, connections)
	if err != nil {
		return nil, s.reading("look into the outbox", err)
	}
	if !some {
		return nil, nil
	}
	var due []flow.Queued
	err = s.write(ctx, "take posts", func(tx *txn) (err error) {
		query, args := dueQuery(postColumns, connections, tx.now)
		due, err = collect(ctx, tx, scanPost, query+` ORDER BY p.seq LIMIT ?`, append(args, n)...)
		if err != nil {
			return err
		}
		for i := range due {
			err := tx.row(`UPDATE posts SET uncertain = uncertain OR taken_until > 0, taken_until = ?, taken_by = ?, tries = tries + 1
				WHERE key = ? RETURNING uncertain, tries - 1`, nanos(tx.now.Add(hold)), s.taker(s.host), due[i].Key).Scan(&due[i].Uncertain, &due[i].Tries)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.news.outboxAt(s.now().Add(hold))
	return due, nil
}

// taker names this process as a host's.
func (s *Store) taker(host string) string { return host + " " + s.self }

// anyDue spares an idle host the write lock, and sees to it that the outbox is woken when the next post's time comes.
func (s *Store) anyDue(ctx context.Context, connections []string) (some bool, err error) {
	now := s.now()
	query, args := dueQuery("1", connections, now)
	err = s.r.QueryRowContext(ctx, `SELECT EXISTS (`+query+`)`, args...).Scan(&some)
	if err != nil {
		return false, err
	}
	var next int64
	err = s.r.QueryRowContext(ctx, `SELECT coalesce(min(max(next_at, taken_until)), 0) FROM posts
		WHERE state = 'pending' AND max(next_at, taken_until) > ?`, nanos(now)).Scan(&next)
	if next > 0 {
		s.news.outboxAt(fromNanos(next))
	}
	return some, err
}

func dueQuery(columns string, connections []string, now time.Time) (string, []any) {
	args := []any{nanos(now), nanos(now)}
	for _, c := range connections {
		args = append(args, c)
	}
	return `SELECT ` + columns + ` FROM posts p WHERE p.state = 'pending' AND p.next_at <= ? AND p.taken_until <= ?
		AND p.connection IN (?` + strings.Repeat(",?", len(connections)-1) + `)
		AND NOT EXISTS (SELECT 1 FROM posts b WHERE b.state = 'pending' AND b.place = p.place AND b.seq < p.seq)
		AND (p.edits = '' OR EXISTS (SELECT 1 FROM posts e WHERE e.key = p.edits AND e.state = 'sent'))`, args
}

// Sent stores the platform's reference; whatever waited for the post becomes due.
func (s *Store) Sent(ctx context.Context, key string, ref chat.Ref) error {
	doc, err := json.Marshal(ref)
	if err != nil {
		return fmt.Errorf("store sent post: %w", err)
	}
	return s.settlePost(ctx, "store sent post", key, func(tx *txn) error {
		return tx.exec(`UPDATE posts SET state = 'sent', ref = ?, uncertain = 0, taken_until = 0, cause = '' WHERE key = ?`, doc, key)
	})
}

// Delay schedules another try of a pending post.
func (s *Store) Delay(ctx context.Context, key string, until time.Time, cause string, uncertain bool) error {
	s.news.outboxAt(until)
	return s.settlePost(ctx, "delay post", key, func(tx *txn) error {
		return tx.exec(`UPDATE posts SET next_at = ?, cause = ?, uncertain = ?, taken_until = 0 WHERE key = ? AND state = 'pending'`,
			nanos(until), cause, uncertain, key)
	})
}

// Dead gives up on a pending post, and on the edits that wait for it.
func (s *Store) Dead(ctx context.Context, key string, cause string) error {
	return s.settlePost(ctx, "give up post", key, func(tx *txn) error {
		return tx.exec(`WITH RECURSIVE lost(key) AS (
				SELECT key FROM posts WHERE key = ?1 AND state = 'pending'
				UNION SELECT p.key FROM posts p JOIN lost ON p.edits = lost.key WHERE p.state = 'pending')
			UPDATE posts SET state = 'dead', taken_until = 0,
				cause = CASE key WHEN ?1 THEN ?2 ELSE 'the post that it edits was given up: ' || ?2 END
			WHERE key IN (SELECT key FROM lost)`, key, cause)
	})
}

// settlePost runs change on a known post and wakes the outbox, because the next post of the place may be due.
func (s *Store) settlePost(ctx context.Context, action, key string, change func(*txn) error) error {
	return s.write(ctx, action, func(tx *txn) error {
		var taskID string
		err := tx.row(`SELECT task_id FROM posts WHERE key = ?`, key).Scan(&taskID)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("post %s: %w", key, flow.ErrUnknown)
		}
		if err != nil {
			return err
		}
		tx.posts = true
		if taskID != "" {
			tx.changed = append(tx.changed, taskID)
		}
		return change(tx)
	})
}

// Woken is signalled when there may be something due. It holds one signal, for one outbox worker.
func (s *Store) Woken() <-chan struct{} { return s.news.outbox }

// Posts lists the posts of a task, or of all when taskID is empty, in the order of their making.
func (s *Store) Posts(ctx context.Context, taskID string) ([]flow.Queued, error) {
	posts, err := collect(ctx, s.r, scanPost, `SELECT `+postColumns+` FROM posts p WHERE ?1 = '' OR p.task_id = ?1 ORDER BY p.seq`, taskID)
	if err != nil {
		return nil, s.reading("list posts", err)
	}
	return posts, nil
}

// Inbox lists steering text that waits, oldest first.
func (s *Store) Inbox(ctx context.Context, taskID string) ([]flow.InboxItem, error) {
	scan := func(scan func(...any) error) (it flow.InboxItem, err error) {
		var at int64
		err = scan(&it.ID, &it.Actor, &it.Text, &at)
		it.At = fromNanos(at)
		return it, err
	}
	items, err := collect(ctx, s.r, scan, `SELECT id, actor, text, at FROM inbox WHERE task_id = ? ORDER BY id`, taskID)
	if err != nil {
		return nil, s.reading("read inbox", err)
	}
	return items, nil
}
