package budget

import (
	"context"
	"fmt"
	"sync"
	"time"

	"reasonix/internal/provider"
)

// Ledger counts for everybody who shares a set of limits. Both methods are one step each.
type Ledger interface {
	// Hold sets h aside for a call that is about to start. It refuses, with an error that wraps ErrExceeded and names the limit, when what is
	// spent has reached a limit, or when other calls are running and h on top of theirs would pass one. A call alone is let
	// through while anything is left, so that a limit smaller than the estimate can still be used up.
	Hold(ctx context.Context, l Limits, h Spent) error
	// Settle gives back what was held and counts what was spent.
	Settle(ctx context.Context, held, spent Spent) error
}

// Account is a Ledger in memory, for one process. It is safe for concurrent use.
type Account struct {
	mu          sync.Mutex
	spent, held Spent
	calls       int
}

// NewAccount starts with what was spent before, for example by earlier attempts.
func NewAccount(before Spent) *Account { return &Account{spent: before} }

// Hold implements Ledger.
func (a *Account) Hold(_ context.Context, l Limits, h Spent) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if words, ok := Check(l, a.spent); !ok {
		return fmt.Errorf("%w: %s", ErrExceeded, words)
	}
	h.Time = 0 // time passes for all calls together
	if a.calls > 0 {
		if words, ok := fits(l, a.spent.Add(a.held).Add(h)); !ok {
			return fmt.Errorf("%w: %s, with what running calls may use", ErrExceeded, words)
		}
	}
	a.held = a.held.Add(h)
	a.calls++
	return nil
}

// Settle implements Ledger.
func (a *Account) Settle(_ context.Context, held, spent Spent) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if held.Steps > 0 {
		held.Time = 0
		a.held = a.held.Sub(held)
		a.calls--
	}
	a.spent = a.spent.Add(spent)
	return nil
}

// Spent is the sum so far.
func (a *Account) Spent() Spent {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.spent
}

// fits is Check for what may be reached but not passed.
func fits(l Limits, s Spent) (string, bool) {
	return Check(l, Spent{Tokens: s.Tokens - 1, Cost: s.Cost - 1, Steps: s.Steps - 1})
}

// MeterConfig is what a Meter counts with.
type MeterConfig struct {
	Ledger   Ledger // nil: an Account of its own, starting at zero
	Limits   Limits
	Price    Price
	Estimate Spent            // tokens and cost of one call, before the first is known
	Now      func() time.Time // nil: running time is not counted
}

// Meter counts the model calls of one attempt against limits that other attempts may share: it holds an estimate before a call and settles
// the real usage after it. It is safe for concurrent use and has the shape of agent.Meter.
type Meter struct {
	c        MeterConfig
	mu       sync.Mutex
	estimate Spent
	held     []Spent
	spent    Spent
	at       time.Time
	failed   error
}

// NewMeter starts counting; running time counts from here.
func NewMeter(c MeterConfig) *Meter {
	if c.Ledger == nil {
		c.Ledger = NewAccount(Spent{})
	}
	m := &Meter{c: c, estimate: Spent{Tokens: c.Estimate.Tokens, Cost: c.Estimate.Cost, Steps: 1}}
	if c.Now != nil {
		m.at = c.Now()
	}
	return m
}

// Reserve returns an error that names the limit when the next call may not be made, and the error of an earlier Settle that
// could not be stored: nothing runs uncounted.
func (m *Meter) Reserve(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed != nil {
		return fmt.Errorf("reserve budget: %w", m.failed)
	}
	if passed := m.passed(); passed > 0 {
		if err := m.c.Ledger.Settle(ctx, Spent{}, Spent{Time: passed}); err != nil {
			return fmt.Errorf("reserve budget: %w", err)
		}
		m.count(Spent{Time: passed})
	}
	if err := m.c.Ledger.Hold(ctx, m.c.Limits, m.estimate); err != nil {
		return err
	}
	m.held = append(m.held, m.estimate)
	return nil
}

// Settle counts the call that was reserved first. Call it once for each Reserve, after a failed call too.
func (m *Meter) Settle(ctx context.Context, u provider.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.held) == 0 {
		return
	}
	spent := Spent{Tokens: sum(max(u.Input, 0), max(u.Output, 0)), Cost: m.c.Price.Cost(u), Steps: 1, Time: m.passed()}
	if err := m.c.Ledger.Settle(ctx, m.held[0], spent); err != nil {
		m.failed = err
		return
	}
	m.held = m.held[1:]
	m.count(spent)
	m.estimate.Tokens = max(m.estimate.Tokens, spent.Tokens) // a conversation only grows
	m.estimate.Cost = max(m.estimate.Cost, spent.Cost)
}

// Spent is what this meter counted, for the progress of the attempt; running time since the last call is included.
func (m *Meter) Spent() Spent {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spent.Add(Spent{Time: m.passed()})
}

// passed is the running time that is not counted yet.
func (m *Meter) passed() time.Duration {
	if m.c.Now == nil {
		return 0
	}
	return m.c.Now().Sub(m.at)
}

func (m *Meter) count(s Spent) {
	m.spent = m.spent.Add(s)
	m.at = m.at.Add(s.Time)
}
