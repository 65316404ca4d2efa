package cron_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"reasonix/adapters/cron"
	"reasonix/internal/chat"
	"reasonix/internal/chat/chattest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is time that the test moves; Asked gets one value each time that the door goes to wait.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	wake  chan time.Time
	asked chan time.Duration
}

func newClock(at time.Time) *clock {
	return &clock{now: at, wake: make(chan time.Time), asked: make(chan time.Duration, 100)}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) After(d time.Duration) <-chan time.Time {
	c.asked <- d
	return c.wake
}

// memory remembers slots as the store does.
type memory struct {
	mu   sync.Mutex
	last map[string]time.Time
	fail error
}

func (m *memory) LastSlot(_ context.Context, name string) (time.Time, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.last[name]
	return at, ok, m.fail
}

func (m *memory) AdvanceSlot(_ context.Context, name string, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at.After(m.last[name]) {
		m.last[name] = at
	}
	return nil
}

// host runs the door; step moves the clock and waits until the door has looked at it.
type host struct {
	t     *testing.T
	door  *cron.Door
	clock *clock
	sink  *chattest.Sink
	slots *memory
	stop  func()
}

func start(t *testing.T, at time.Time, slots *memory, sink *chattest.Sink, list ...cron.Schedule) *host {
	t.Helper()
	c := newClock(at)
	d, err := cron.New(list, slots, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx, sink.Host(t)) }()
	h := &host{t: t, door: d, clock: c, sink: sink, slots: slots}
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(h.stop)
	<-c.asked
	return h
}

func (h *host) step(d time.Duration) time.Duration {
	h.clock.mu.Lock()
	h.clock.now = h.clock.now.Add(d)
	now := h.clock.now
	h.clock.mu.Unlock()
	h.clock.wake <- now
	return <-h.clock.asked
}

// keys are the events so far, without the name.
func (h *host) keys() string {
	var list []string
	for _, e := range h.sink.Effects() {
		k := strings.TrimPrefix(e.Key, "schedule:deps:")
		if e.Verb == chat.VerbIgnore {
			k = "(" + k + ")"
		}
		list = append(list, k)
	}
	return strings.Join(list, " ")
}

var monday = time.Date(2026, 11, 2, 2, 59, 30, 0, time.UTC)

func deps(catchUp string) cron.Schedule {
	return cron.Schedule{Name: "deps", Cron: "0 * * * *", Route: "maintenance", Prompt: "stop", CatchUp: catchUp}
}

func fresh() *memory { return &memory{last: map[string]time.Time{}} }

func TestEveryMomentIsOneEvent(t *testing.T) {
	h := start(t, monday, fresh(), chattest.NewSink(), deps(""))
	if wait := h.step(10 * time.Second); wait != 20*time.Second {
		t.Fatalf("waits %s for a run that is due in 20s", wait)
	}
	if got := h.keys(); got != "" {
		t.Fatalf("too early: %s", got)
	}
	h.step(20 * time.Second)
	h.step(time.Second)
	h.step(time.Minute)
	if got := h.keys(); got != "2026-11-02T03:00:00Z" {
		t.Fatalf("got %s", got)
	}
	e := h.sink.Last(t)
	if e.On != "schedule" || e.Route != "maintenance" || e.Text != "stop" || e.Verb != chat.VerbWork || e.Actor.Kind != "schedule" || e.Actor.ID != "deps" {
		t.Fatalf("got %+v", e)
	}
	if e.Slot == nil || e.Slot.Overlap != chat.OverlapSkip || !e.Slot.At.Equal(time.Date(2026, 11, 2, 3, 0, 0, 0, time.UTC)) || e.Slot.Missed != 0 {
		t.Fatalf("got %+v", e.Slot)
	}
}

func TestTwoHostsStartOneRun(t *testing.T) {
	slots, sink := fresh(), chattest.NewSink()
	a, b := start(t, monday, slots, sink, deps("")), start(t, monday, slots, sink, deps(""))
	a.step(31 * time.Second)
	slots.mu.Lock()
	slots.last["deps"] = monday // the other host read before this one wrote
	slots.mu.Unlock()
	b.step(31 * time.Second)
	if got := a.keys(); got != "2026-11-02T03:00:00Z" {
		t.Fatalf("got %s", got)
	}
}

func TestInvariant01_ARunThatWasNotTakenIsTriedAgain(t *testing.T) {
	h := start(t, monday, fresh(), chattest.NewSink(), deps(""))
	full := errors.New("disk is full")
	h.sink.Fail(full, full, full)
	if wait := h.step(30 * time.Second); wait > 5*time.Second {
		t.Fatalf("tries again in %s", wait)
	}
	if text := h.door.Check(t.Context())[0]; text.OK || !strings.Contains(text.Text, "disk is full") {
		t.Fatalf("doctor says %+v", text)
	}
	for range 4 {
		h.step(2 * time.Minute)
	}
	if got := h.keys(); got != "2026-11-02T03:00:00Z" {
		t.Fatalf("got %s", got)
	}
}

