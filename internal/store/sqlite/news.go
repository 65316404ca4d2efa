package sqlite

import (
	"context"
	"sync"
	"time"
)

// news tells what changed: who watches a task, and who sends posts.
type news struct {
	outbox chan struct{} // holds one signal

	mu     sync.Mutex
	tasks  map[string]chan struct{}
	nextAt time.Time // when a delayed post is due, zero for none
}

func newNews() *news {
	return &news{outbox: make(chan struct{}, 1), tasks: map[string]chan struct{}{}}
}

func (n *news) wakeOutbox() {
	select {
	case n.outbox <- struct{}{}:
	default: // a signal waits already
	}
}

// outboxAt remembers the nearest time at which the outbox should look again.
func (n *news) outboxAt(t time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.nextAt.IsZero() || t.Before(n.nextAt) {
		n.nextAt = t
	}
}

// reached tells, once, that the time of outboxAt has come.
func (n *news) reached(now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.nextAt.IsZero() || now.Before(n.nextAt) {
		return false
	}
	n.nextAt = time.Time{}
	return true
}

// changed returns the channel that the next change of a task closes. An ended watch costs one channel until that change.
func (n *news) changed(taskID string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	ch, ok := n.tasks[taskID]
	if !ok {
		ch = make(chan struct{})
		n.tasks[taskID] = ch
	}
	return ch
}

func (n *news) taskChanged(taskID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ch, ok := n.tasks[taskID]; ok {
		close(ch)
		delete(n.tasks, taskID)
	}
}

func (n *news) allChanged() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, ch := range n.tasks {
		close(ch)
	}
	clear(n.tasks)
}

// Changed is closed at the next change of a task, its asks, posts or transcript, made by this process or, a moment later, by
// another one.
func (s *Store) Changed(taskID string) <-chan struct{} { return s.news.changed(taskID) }

// watch looks for commits of other processes, which cannot signal us, and for delayed posts.
func (s *Store) watch(ctx context.Context, seen version) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if s.news.reached(s.now()) {
			s.news.wakeOutbox()
		}
		now, err := s.othersVersion(ctx)
		if err != nil || now == seen { // a failing database fails loudly elsewhere
			continue
		}
		seen = now
		s.jobs.wake()
		s.news.wakeOutbox()
		s.news.allChanged()
	}
}

// version is SQLite's data_version, which means something only beside others of the same connection.
type version struct {
	conn any
	n    int64
}

// othersVersion changes when another connection commits; asked on the one write connection, that is another process. It also
// changes when the pool had to make a new connection: then nobody knows, and a needless look harms nothing.
func (s *Store) othersVersion(ctx context.Context) (v version, err error) {
	conn, err := s.w.Conn(ctx)
	if err != nil {
		return v, err
	}
	defer conn.Close() // back into the pool
	if err := conn.Raw(func(c any) error { v.conn = c; return nil }); err != nil {
		return v, err
	}
	return v, conn.QueryRowContext(ctx, `PRAGMA data_version`).Scan(&v.n)
}
