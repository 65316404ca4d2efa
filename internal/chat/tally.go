package chat

import (
	"fmt"
	"sort"
	"strings"
	"sync"
)

// tallyReasons bounds how many different reasons a Tally tells apart; further ones count as "other".
const tallyReasons = 64

// Tally counts what a door knowingly ignored, by reason. The zero value is ready; it is safe for concurrent use.
type Tally struct {
	mu     sync.Mutex
	counts map[string]uint64
}

// Count adds one for the reason and returns how often it was seen so far.
func (t *Tally) Count(reason string) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]uint64{}
	}
	if _, known := t.counts[reason]; !known && len(t.counts) >= tallyReasons {
		reason = "other"
	}
	t.counts[reason]++
	return t.counts[reason]
}

// Of returns the count of one reason.
func (t *Tally) Of(reason string) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[reason]
}

// String lists the reasons with their counts, sorted; "nothing" when there is none.
func (t *Tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.counts) == 0 {
		return "nothing"
	}
	lines := make([]string, 0, len(t.counts))
	for reason, n := range t.counts {
		lines = append(lines, fmt.Sprintf("%s: %d", reason, n))
	}
	sort.Strings(lines)
	return strings.Join(lines, ", ")
}