func TestMissedMomentsFollowThePolicyAndAreSeen(t *testing.T) {
	cases := map[string]string{
		"none": "(missed:2026-11-02T06:00:00Z) 2026-11-02T07:00:00Z",
		"one":  "(missed:2026-11-02T06:00:00Z) 2026-11-02T06:00:00Z 2026-11-02T07:00:00Z",
		"all":  "2026-11-02T03:00:00Z 2026-11-02T04:00:00Z 2026-11-02T05:00:00Z 2026-11-02T06:00:00Z 2026-11-02T07:00:00Z",
	}
	for policy, want := range cases {
		slots := fresh()
		start(t, monday, slots, chattest.NewSink(), deps(policy)).stop()
		h := start(t, monday.Add(4*time.Hour), slots, chattest.NewSink(), deps(policy))
		h.step(30 * time.Second)
		if got := h.keys(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", policy, got, want)
		}
		if policy == "all" {
			continue
		}
		if item := h.door.Check(t.Context())[0]; item.OK || !strings.Contains(item.Text, "were missed") {
			t.Errorf("%s: doctor says %+v", policy, item)
		}
		if first := h.sink.Effects()[0]; !strings.Contains(first.Text, "runs up to 2026-11-02T06:00:00Z were missed") {
			t.Errorf("%s: it says %q", policy, first.Text)
		}
	}
}

func TestCatchingUpIsBounded(t *testing.T) {
	slots := fresh()
	start(t, monday, slots, chattest.NewSink(), deps("all")).stop()
	h := start(t, monday.Add(10*24*time.Hour), slots, chattest.NewSink(), deps("all"))
	effects := h.sink.Effects()
	if len(effects) != 25 || effects[0].Verb != chat.VerbIgnore || !strings.Contains(effects[0].Text, "216 runs") {
		t.Fatalf("%d events after ten days; the first says %q", len(effects), effects[0].Text)
	}
}

func TestAQuickRestartMissesNothing(t *testing.T) {
	slots := fresh()
	start(t, monday, slots, chattest.NewSink(), deps("none")).stop()
	h := start(t, monday.Add(90*time.Second), slots, chattest.NewSink(), deps("none"))
	if got := h.keys(); got != "2026-11-02T03:00:00Z" {
		t.Fatalf("got %s", got)
	}
}

func TestAHostThatSleptKnowsIt(t *testing.T) {
	h := start(t, monday, fresh(), chattest.NewSink(), deps("one"))
	h.step(4 * time.Hour)
	if got := h.keys(); got != "(missed:2026-11-02T06:00:00Z) 2026-11-02T06:00:00Z" {
		t.Fatalf("got %s", got)
	}
}

func TestOverlapIsDecidedWhereTasksAreKnown(t *testing.T) {
	skip, allow := chat.Slot{Schedule: "deps", Overlap: chat.OverlapSkip}, chat.Slot{Overlap: chat.OverlapAllow}
	if ok, _ := skip.Start(0); !ok {
		t.Error("nothing lives and it does not start")
	}
	if ok, why := skip.Start(1); ok || !strings.Contains(why, "overlap = skip") {
		t.Errorf("starts beside another: %q", why)
	}
	if ok, _ := allow.Start(3); !ok {
		t.Error("allow does not allow")
	}
}

func TestNobodyIsToldAnything(t *testing.T) {
	d, err := cron.New(nil, fresh(), newClock(monday))
	if err != nil {
		t.Fatal(err)
	}
	chattest.Run(t, func(*testing.T) chattest.Subject { return chattest.Subject{Door: d} })
	if d.Handler(chat.Host{}) != nil {
		t.Error("a schedule has a webhook")
	}
}

func TestEveryMistakeIsNamed(t *testing.T) {
	_, err := cron.New([]cron.Schedule{
		{Name: "a b", Cron: "@daily", Route: "r", Prompt: "p"},
		{Name: "a", Cron: "@daily", Prompt: "p"},
		{Name: "b", Cron: "@daily", Route: "r"},
		{Name: "c", Cron: "TZ=UTC", Route: "r", Prompt: "p"},
		{Name: "d", Cron: "@daily", Route: "r", Prompt: "p", Overlap: "queue"},
		{Name: "e", Cron: "@daily", Route: "r", Prompt: "p", CatchUp: "some"},
		{Name: "f", Cron: "@daily", Route: "r", Prompt: "p"},
		{Name: "f", Cron: "@daily", Route: "r", Prompt: "p"},
	}, fresh(), newClock(monday))
	for _, want := range []string{`"a b"`, "route is missing", "prompt is missing", "write it as timezone", `overlap is "queue"`, `catch_up is "some"`, "used twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named: %v", want, err)
		}
	}
}
