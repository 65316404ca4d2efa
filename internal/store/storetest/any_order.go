package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reasonix/internal/approval"
	"reasonix/internal/chat"
	"reasonix/internal/flow"
	"reasonix/internal/session"
	"reasonix/internal/task"
)

var anyOrder = map[string]func(*testing.T, *world){
	"TestInvariant04_WhateverTheOrderOfArrowsNothingIsAnsweredTwice": func(t *testing.T, w *world) {
		must(t, w.Close())
		rapid.Check(t, func(rt *rapid.T) {
			a := newAnyWorld(t, w)
			defer func() { a.Close() }() // a crash opens another store
			rt.Repeat(map[string]func(*rapid.T){
				"": a.check, "open": a.openTask, "steer": a.steer, "cancel": a.cancel, "claim": a.claim, "park": a.park,
				"decide": a.decide, "expire": a.expire, "append": a.append, "yield": a.yield, "finish": a.finish, "retry": a.retry,
				"sweep": a.sweep, "crash": a.crashed,
			})
			a.everyDueTaskRuns(rt)
		})
		w.Ledger = w.open()
	},
}

// anyWorld remembers what the arrows promised.
type anyWorld struct {
	*world
	ids      []string              // tasks
	asks     []string              // asks
	states   map[string]task.State // as last seen
	fences   map[string]int64      // newest fence that was given out
	expired  map[string]bool       // the newest lease is over
	claims   []flow.Claim          // all that were ever made
	accepted map[string]int        // answers per ask
}

func newAnyWorld(t *testing.T, w *world) *anyWorld {
	open := w.fresh(t)
	return &anyWorld{world: &world{Ledger: open(), ctx: context.Background(), open: open}, states: map[string]task.State{},
		fences: map[string]int64{}, expired: map[string]bool{}, accepted: map[string]int{}}
}

// eventKey comes from a small pool, so that deliveries repeat.
func (a *anyWorld) eventKey(rt *rapid.T, arrow string) string {
	return fmt.Sprint(arrow, rapid.IntRange(0, 6).Draw(rt, "event"))
}

func (a *anyWorld) someTask(rt *rapid.T) string {
	if len(a.ids) == 0 {
		rt.Skip("no task yet")
	}
	return rapid.SampledFrom(a.ids).Draw(rt, "task")
}

func (a *anyWorld) someAsk(rt *rapid.T) string {
	if len(a.asks) == 0 {
		rt.Skip("no ask yet")
	}
	return rapid.SampledFrom(a.asks).Draw(rt, "ask")
}

func (a *anyWorld) someClaim(rt *rapid.T) flow.Claim {
	if len(a.claims) == 0 {
		rt.Skip("no claim yet")
	}
	return rapid.SampledFrom(a.claims).Draw(rt, "claim")
}

// allow fails for an error that is none of the promised ones.
func allow(rt *rapid.T, err error, promised ...error) {
	if err == nil {
		return
	}
	for _, p := range promised {
		if errors.Is(err, p) {
			return
		}
	}
	rt.Fatalf("unpromised error: %v", err)
}

func (a *anyWorld) openTask(rt *rapid.T) {
	o := opening(a.eventKey(rt, "open"), rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "thread"))
	tk, err := a.Open(a.ctx, o)
	allow(rt, err, flow.ErrDuplicate, flow.ErrBusy)
	if err == nil {
		a.ids = append(a.ids, tk.ID)
	}
}

func (a *anyWorld) steer(rt *rapid.T) {
	err := a.Steer(a.ctx, flow.Steering{EventKey: a.eventKey(rt, "steer"), TaskID: a.someTask(rt), Text: "more"})
	allow(rt, err, flow.ErrDuplicate, flow.ErrState)
}

func (a *anyWorld) cancel(rt *rapid.T) {
	_, err := a.Cancel(a.ctx, flow.Cancelling{EventKey: a.eventKey(rt, "cancel"), TaskID: a.someTask(rt), By: "ada"})
	allow(rt, err, flow.ErrDuplicate, flow.ErrState)
}

func (a *anyWorld) claim(rt *rapid.T) {
	ttl := rapid.SampledFrom([]time.Duration{over, long, long}).Draw(rt, "ttl")
	c, err := a.Claim(a.ctx, a.someTask(rt), "host-a", ttl)
	allow(rt, err, flow.ErrLeased, flow.ErrState)
	if err != nil {
		return
	}
	if c.Task.Fence <= a.fences[c.Task.ID] {
		rt.Fatalf("fence %d after %d", c.Task.Fence, a.fences[c.Task.ID])
	}
	a.fences[c.Task.ID], a.expired[c.Task.ID] = c.Task.Fence, ttl == over
	a.claims = append(a.claims, c)
}

// holds fails when a worker wrote that had no right to.
func (a *anyWorld) holds(rt *rapid.T, c flow.Claim, err error) bool {
	allow(rt, err, flow.ErrFenced)
	live := a.states[c.Task.ID] == task.Running && a.fences[c.Task.ID] == c.Task.Fence && !a.expired[c.Task.ID]
	if live != (err == nil) {
		rt.Fatalf("the holder of a lease (live: %v) was told %v", live, err)
	}
	return err == nil
}

func (a *anyWorld) park(rt *rapid.T) {
	c := a.someClaim(rt)
	asks := []approval.Ask{newAsk(c.Task.ID), newAsk(c.Task.ID)}[:rapid.IntRange(1, 2).Draw(rt, "asks")]
	stopped := a.now(rt, c.Task.ID).CancelBy != ""
	err := a.Park(a.ctx, flow.Parking{Held: c.Held(), Reason: approval.KindApproval, Asks: asks})
	if !a.holds(rt, c, err) || stopped {
		return
	}
	for _, ask := range asks {
		a.asks = append(a.asks, ask.ID)
	}
}

