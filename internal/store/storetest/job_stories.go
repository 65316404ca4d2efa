package storetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"reasonix/internal/chat"
	"reasonix/internal/flow"
	"reasonix/internal/task"
)

// shift is a host at work.
type shift struct {
	cancel context.CancelFunc
	done   chan error
}

// work starts a host; attempt is told the task's id.
func (w *world) work(t *testing.T, host string, max int, attempt func(id string) error) *shift {
	return workOn(t, w.Ledger, host, max, attempt)
}

func workOn(t *testing.T, l flow.Ledger, host string, max int, attempt func(id string) error) *shift {
	ctx, cancel := context.WithCancel(context.Background())
	s := &shift{cancel: cancel, done: make(chan error, 1)}
	go func() {
		s.done <- l.Work(ctx, host, max, func(_ context.Context, id string) error { return attempt(id) })
	}()
	t.Cleanup(s.stop)
	return s
}

func (s *shift) stop() {
	s.cancel()
	if _, ok := <-s.done; ok { // an aborted start is no news at the end of a story
		close(s.done)
	}
}

// eventually polls where nothing signals.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(soon)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline.C:
			t.Fatalf("%s did not happen within %s", what, soon)
		case <-tick.C:
		}
	}
}

var jobStories = map[string]func(*testing.T, *world){
	"AnOpenedTaskIsAttempted": func(t *testing.T, w *world) {
		ran := make(chan string, 10)
		w.work(t, "host-a", 2, func(id string) error {
			c, err := w.Claim(w.ctx, id, "host-a", long)
			if err != nil {
				return err
			}
			ran <- id
			return w.Finish(w.ctx, flow.Finishing{Held: c.Held(), State: task.Completed})
		})
		tk := w.opened(t, "1")
		if id := receive(t, ran, "the attempt"); id != tk.ID {
			t.Fatalf("task %s ran", id)
		}
		eventually(t, "the end", func() bool { return w.task(t, tk.ID).State == task.Completed })
	},
	"AnAnswerContinuesATaskThatWaitedThroughACrash": func(t *testing.T, w *world) {
		tk, asks := w.parked(t, "1", 1)
		w.crash(t)
		ran := make(chan string, 10)
		w.work(t, "host-b", 2, func(id string) error {
			_, err := w.Claim(w.ctx, id, "host-b", long)
			ran <- id
			return err
		})
		_, err := w.Decide(w.ctx, "press-1", asks[0].ID, answerBy("lead", "allow"))
		must(t, err)
		if id := receive(t, ran, "the attempt"); id != tk.ID {
			t.Fatalf("task %s ran", id)
		}
	},
	"AFailedAttemptIsNotRepeatedByTheEngineButByTheSweep": func(t *testing.T, w *world) {
		var attempts atomic.Int32
		ran := make(chan string, 10)
		w.work(t, "host-a", 1, func(id string) error {
			attempts.Add(1)
			ran <- id
			return errors.New("disk on fire")
		})
		tk := w.opened(t, "1")
		receive(t, ran, "the first attempt")
		other := w.opened(t, "2") // its attempt comes after anything that the engine would repeat at once
		if id := receive(t, ran, "the second task"); id != other.ID {
			t.Fatalf("task %s was repeated", id)
		}
		eventually(t, "the sweep's wake-up", func() bool {
			woken, err := w.Sweep(w.ctx, time.Now())
			must(t, err)
			return len(woken) > 0
		})
		if id := receive(t, ran, "the attempt after the sweep"); id != tk.ID && id != other.ID {
			t.Fatalf("task %s ran", id)
		}
	},
	"APanicIsOneFailedAttempt": func(t *testing.T, w *world) {
		ran := make(chan string, 10)
		w.work(t, "host-a", 1, func(id string) error {
			ran <- id
			panic("bug")
		})
		w.opened(t, "1")
		receive(t, ran, "the first attempt")
		w.opened(t, "2")
		receive(t, ran, "the second attempt")
	},
	"AJobOfATaskThatIsNotDueDoesNothing": func(t *testing.T, w *world) {
		tk := w.opened(t, "1")
		_, err := w.Cancel(w.ctx, flow.Cancelling{EventKey: "stop", TaskID: tk.ID})
		must(t, err)
		parked, _ := w.parked(t, "2", 1)
		ran := make(chan string, 10)
		w.work(t, "host-a", 1, func(id string) error { ran <- id; return nil })
		due := w.opened(t, "3")
		if id := receive(t, ran, "the attempt"); id != due.ID {
			t.Fatalf("task %s ran; cancelled is %s, parked is %s", id, tk.ID, parked.ID)
		}
	},
	"NoMoreRunAtOnceThanAllowed": func(t *testing.T, w *world) {
		var now, peak atomic.Int32
		done, gate := make(chan bool, 10), make(chan bool)
		w.work(t, "host-a", 2, func(id string) error {
			peak.Store(max(peak.Load(), now.Add(1)))
			<-gate
			now.Add(-1)
			done <- true
			return nil
		})
		for i := range 5 {
			w.opened(t, string(rune('a'+i)))
		}
		for range 5 {
			gate <- true
			receive(t, done, "an attempt")
		}
		if peak.Load() > 2 {
			t.Fatalf("%d ran at once", peak.Load())
		}
	},
	"DrainingWaitsForThoseThatRun": func(t *testing.T, w *world) {
		started, gate := make(chan bool, 1), make(chan bool)
		s := w.work(t, "host-a", 1, func(id string) error {
			c, err := w.Claim(w.ctx, id, "host-a", long)
			if err != nil {
				return err
			}
			started <- true
			<-gate
			return w.Yield(w.ctx, c.Held(), flow.Progress{})
		})
		tk := w.opened(t, "1")
		receive(t, started, "the attempt")
		s.cancel()
		select {
		case <-s.done:
			t.Fatal("work returned while an attempt was running")
		default:
		}
		close(gate)
		must(t, receive(t, s.done, "the end of work"))
		close(s.done)
		wantState(t, w.task(t, tk.ID), task.Queued)
		ran := make(chan string, 1)
		w.work(t, "host-b", 1, func(id string) error { ran <- id; return nil })
		receive(t, ran, "the next host's attempt")
	},
	"AnotherProcessAnswersAndTheHostWakesWithinASecond": func(t *testing.T, w *world) {
		tk, asks := w.parked(t, "1", 1)
		ran := make(chan string, 10)
		w.work(t, "host-a", 1, func(id string) error { ran <- id; return nil })
		changed := w.Changed(tk.ID)
		cli := w.open()
		defer cli.Close()
		if seen, err := cli.Tasks(w.ctx, chat.TaskFilter{}); err != nil || len(seen) != 1 {
			t.Fatalf("the other process sees %d tasks: %v", len(seen), err)
		}
		began := time.Now()
		_, err := cli.Decide(w.ctx, "press-1", asks[0].ID, answerBy("lead", "allow"))
		must(t, err)
		receive(t, ran, "the attempt")
		if took := time.Since(began); took > 3*time.Second { // a second, and patience for a loaded machine
			t.Fatalf("the host woke after %s", took)
		}
		receive(t, changed, "the change for those who watch")
	},
	"ADeadHostsSuccessorTakesItsWorkBackAtOnce": func(t *testing.T, w *world) {
		tk := w.opened(t, "1")
		_, err := w.Claim(w.ctx, tk.ID, "host-a", long) // and the process dies
		must(t, err)
		w.crash(t)
		ran := make(chan string, 10)
		w.work(t, "host-a", 1, func(id string) error {
			_, err := w.Claim(w.ctx, id, "host-a", long)
			if err == nil {
				ran <- id
			}
			return err
		})
		if id := receive(t, ran, "the attempt"); id != tk.ID {
			t.Fatalf("task %s ran", id)
		}
	},
	"TwoHostsOfOneNameDoNotWorkAtOnce": func(t *testing.T, w *world) {
		first := make(chan string, 10)
		a := w.work(t, "host-a", 1, func(id string) error { first <- id; return nil })
		w.opened(t, "1")
		receive(t, first, "the attempt of the first")
		other := w.open()
		t.Cleanup(func() { other.Close() })
		second := make(chan string, 10)
		workOn(t, other, "host-a", 1, func(id string) error { second <- id; return nil })
		w.opened(t, "2")
		receive(t, first, "the second attempt of the first")
		if len(second) != 0 {
			t.Fatal("both work")
		}
		a.stop()
		w.opened(t, "3")
		receive(t, second, "the attempt of the successor")
	},
}
