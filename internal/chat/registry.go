package chat

import (
	"fmt"
	"sort"
	"sync"
)

// Factory builds a door; it refuses a configuration that could not be safe.
type Factory func(DoorConfig) (Door, error)

var (
	mu    sync.RWMutex
	doors = map[string]Factory{}
)

// Register adds an adapter kind; called from init. A second registration of the same kind panics.
func Register(kind string, f Factory) {
	mu.Lock()
	defer mu.Unlock()
	if _, dup := doors[kind]; dup {
		panic("adapter registered twice: " + kind)
	}
	doors[kind] = f
}

// Open builds the door of the given kind.
func Open(kind string, cfg DoorConfig) (Door, error) {
	mu.RLock()
	f, ok := doors[kind]
	mu.RUnlock()
	if !ok {
		return nil, fmt.Errorf("connection %q: unknown kind %q (known: %v)", cfg.Name, kind, Kinds())
	}
	return f(cfg)
}

// Kinds lists the registered adapters, sorted.
func Kinds() []string {
	mu.RLock()
	defer mu.RUnlock()
	names := make([]string, 0, len(doors))
	for k := range doors {
		names = append(names, k)
	}
	sort.Strings(names)
	return names
}