func (a *anyWorld) append(rt *rapid.T) {
	c := a.someClaim(rt)
	a.holds(rt, c, a.Transcript(c.Task.ID, c.Task.SessionID, c.Task.Fence).Append(a.ctx, session.Entry{Kind: session.KindNote}))
}

func (a *anyWorld) yield(rt *rapid.T) {
	c := a.someClaim(rt)
	a.holds(rt, c, a.Yield(a.ctx, c.Held(), flow.Progress{}))
}

func (a *anyWorld) finish(rt *rapid.T) {
	c := a.someClaim(rt)
	end := rapid.SampledFrom([]task.State{task.Completed, task.Failed, task.Cancelled}).Draw(rt, "end")
	a.holds(rt, c, a.Finish(a.ctx, flow.Finishing{Held: c.Held(), State: end}))
}

func (a *anyWorld) decide(rt *rapid.T) {
	judge := answerBy("lead", "allow")
	cancel := rapid.IntRange(0, 9).Draw(rt, "cancels") == 0
	ask := a.someAsk(rt)
	j, err := a.Decide(a.ctx, a.eventKey(rt, "press"), ask, func(q approval.Ask, tk task.Task) flow.Judged {
		j := judge(q, tk)
		j.Cancel = cancel && j.Verdict.Kind == approval.Accepted
		return j
	})
	allow(rt, err, flow.ErrDuplicate)
	if err == nil && j.Verdict.Kind == approval.Accepted {
		a.accepted[ask]++
	}
}

func (a *anyWorld) expire(rt *rapid.T) {
	_, err := a.Expire(a.ctx, a.someAsk(rt), func(q approval.Ask, _ task.Task) flow.Judged {
		q.State = approval.StateExpired
		return flow.Judged{Verdict: approval.Verdict{Ask: q}}
	})
	must(rt, err)
}

func (a *anyWorld) retry(rt *rapid.T) {
	_, err := a.Retry(a.ctx, a.eventKey(rt, "retry"), a.someTask(rt), nil)
	allow(rt, err, flow.ErrDuplicate, flow.ErrState, flow.ErrBusy)
}

func (a *anyWorld) sweep(rt *rapid.T) {
	_, err := a.Sweep(a.ctx, time.Now())
	must(rt, err)
}

func (a *anyWorld) crashed(rt *rapid.T) {
	must(rt, a.Close())
	a.Ledger = a.open()
}

func (a *anyWorld) now(rt *rapid.T, id string) task.Task {
	tk, err := a.Task(a.ctx, id)
	must(rt, err)
	return tk
}

// check holds after every step.
func (a *anyWorld) check(rt *rapid.T) {
	live := map[string]string{}
	tasks, err := a.Tasks(a.ctx, chat.TaskFilter{Limit: 1000})
	must(rt, err)
	if len(tasks) != len(a.ids) {
		rt.Fatalf("%d tasks are stored, %d were opened", len(tasks), len(a.ids))
	}
	for _, tk := range tasks {
		if before, ok := a.states[tk.ID]; ok && before != tk.State {
			must(rt, task.Transition(before, tk.State))
		}
		a.states[tk.ID] = tk.State
		if tk.State.Ended() {
			continue
		}
		if other, dup := live[tk.Conversation]; dup {
			rt.Fatalf("tasks %s and %s are live in one conversation", other, tk.ID)
		}
		live[tk.Conversation] = tk.ID
	}
	a.checkAsks(rt)
}

func (a *anyWorld) checkAsks(rt *rapid.T) {
	for id, n := range a.accepted {
		if n > 1 {
			rt.Fatalf("ask %s was answered %d times", id, n)
		}
	}
	open, err := a.Asks(a.ctx, "", true)
	must(rt, err)
	waits := map[string]bool{}
	for _, ask := range open {
		waits[ask.TaskID] = true
		if a.states[ask.TaskID] != task.Parked {
			rt.Fatalf("ask %s is open and its task is %s", ask.ID, a.states[ask.TaskID])
		}
	}
	for id, state := range a.states {
		if state == task.Parked && !waits[id] {
			rt.Fatalf("task %s is parked and asks nobody", id)
		}
	}
}

// everyDueTaskRuns: whatever happened, after a sweep each task that should run is attempted, and no other.
func (a *anyWorld) everyDueTaskRuns(rt *rapid.T) {
	a.sweep(rt)
	due := map[string]bool{}
	for id, state := range a.states {
		if state == task.Queued || state == task.Running && a.expired[id] {
			due[id] = true
		}
	}
	var mu sync.Mutex
	ran, all := map[string]bool{}, make(chan bool, 1)
	ctx, stop := context.WithTimeout(context.Background(), soon)
	defer stop()
	done := make(chan error, 1)
	go func() {
		done <- a.Work(ctx, "host-z", 4, func(_ context.Context, id string) error {
			mu.Lock()
			defer mu.Unlock()
			ran[id] = true
			if len(ran) == len(due) {
				select {
				case all <- true:
				default:
				}
			}
			return nil
		})
	}()
	if len(due) > 0 {
		select {
		case <-all:
		case <-ctx.Done():
		}
	}
	stop()
	must(rt, <-done)
	if len(ran) != len(due) {
		rt.Fatalf("due are %v, attempted were %v", due, ran)
	}
}
