package sqlite

import (
	"context"
	"database/sql"
	"sync"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
)

// wakeup tells the job engine of this process that jobs were committed; SQLite itself cannot notify anybody.
type wakeup struct {
	mu sync.Mutex
	ch chan struct{} // closed and replaced by every wake
}

func newWakeup() *wakeup { return &wakeup{ch: make(chan struct{})} }

func (w *wakeup) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.ch)
	w.ch = make(chan struct{})
}

func (w *wakeup) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ch
}

func (w *wakeup) driver(db *sql.DB) riverdriver.Driver[*sql.Tx] {
	return &wakingDriver{Driver: riversqlite.New(db), wakeup: w}
}

// wakingDriver is River's SQLite driver with our signal in the place of its polled notification table.
type wakingDriver struct {
	*riversqlite.Driver
	wakeup *wakeup
}

// SupportsListenNotify is false for sending: commits of our own transactions are the notification.
func (*wakingDriver) SupportsListenNotify() bool { return false }

// GetListener returns a listener that waits for wake.
func (d *wakingDriver) GetListener(*riverdriver.GetListenenerParams) riverdriver.Listener {
	return &wakeListener{wakeup: d.wakeup}
}

// wakeListener hears of every wake since the last one that it heard of.
type wakeListener struct {
	wakeup *wakeup
	heard  <-chan struct{}
}

// insertNotice is River's notification of new jobs in the default queue.
var insertNotice = riverdriver.Notification{Topic: "river_insert", Payload: `{"queue":"` + river.QueueDefault + `"}`}

func (l *wakeListener) Connect(context.Context) error {
	l.heard = l.wakeup.next()
	return nil
}

func (l *wakeListener) WaitForNotification(ctx context.Context) (*riverdriver.Notification, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.heard:
		l.heard = l.wakeup.next()
		notice := insertNotice
		return &notice, nil
	}
}

func (l *wakeListener) Close(context.Context) error            { return nil }
func (l *wakeListener) Listen(context.Context, string) error   { return nil }
func (l *wakeListener) Ping(context.Context) error             { return nil }
func (l *wakeListener) Schema() string                         { return "" }
func (l *wakeListener) SetAfterConnectExec(string)             {}
func (l *wakeListener) Unlisten(context.Context, string) error { return nil }
