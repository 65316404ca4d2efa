package slack

import "sync"

const loopThreads = 4096 // threads remembered; past that the guard starts anew

// loopGuard limits how many messages of other bots a thread may hold between two messages by people, so that two bots
// cannot talk to each other for ever.
type loopGuard struct {
	mu   sync.Mutex
	seen map[string]map[string]bool // thread → timestamps of bot messages since a person spoke
}

// person resets the thread.
func (g *loopGuard) person(thread string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.seen, thread)
}

// bot tells whether one more message of another bot may be heard; the same message seen again counts once.
func (g *loopGuard) bot(thread, ts string, limit int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen[thread][ts] {
		return true
	}
	if len(g.seen[thread]) >= limit {
		return false
	}
	if g.seen == nil || len(g.seen) >= loopThreads {
		g.seen = map[string]map[string]bool{}
	}
	if g.seen[thread] == nil {
		g.seen[thread] = map[string]bool{}
	}
	g.seen[thread][ts] = true
	return true
}
