// Package cron is the door of schedules: it hands over one event for each moment that is due.
package cron

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"

	"reasonix/internal/chat"
)

// Schedule is one block of [[schedules]].
type Schedule struct {
	Name     string `toml:"name"`
	Cron     string `toml:"cron"`
	Timezone string `toml:"timezone"` // IANA name; empty: UTC
	Route    string `toml:"route"`
	Prompt   string `toml:"prompt"`
	Overlap  string `toml:"overlap"`  // skip (default) or allow
	CatchUp  string `toml:"catch_up"` // none (default), one or all: what becomes of moments that passed while the host was down
}

// Slots remembers how far each schedule came; the store implements it. Advance never goes back.
type Slots interface {
	LastSlot(ctx context.Context, schedule string) (at time.Time, known bool, err error)
	AdvanceSlot(ctx context.Context, schedule string, at time.Time) error
}

// Clock is the time; tests bring their own.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// SystemClock is the host's clock.
type SystemClock struct{}

// Now returns the time.
func (SystemClock) Now() time.Time { return time.Now() }

// After fires once after d.
func (SystemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// What becomes of missed moments.
const (
	CatchUpNone = "none"
	CatchUpOne  = "one"
	CatchUpAll  = "all"
)

const (
	connection = "schedule"
	maxWait    = time.Minute // the wall clock is looked at again at least this often
	asleep     = 3 * maxWait // a longer gap between two looks means that the host slept
	grace      = 2 * maxWait // a moment is missed when it is older than this: a quick restart misses nothing
	maxCatchUp = 24          // moments made up for by catch_up = all
)

// Door emits the slots of all schedules.
type Door struct {
	schedules []*entry
	slots     Slots
	clock     Clock

	mu sync.Mutex // guards the notes of the entries
}

type entry struct {
	Schedule
	times *Times
	note  string // for doctor: the last trouble
	// Only Run's goroutine touches these.
	awake  time.Time // every moment since then is emitted; it moves on when a round went well
	looked time.Time // the last round, well or not
}

var nameShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// New checks every schedule and names all that is wrong.
func New(schedules []Schedule, slots Slots, clock Clock) (*Door, error) {
	d := &Door{slots: slots, clock: clock}
	seen := map[string]bool{}
	var errs []error
	for i, s := range schedules {
		e, err := newEntry(s)
		if err == nil && seen[s.Name] {
			err = errors.New("the name is used twice")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("schedule %d (%q): %w", i+1, s.Name, err))
			continue
		}
		seen[s.Name] = true
		d.schedules = append(d.schedules, e)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return d, nil
}

func newEntry(s Schedule) (*entry, error) {
	if s.Overlap == "" {
		s.Overlap = chat.OverlapSkip
	}
	if s.CatchUp == "" {
		s.CatchUp = CatchUpNone
	}
	switch {
	case !nameShape.MatchString(s.Name):
		return nil, errors.New("name is missing or not made of letters, digits, dot, dash and underscore")
	case s.Route == "":
		return nil, errors.New("route is missing")
	case s.Prompt == "":
		return nil, errors.New("prompt is missing")
	case s.Overlap != chat.OverlapSkip && s.Overlap != chat.OverlapAllow:
		return nil, fmt.Errorf("overlap is %q, want skip or allow", s.Overlap)
	case s.CatchUp != CatchUpNone && s.CatchUp != CatchUpOne && s.CatchUp != CatchUpAll:
		return nil, fmt.Errorf("catch_up is %q, want none, one or all", s.CatchUp)
	}
	times, err := Parse(s.Cron, s.Timezone)
	if err != nil {
		return nil, err
	}
	return &entry{Schedule: s, times: times}, nil
}

// Run emits slots until ctx ends. A slot that the sink did not take is tried again until it is taken.
func (d *Door) Run(ctx context.Context, h chat.Host) error {
	if len(d.schedules) == 0 {
		<-ctx.Done()
		return nil
	}
	for {
		now := d.clock.Now().UTC()
		wait := maxWait
		for _, e := range d.schedules {
			if err := d.round(ctx, h, e, now); err != nil && ctx.Err() == nil {
				h.Log.Error("schedule could not start its run; it is tried again", "schedule", e.Name, "err", err)
				d.setNote(e, "the last run could not be started: "+err.Error())
				wait = min(wait, 5*time.Second)
			}
			if next := e.times.Next(now); !next.IsZero() {
				wait = min(wait, max(next.Sub(now), 0))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-d.clock.After(wait):
		}
	}
}

// round emits what is due of one schedule.
func (d *Door) round(ctx context.Context, h chat.Host, e *entry, now time.Time) error {
	last, known, err := d.slots.LastSlot(ctx, e.Name)
	if err != nil {
		return fmt.Errorf("read the last slot: %w", err)
	}
	slept := !e.looked.IsZero() && now.Sub(e.looked) > asleep
	e.looked = now
	if !known {
		e.awake = now
		return d.slots.AdvanceSlot(ctx, e.Name, now)
	}
	if e.awake.IsZero() || slept {
		e.awake = now.Add(-grace) // what was due before passed while the host was down or slept
	}
	late, onTime := e.due(last, now)
	for _, ev := range append(e.madeUp(late), e.events(onTime)...) {
		ev.event.Received = now
		if _, err := h.Sink.Accept(ctx, ev.event); err != nil {
			return err
		}
		if ev.event.Verb == chat.VerbIgnore {
			h.Log.Warn(ev.event.Text, "schedule", e.Name)
			d.setNote(e, ev.event.Text)
		}
		if err := d.slots.AdvanceSlot(ctx, e.Name, ev.upTo); err != nil {
			return fmt.Errorf("record the slot: %w", err)
		}
	}
	e.awake = now
	return nil
}

// missed are moments that passed unseen: the newest ones, and how many came before them.
type missed struct {
	list   []time.Time
	before int
}

func (m missed) count() int { return len(m.list) + m.before }

// due splits what lies between the last slot and now: what passed while nobody looked, and what is due now.
func (e *entry) due(last, now time.Time) (late missed, onTime []time.Time) {
	list, before := e.times.Between(last, now, maxCatchUp)
	late.before = before
	for _, at := range list {
		if at.Before(e.awake) {
			late.list = append(late.list, at)
		} else {
			onTime = append(onTime, at)
		}
	}
	return late, onTime
}

// emission is an event and how far the schedule came with it.
type emission struct {
	event chat.Event
	upTo  time.Time
}

func (e *entry) events(list []time.Time) []emission {
	var out []emission
	for _, at := range list {
		out = append(out, emission{e.slot(at, 0), at})
	}
	return out
}

// madeUp turns missed moments into runs, as the policy says, and into a visible word about those that are lost.
func (e *entry) madeUp(m missed) []emission {
	if m.count() == 0 {
		return nil
	}
	run := CatchUp(e.Schedule.CatchUp, m.list)
	newest := m.list[len(m.list)-1]
	var out []emission
	if lost := m.count() - len(run); lost > 0 {
		ev := e.slot(newest, m.count())
		ev.Key, ev.Verb = "schedule:"+e.Name+":missed:"+stamp(newest), chat.VerbIgnore
		ev.Text = fmt.Sprintf("schedule %s: %d runs up to %s were missed while the host was down and are not made up for (catch_up = %s)",
			e.Name, lost, stamp(newest), e.Schedule.CatchUp)
		upTo := newest
		if len(run) > 0 {
			upTo = run[0].Add(-time.Second)
		}
		out = append(out, emission{ev, upTo})
	}
	for _, at := range run {
		out = append(out, emission{e.slot(at, m.count()), at})
	}
	return out
}

// CatchUp picks the missed moments that are run after all: none, the newest one, or all that are given.
func CatchUp(policy string, missed []time.Time) []time.Time {
	switch {
	case len(missed) == 0:
		return nil
	case policy == CatchUpAll:
		return missed
	case policy == CatchUpOne:
		return missed[len(missed)-1:]
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// slot is the event of one moment. Every slot is a conversation of its own; its key is the same on every host.
func (e *entry) slot(at time.Time, lost int) chat.Event {
	return chat.Event{
		Key:   "schedule:" + e.Name + ":" + stamp(at),
		On:    "schedule",
		Actor: chat.Actor{Kind: "schedule", ID: e.Name},
		Place: chat.Place{Connection: connection, Kind: "schedule", Channel: e.Name, Thread: stamp(at)},
		Text:  e.Prompt, Route: e.Route,
		Slot: &chat.Slot{Schedule: e.Name, At: at.UTC(), Overlap: e.Overlap, Missed: lost},
	}
}

func (d *Door) setNote(e *entry, note string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.note = note
}

// Check shows when each schedule runs next, and its last trouble.
func (d *Door) Check(context.Context) []chat.HealthItem {
	d.mu.Lock()
	defer d.mu.Unlock()
	var items []chat.HealthItem
	for _, e := range d.schedules {
		item := chat.HealthItem{Name: "schedule " + e.Name, OK: e.note == "", Text: "next run " + stamp(e.times.Next(d.clock.Now()))}
		if e.note != "" {
			item.Text += "; " + e.note
			item.Mend = "run it by hand if the missed work matters, or set catch_up"
		}
		items = append(items, item)
	}
	return items
}

// Handler is nil: nothing calls a schedule.
func (d *Door) Handler(chat.Host) http.Handler { return nil }

// Capabilities are none: a schedule is nobody to talk to.
func (d *Door) Capabilities() chat.Capabilities { return chat.Capabilities{} }

var errNobody = fmt.Errorf("a schedule has nobody to talk to: give its route a place for asks and reports: %w", chat.ErrGone)

// Send always fails with chat.ErrGone.
func (d *Door) Send(context.Context, chat.Post) (chat.Ref, error) { return chat.Ref{}, errNobody }

// Lookup finds nothing.
func (d *Door) Lookup(context.Context, chat.Post) (chat.Ref, bool, error) {
	return chat.Ref{}, false, nil
}

var _ chat.Door = (*Door)(nil)
