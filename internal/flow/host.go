package flow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"reasonix/internal/budget"
	"reasonix/internal/chat"
	"reasonix/internal/redact"
	"reasonix/internal/task"
)

// Options are the values a Host is built from; cli fills them from the configuration.
type Options struct {
	ID       string // this host's name in leases
	Ledger   Ledger
	Workshop Workshop
	Doors    map[string]chat.Door // by connection name
	Routes   []task.Route
	People   task.People
	Redactor *redact.Redactor
	Log      *slog.Logger
	MaxTasks int           // running at once on this host; 0 means 4
	LeaseTTL time.Duration // 0 means 30 s; renewed at a third of it
	Sweep    time.Duration // 0 means 10 s
	Now      func() time.Time
	Checks   func(context.Context) []chat.HealthItem // health besides the doors' own
	// DayLimits are the tokens and the cost that all tasks together may use on one day (UTC); zero: no limit.
	DayLimits budget.Limits
	Notice    string   // shown by surfaces
	Box       string   // the kind of box, where it is not the full one: shown beside each task
	Needed    []string // connections without which the host stops
}

// Host runs the story: it takes events, works on tasks, delivers posts and lets time pass.
type Host struct {
	Options
	feed     *feed
	draining atomic.Bool
	attempts sync.WaitGroup // running on this host
}

// New builds a host; nothing runs before Run.
func New(o Options) *Host {
	if o.MaxTasks <= 0 {
		o.MaxTasks = 4
	}
	if o.LeaseTTL <= 0 {
		o.LeaseTTL = 30 * time.Second
	}
	if o.Sweep <= 0 {
		o.Sweep = 10 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Host{Options: o, feed: newFeed()}
}

// Drain asks every attempt to stop at its next turn boundary.
func (h *Host) Drain() { h.draining.Store(true) }

// Run works until ctx ends. Attempts then stop at once and are taken up again by the next host that runs.
func (h *Host) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return quiet(ctx, h.Ledger.Work(ctx, h.ID, h.MaxTasks, func(job context.Context, taskID string) error {
			// The engine waits for running jobs without ending them; a host that goes down ends them itself.
			job, cancel := context.WithCancel(job)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			return h.attempt(job, taskID)
		}))
	})
	g.Go(func() error { return h.every(ctx, h.Sweep, h.sweep) })
	g.Go(func() error { return h.every(ctx, h.Sweep, h.expire) })
	g.Go(func() error { return h.deliver(ctx) })
	for name, door := range h.Doors {
		g.Go(func() error { return h.runDoor(ctx, name, door) })
	}
	return g.Wait()
}

// runDoor keeps a door open. One that cannot go on must not take the others with it, unless the host is nothing without it.
func (h *Host) runDoor(ctx context.Context, name string, door chat.Door) error {
	err := door.Run(ctx, h.DoorHost())
	if err == nil || ctx.Err() != nil {
		return nil
	}
	if slices.Contains(h.Needed, name) {
		return fmt.Errorf("connection %s: %w", name, err)
	}
	h.Log.Error("door stopped; the others go on", "connection", name, "error", err)
	return nil
}

// DoorHost is what a door gets to work with.
func (h *Host) DoorHost() chat.Host {
	people := make([]chat.Person, len(h.People))
	for i, p := range h.People {
		people[i] = chat.Person{Name: p.Name, Role: string(p.Role), Identities: p.Identities}
	}
	return chat.Host{Sink: h, Desk: h, Log: h.Log, People: people, Notice: h.Notice}
}

func (h *Host) sweep(ctx context.Context) error {
	woken, err := h.Ledger.Sweep(ctx, h.Now())
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	if len(woken) > 0 {
		h.Log.Info("sweeper woke tasks", "tasks", woken)
	}
	return nil
}

// every calls f at once and then periodically; an error is logged, because the next round mends what can be mended.
func (h *Host) every(ctx context.Context, d time.Duration, f func(context.Context) error) error {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		if err := f(ctx); err != nil && ctx.Err() == nil {
			h.Log.Warn("periodic work failed; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

func quiet(ctx context.Context, err error) error {
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return nil
	}
	return err
}
