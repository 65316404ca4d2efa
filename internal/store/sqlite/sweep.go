package sqlite

import (
	"context"
	"time"
)

// stale is how long a job row may say "running" while its task has no live lease: from then on its worker counts as dead.
const stale = 30 * time.Second

// Sweep queues a job for every task that should run and has none, and clears job rows of dead workers. It returns the ids
// that it woke. One waiting task costs nothing here: only queued and running rows are looked at.
func (s *Store) Sweep(ctx context.Context, now time.Time) ([]string, error) {
	var woken []string
	err := s.write(ctx, "sweep", func(tx *txn) (err error) {
		woken, err = tx.sweep(now)
		return err
	})
	if err != nil {
		return nil, err
	}
	return woken, nil
}

func (tx *txn) sweep(now time.Time) ([]string, error) {
	before := now.Add(-stale).UTC().Format("2006-01-02 15:04:05.000")
	jobless, err := collect(tx.ctx, tx, scanID, `
		SELECT t.id FROM tasks t LEFT JOIN river_job j ON j.id = t.job
		WHERE (t.state = 'queued' OR (t.state = 'running' AND t.lease_until <= ?))
		AND (j.id IS NULL OR j.state NOT IN ('available', 'running')
			OR (j.state = 'running' AND (t.state = 'running' OR julianday(j.attempted_at) < julianday(?))))
		ORDER BY t.created`, nanos(now), before)
	if err != nil {
		return nil, err
	}
	for _, id := range jobless {
		if err := tx.wakeWorker(id); err != nil {
			return nil, err
		}
	}
	return jobless, tx.clearJobs(now, before)
}

// clearJobs ends job rows that nobody works on: of tasks without a live lease, and of tasks whose own job is another one.
func (tx *txn) clearJobs(now time.Time, before string) error {
	return tx.exec(`UPDATE river_job SET state = 'discarded', finalized_at = ? WHERE state = 'running' AND kind = 'attempt'
		AND julianday(attempted_at) < julianday(?)
		AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = json_extract(river_job.args, '$.task_id')
			AND t.state = 'running' AND t.lease_until > ?)`,
		now.UTC().Format("2006-01-02 15:04:05.000"), before, nanos(now))
}

func scanID(scan func(...any) error) (id string, err error) { return id, scan(&id) }
