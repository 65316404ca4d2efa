package agent

import (
	"encoding/json"
	"sync"

	"reasonix/internal/session"
)

// Notebook takes host facts from tools (tool.Env.Note) and keeps them until the results of their calls are appended.
// The zero value is ready; it is safe for concurrent use.
type Notebook struct {
	mu      sync.Mutex
	entries []session.Entry
}

// Note keeps a fact of the given kind.
func (n *Notebook) Note(kind string, data json.RawMessage) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.entries = append(n.entries, session.Entry{Kind: session.KindNote, Name: kind, Data: data})
}

func (n *Notebook) drain() []session.Entry {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.entries
	n.entries = nil
	return out
}
