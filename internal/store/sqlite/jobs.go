package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/riverqueue/river"

	"reasonix/internal/filelock"
	"reasonix/internal/flow"
	"reasonix/internal/task"
)

const (
	fetchCooldown = 2 * time.Millisecond
	fetchPoll     = time.Second // the net under the signals
	keepJobs      = time.Hour   // how long worked-off job rows stay for people who look
)

// attemptArgs is a job: a wake-up call for one task.
type attemptArgs struct {
	TaskID string `json:"task_id"`
}

// Kind names the job in the engine's table.
func (attemptArgs) Kind() string { return "attempt" }

type attemptWorker struct {
	river.WorkerDefaults[attemptArgs]
	s       *Store
	attempt func(ctx context.Context, taskID string) error
}

// Timeout lets attempts run as long as their lease is renewed.
func (*attemptWorker) Timeout(*river.Job[attemptArgs]) time.Duration { return -1 }

// Work makes one attempt. It never fails towards the engine: the task row is the truth, and the sweeper looks after it.
func (w *attemptWorker) Work(ctx context.Context, job *river.Job[attemptArgs]) error {
	id := job.Args.TaskID
	due, err := w.s.isDue(ctx, id)
	if err != nil {
		w.s.log.Error("a job could not look at its task", "task", id, "err", err)
		return nil
	}
	if !due {
		return nil // doubled or late: somebody else did it
	}
	defer func() {
		if p := recover(); p != nil {
			w.s.log.Error("an attempt panicked", "task", id, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	err = w.attempt(ctx, id)
	switch {
	case err == nil:
	case errors.Is(err, flow.ErrLeased), errors.Is(err, flow.ErrState): // a doubled job lost the race for the lease
		w.s.log.Debug("a job found its task taken", "task", id, "err", err)
	default:
		w.s.log.Error("an attempt failed", "task", id, "err", err)
	}
	return nil
}

// isDue tells whether a task waits for a worker.
func (s *Store) isDue(ctx context.Context, taskID string) (due bool, err error) {
	err = s.r.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ? AND (state = ? OR (state = ? AND lease_until <= ?)))`,
		taskID, task.Queued, task.Running, nanos(s.now())).Scan(&due)
	return due, err
}

// Work calls attempt for each job. When ctx ends no further job is taken and Work waits for the attempts that run; their
// context does not end with ctx, because draining means that they come to a turn boundary. One process works as one host:
// a second of the same name waits until the first has ended.
func (s *Store) Work(ctx context.Context, host string, max int, attempt func(ctx context.Context, taskID string) error) error {
	if host == "" {
		host = s.host
	}
	if host == "" || max < 1 {
		return fmt.Errorf("work: a host name and at least one worker are needed, got %q and %d", host, max)
	}
	unlock, err := s.becomeHost(ctx, host)
	if err != nil {
		return endedOr(ctx, fmt.Errorf("work as %s: %w", host, err))
	}
	defer unlock()
	if err := s.takeBack(ctx, host); err != nil {
		return endedOr(ctx, err)
	}
	client, err := s.newWorker(host, max, attempt)
	if err != nil {
		return fmt.Errorf("work as %s: %w", host, err)
	}
	running := context.WithoutCancel(ctx)
	if err := client.Start(running); err != nil {
		return fmt.Errorf("work as %s: %w", host, s.mend(err))
	}
	<-ctx.Done()
	return client.Stop(running)
}

// endedOr is nil when ctx ended: then the start was not wanted any more, and nothing failed.
func endedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (s *Store) newWorker(host string, max int, attempt func(ctx context.Context, taskID string) error) (*river.Client[*sql.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &attemptWorker{s: s, attempt: attempt})
	return river.NewClient(s.jobs.driver(s.w), &river.Config{
		ID:                          host,
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: max}},
		Workers:                     workers,
		JobTimeout:                  -1,
		MaxAttempts:                 1,
		FetchCooldown:               fetchCooldown,
		FetchPollInterval:           fetchPoll,
		CompletedJobRetentionPeriod: keepJobs,
		CancelledJobRetentionPeriod: keepJobs,
		DiscardedJobRetentionPeriod: keepJobs,
		Logger:                      s.riverLog(),
	})
}

// becomeHost takes the file lock that makes this process the only one of its host name.
func (s *Store) becomeHost(ctx context.Context, host string) (unlock func() error, err error) {
	path := s.hostLock(host)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for told := false; ; {
		unlock, err := filelock.Try(path)
		if err == nil || !errors.Is(err, filelock.ErrLocked) {
			return unlock, err
		}
		if !told {
			told = true
			s.log.Warn("another process works as this host on the same state; waiting for its end", "host", host)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

// takeBack frees what an earlier process of this host left when it died: the lock proves that it is gone.
func (s *Store) takeBack(ctx context.Context, host string) error {
	return s.write(ctx, "take back the work of "+host, func(tx *txn) error {
		err := tx.exec(`UPDATE river_job SET state = 'available' WHERE state = 'running' AND json_extract(attempted_by, '$[#-1]') = ?`, host)
		if err != nil {
			return err
		}
		err = tx.exec(`UPDATE tasks SET lease_until = ? WHERE state = 'running' AND host = ? AND lease_until > ?`,
			nanos(tx.now), host, nanos(tx.now))
		if err != nil {
			return err
		}
		// What an earlier process took is of unknown fate: it is due now, and looked up before it is made again.
		err = tx.exec(`UPDATE posts SET taken_until = ?1 WHERE state = 'pending' AND taken_until > ?1 AND taken_by <> ?2 AND substr(taken_by, 1, length(?3)) = ?3`,
			nanos(tx.now), s.taker(host), host+" ")
		if err != nil {
			return err
		}
		tx.posts = true
		_, err = tx.sweep(tx.now)
		return err
	})
}

// riverLog passes on what the engine warns of; its chatter stays away.
func (s *Store) riverLog() *slog.Logger {
	return slog.New(warnings{s.log.Handler()}).With("part", "jobs")
}

// warnings is a handler for warnings and errors only.
type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

func (h warnings) WithAttrs(a []slog.Attr) slog.Handler { return warnings{h.Handler.WithAttrs(a)} }
func (h warnings) WithGroup(name string) slog.Handler   { return warnings{h.Handler.WithGroup(name)} }

// hostLock is the file that a working host keeps locked.
func (s *Store) hostLock(host string) string {
	return s.path + ".host-" + url.PathEscape(host) + ".lock"
}
