package flow_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"reasonix/internal/chat"
	"reasonix/internal/task"
)

// Eighty tasks wait for people on a host that runs four at once: none of them holds a worker or a goroutine, and the last one that came goes
// on as soon as somebody answers.
func TestInvariant02_AWaitingTaskHoldsNoWorkerAndNoGoroutine(t *testing.T) {
	h := newHouse(t)
	request := func(n int) string {
		return h.say("DEV", func(e *chat.Event) {
			e.On, e.Command, e.Text, e.Place.Thread = "slack.command", "/fix", "deploy", fmt.Sprint("thread-", n)
		}).TaskID
	}
	last := request(0)
	h.openAsk(last)
	h.door.find(t, chat.KindAsk, "")
	before := runtime.NumGoroutine()
	for n := range 80 {
		last = request(n + 1)
		h.openAsk(last)
	}
	const slack = 40 // the engine's and the database's own, which come and go
	limit := time.After(20 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for runtime.NumGoroutine() > before+slack {
		select {
		case <-tick.C: // goroutines that end give no signal
		case <-limit:
			t.Fatalf("%d goroutines with one task waiting, %d with eighty more", before, runtime.NumGoroutine())
		}
	}
	h.press("LEAD", h.openAsk(last).ID, "allow")
	h.state(last, task.Completed)
}

// A platform that says when it wants to be tried again is tried then, neither earlier nor by the host's own clock.
func TestInvariant07_ThePlatformsRetryAfterIsHonoured(t *testing.T) {
	const pause = 1600 * time.Millisecond
	h := newHouse(t, func(h *house) {
		h.door.failures, h.door.fragile = []error{&chat.RetryError{After: pause, Err: errors.New("slow down")}}, chat.KindAck
	})
	began := time.Now()
	h.ask("DEV", "deploy")
	h.door.find(t, chat.KindAck, "")
	if took := time.Since(began); took < pause || took > pause+time.Minute {
		t.Errorf("the post was made after %s; the platform asked for %s", took, pause)
	}
}
