package flow

import (
	"context"
	"fmt"
	"sync"
	"time"

	"reasonix/internal/budget"
	"reasonix/internal/provider"
)

// meter holds an attempt to the limits of its task, counting what earlier attempts spent.
type meter struct {
	mu      sync.Mutex
	limits  budget.Limits
	spent   budget.Spent
	price   Pricer
	started time.Time
	now     func() time.Time
}

// Reserve refuses the next model call when a limit has been reached.
func (m *meter) Reserve(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.spent
	s.Time += m.now().Sub(m.started)
	if limit, over := budget.Reached(m.limits, s); over {
		return fmt.Errorf("%s", limit)
	}
	return nil
}

// Settle counts a call that was made.
func (m *meter) Settle(_ context.Context, u provider.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	cost, _ := m.price(u.Input, u.CacheRead, u.Output)
	m.spent.Tokens += u.Total()
	m.spent.Cost += cost
	m.spent.Steps++
}
