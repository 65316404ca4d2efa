// Package sqlite keeps the durable state in one SQLite file: tasks, asks, posts, transcripts and the jobs that wake workers.
package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/riverqueue/river"
	_ "modernc.org/sqlite" // the database/sql driver

	"reasonix/internal/flow"
)

// readers is how many reads may run beside the one write connection.
const readers = 4

// watchEvery is how often writes of other processes are looked for.
const watchEvery = 250 * time.Millisecond

// Options of Open; the zero value is fine.
type Options struct {
	Log  *slog.Logger     // default: slog.Default
	Now  func() time.Time // default: time.Now
	Host string           // default for Work when it gets no host name
}

// Store implements flow.Ledger. Any number of processes may open the same file on one machine.
type Store struct {
	path  string
	log   *slog.Logger
	clock func() time.Time
	host  string
	self  string // this process among those that were or are its host
	w, r  *sql.DB
	river *river.Client[*sql.Tx] // inserts only
	jobs  *wakeup
	news  *news

	closing context.CancelFunc
	watched sync.WaitGroup
}

var _ flow.Ledger = (*Store)(nil)

// Open opens or makes the state file at path, readable by its owner alone, and brings its schema up to date. Two first starts
// at once both succeed. A file that is not a state database, or one of a newer program, is refused by name.
func Open(ctx context.Context, path string, opt Options) (*Store, error) {
	abs, err := prepareFile(path)
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	s := &Store{path: abs, log: opt.Log, clock: opt.Now, host: opt.Host, self: rand.Text(), jobs: newWakeup(), news: newNews()}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	if err := s.connect(ctx); err != nil {
		s.closePools()
		return nil, fmt.Errorf("open state %s: %w", path, s.mend(err))
	}
	seen, err := s.othersVersion(ctx)
	if err != nil {
		s.closePools()
		return nil, fmt.Errorf("open state %s: %w", path, s.mend(err))
	}
	watchCtx, stop := context.WithCancel(context.Background())
	s.closing = stop
	s.watched.Go(func() { s.watch(watchCtx, seen) })
	s.news.wakeOutbox()
	return s, nil
}

// prepareFile makes the folder and the file with narrow permissions; SQLite gives its side files the same.
func prepareFile(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(abs), 0o700); err != nil {
		return "", fmt.Errorf("make the folder of the state file: %w", err)
	}
	f, err := os.OpenFile(abs, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", fmt.Errorf("the state file must be writable by this user: %w", err)
	}
	return abs, f.Close()
}

func (s *Store) connect(ctx context.Context) error {
	var err error
	if s.w, err = sql.Open("sqlite", dsn(s.path, false)); err != nil {
		return err
	}
	s.w.SetMaxOpenConns(1) // SQLite has one writer; a second connection would only wait
	if s.r, err = sql.Open("sqlite", dsn(s.path, true)); err != nil {
		return err
	}
	s.r.SetMaxOpenConns(readers)
	s.r.SetMaxIdleConns(readers)
	if err := s.migrate(ctx); err != nil {
		return err
	}
	s.river, err = river.NewClient(s.jobs.driver(s.w), &river.Config{Logger: s.riverLog(), SkipUnknownJobCheck: true})
	return err
}

// dsn names the file with the settings without which concurrent writes fail: WAL, a patient busy handler, and write
// transactions that take the lock at their start.
func dsn(path string, readOnly bool) string {
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(NORMAL)", "foreign_keys(1)",
	}}
	if readOnly { // WAL is a property of the file, which the writer has set by then
		q = url.Values{"_txlock": {"deferred"}, "_pragma": {"busy_timeout(10000)", "query_only(1)"}}
	}
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + q.Encode()
}

// Close ends the store's goroutine and its connections. Work must have returned.
func (s *Store) Close() error {
	s.closing()
	s.watched.Wait()
	return s.closePools()
}

func (s *Store) closePools() error {
	var errs []error
	for _, db := range []*sql.DB{s.r, s.w} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

func (s *Store) now() time.Time { return s.clock().Round(0).UTC() }

// nanos is how times are stored; the zero time is 0.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
