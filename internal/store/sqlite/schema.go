package sqlite

import (
	"context"
	"embed"
	"fmt"

	"github.com/riverqueue/river/rivermigrate"
	"github.com/rogpeppe/go-internal/lockedfile"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// applicationID marks the file as ours (SQLite's header field for that purpose): "RSNX".
const applicationID = 0x52534e58

// migrations are the steps of the schema; the file's user_version counts those that were made. Steps are never changed.
var migrations = []string{
	"migrations/0001_state.sql",
	"migrations/0002_slots.sql",
	"migrations/0003_days.sql",
	"migrations/0004_takers.sql",
}

// migrate makes the first connection and brings the schema up to date, both under a file lock: two first starts at once would
// break the steps, and SQLite does not wait for its turn when a new file is switched to WAL.
func (s *Store) migrate(ctx context.Context) error {
	unlock, err := lockedfile.MutexAt(s.path + ".lock").Lock()
	if err != nil {
		return fmt.Errorf("lock for the schema: %w", err)
	}
	defer unlock()
	current, err := s.version(ctx)
	if err != nil || current == len(migrations) {
		return err
	}
	if err := s.migrateJobs(ctx); err != nil {
		return err
	}
	for i := current; i < len(migrations); i++ {
		if err := s.step(ctx, i); err != nil {
			return fmt.Errorf("schema step %s: %w", migrations[i], err)
		}
	}
	return nil
}

// version reads which steps were made, and refuses a file that is not ours.
func (s *Store) version(ctx context.Context) (int, error) {
	var id, version, tables int
	err := s.w.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id),
		(SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)`).Scan(&id, &version, &tables)
	if err != nil {
		return 0, err
	}
	if version > len(migrations) && id == applicationID {
		return 0, fmt.Errorf("its schema has version %d, this program knows up to %d: update reasonix", version, len(migrations))
	}
	if id == applicationID {
		return version, nil
	}
	var ours int // a first start that died after the job tables leaves no mark yet
	err = s.w.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE tbl_name GLOB 'river_*' OR name GLOB 'sqlite_*'`).Scan(&ours)
	if err != nil {
		return 0, err
	}
	if id != 0 || tables > ours {
		return 0, fmt.Errorf("it is the database of another program: name another file")
	}
	return 0, nil
}

func (s *Store) migrateJobs(ctx context.Context) error {
	m, err := rivermigrate.New(s.jobs.driver(s.w), &rivermigrate.Config{Logger: s.riverLog()})
	if err != nil {
		return err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("schema of the jobs: %w", err)
	}
	return nil
}

func (s *Store) step(ctx context.Context, i int) error {
	script, err := migrationFiles.ReadFile(migrations[i])
	if err != nil {
		return err
	}
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // no effect after the commit
	if err := tx.exec(string(script)); err != nil {
		return err
	}
	if err := tx.exec(fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
		return err
	}
	if err := tx.exec(fmt.Sprintf("PRAGMA user_version = %d", i+1)); err != nil {
		return err
	}
	return tx.Commit()
}
