package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/riverqueue/river"

	"reasonix/internal/chat"
	"reasonix/internal/flow"
	"reasonix/internal/task"
)

const taskColumns = `id, conversation, state, session_id, host, fence, lease_until, cancel_by, created, updated, ended, doc`

// scanTask reads a row; the columns win over the document.
func scanTask(scan func(...any) error) (task.Task, error) {
	var t, col task.Task
	var lease, created, updated, ended int64
	var doc []byte
	err := scan(&col.ID, &col.Conversation, &col.State, &col.SessionID, &col.Host, &col.Fence, &lease, &col.CancelBy,
		&created, &updated, &ended, &doc)
	if err != nil {
		return t, err
	}
	if err := json.Unmarshal(doc, &t); err != nil {
		return t, fmt.Errorf("read task %s: %w", col.ID, err)
	}
	t.ID, t.Conversation, t.State, t.SessionID = col.ID, col.Conversation, col.State, col.SessionID
	t.Host, t.Fence, t.CancelBy = col.Host, col.Fence, col.CancelBy
	t.LeaseUntil, t.Created, t.Updated, t.Ended = fromNanos(lease), fromNanos(created), fromNanos(updated), fromNanos(ended)
	return t, nil
}

func loadTask(ctx context.Context, q querier, where string, args ...any) (task.Task, error) {
	t, err := scanTask(q.QueryRowContext(ctx, `SELECT `+taskColumns+` FROM tasks WHERE `+where, args...).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return t, flow.ErrUnknown
	}
	return t, err
}

func (tx *txn) task(id string) (task.Task, error) {
	t, err := loadTask(tx.ctx, tx, `id = ?`, id)
	if errors.Is(err, flow.ErrUnknown) {
		return t, fmt.Errorf("task %s: %w", id, err)
	}
	return t, err
}

// held loads the task of a live lease; everybody else is fenced.
func (tx *txn) held(h flow.Held) (task.Task, error) {
	t, err := tx.task(h.TaskID)
	if err != nil {
		return t, err
	}
	if t.State != task.Running || t.Fence != h.Fence || !t.LeaseUntil.After(tx.now) {
		return task.Task{}, flow.ErrFenced
	}
	return t, nil
}

// move changes the state of a task in memory, along the drawn transitions only. Whoever does not run holds no lease.
func move(t *task.Task, to task.State) error {
	if err := task.Transition(t.State, to); err != nil {
		return fmt.Errorf("%w: %w", flow.ErrState, err)
	}
	t.State = to
	if to != task.Running {
		t.Host, t.LeaseUntil = "", fromNanos(0)
	}
	if to != task.Parked {
		t.Reason = ""
	}
	return nil
}

// end moves a task to an end and closes its asks.
func (tx *txn) end(t *task.Task, to task.State) error {
	if err := move(t, to); err != nil {
		return err
	}
	t.Ended = tx.now
	return tx.closeAsks(t.ID)
}

// queue moves a task to queued and wakes a worker.
func (tx *txn) queue(t *task.Task) error {
	if err := move(t, task.Queued); err != nil {
		return err
	}
	return tx.wakeWorker(t.ID)
}

// wakeWorker inserts a job, which commits with the transaction, and remembers it as the task's own.
func (tx *txn) wakeWorker(taskID string) error {
	res, err := tx.s.river.InsertTx(tx.ctx, tx.Tx, attemptArgs{TaskID: taskID}, &river.InsertOpts{MaxAttempts: 1})
	if err != nil {
		return fmt.Errorf("queue a job: %w", err)
	}
	tx.jobs = true
	return tx.exec(`UPDATE tasks SET job = ? WHERE id = ?`, res.Job.ID, taskID)
}

func (tx *txn) insertTask(t task.Task) error {
	doc, err := json.Marshal(t)
	if err != nil {
		return err
	}
	tx.changed = append(tx.changed, t.ID)
	return tx.exec(`INSERT INTO tasks (`+taskColumns+`) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)`, t.ID, t.Conversation, t.State, t.SessionID,
		t.Host, t.Fence, nanos(t.LeaseUntil), t.CancelBy, nanos(t.Created), nanos(t.Updated), nanos(t.Ended), doc)
}

// storeTask writes a task back; conversation and creation never change.
func (tx *txn) storeTask(t *task.Task) error {
	t.Updated = tx.now
	doc, err := json.Marshal(t)
	if err != nil {
		return err
	}
	tx.changed = append(tx.changed, t.ID)
	return tx.exec(`UPDATE tasks SET state=?, session_id=?, host=?, fence=?, lease_until=?, cancel_by=?, updated=?, ended=?, doc=? WHERE id=?`,
		t.State, t.SessionID, t.Host, t.Fence, nanos(t.LeaseUntil), t.CancelBy, nanos(t.Updated), nanos(t.Ended), doc, t.ID)
}

// alter applies a change by a caller; identity, state and lease are not its to change.
func alter(t *task.Task, change func(*task.Task)) {
	before := *t
	change(t)
	t.ID, t.Conversation, t.State, t.Reason, t.SessionID = before.ID, before.Conversation, before.State, before.Reason, before.SessionID
	t.Host, t.Fence, t.LeaseUntil, t.CancelBy = before.Host, before.Fence, before.LeaseUntil, before.CancelBy
	t.Attempts, t.Created, t.Ended = before.Attempts, before.Created, before.Ended
}

func spend(t *task.Task, p flow.Progress) {
	t.Spent.Tokens += p.Spent.Tokens
	t.Spent.Cost += p.Spent.Cost
	t.Spent.Steps += p.Spent.Steps
	t.Spent.Time += p.Spent.Time
	t.Usage = t.Usage.Add(p.Usage)
}

func (s *Store) reading(action string, err error) error {
	return fmt.Errorf("%s: %w", action, s.mend(err))
}

// Task returns one task.
func (s *Store) Task(ctx context.Context, id string) (task.Task, error) {
	t, err := loadTask(ctx, s.r, `id = ?`, id)
	if err != nil {
		return t, s.reading("read task "+id, err)
	}
	return t, nil
}

// Tasks lists the newest tasks first, 50 unless the filter says otherwise.
func (s *Store) Tasks(ctx context.Context, f chat.TaskFilter) ([]task.Task, error) {
	if f.Limit <= 0 {
		f.Limit = 50
	}
	query, args := `SELECT `+taskColumns+` FROM tasks WHERE true`, []any{}
	if f.Conversation != "" {
		query, args = query+` AND conversation = ?`, append(args, f.Conversation)
	}
	if f.State != "" {
		query, args = query+` AND state = ?`, append(args, f.State)
	}
	tasks, err := collect(ctx, s.r, scanTask, query+` ORDER BY created DESC, rowid DESC LIMIT ?`, append(args, f.Limit)...)
	if err != nil {
		return nil, s.reading("list tasks", err)
	}
	return tasks, nil
}

// Live returns the live task of a conversation.
func (s *Store) Live(ctx context.Context, conversation string) (task.Task, error) {
	t, err := loadTask(ctx, s.r, `conversation = ? AND state IN ('queued','running','parked')`, conversation)
	if err != nil {
		return t, s.reading("find the live task", err)
	}
	return t, nil
}

// Last returns the newest ended task of a conversation.
func (s *Store) Last(ctx context.Context, conversation string) (task.Task, error) {
	t, err := loadTask(ctx, s.r, `conversation = ? AND state NOT IN ('queued','running','parked')
		ORDER BY created DESC, rowid DESC LIMIT 1`, conversation)
	if err != nil {
		return t, s.reading("find the last task", err)
	}
	return t, nil
}
