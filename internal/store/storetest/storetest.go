// Package storetest is the contract that every store passes: one story per arrow, told through flow.Ledger alone.
package storetest

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"reasonix/internal/approval"
	"reasonix/internal/chat"
	"reasonix/internal/flow"
	"reasonix/internal/task"
)

// Place is a fresh, empty place for state; every call of open opens it once more, as another process would, or as the same
// one does after a crash.
type Place func(t *testing.T) (open func() flow.Ledger)

var groups = []map[string]func(*testing.T, *world){
	openStories, askStories, leaseStories, outboxStories, jobStories, transcriptStories, boardStories, crowdStories, dayStories, anyOrder,
}

// Run tells all stories.
func Run(t *testing.T, newPlace func(t *testing.T) (open func() flow.Ledger)) {
	run(t, newPlace, func(string) bool { return true })
}

// RunStories tells all but the invariants, for a store whose tests name these one by one with RunInvariant.
func RunStories(t *testing.T, newPlace Place) {
	run(t, newPlace, func(name string) bool { return !strings.HasPrefix(name, "TestInvariant") })
}

// RunInvariant tells the stories of one invariant of the design.
func RunInvariant(t *testing.T, number int, newPlace Place) {
	prefix := fmt.Sprintf("TestInvariant%02d_", number)
	run(t, newPlace, func(name string) bool { return strings.HasPrefix(name, prefix) })
}

func run(t *testing.T, newPlace Place, wanted func(name string) bool) {
	told := 0
	for _, group := range groups {
		for _, name := range slices.Sorted(maps.Keys(group)) {
			if wanted(name) {
				told++
				t.Run(name, func(t *testing.T) { group[name](t, newWorld(t, newPlace)) })
			}
		}
	}
	if told == 0 {
		t.Fatal("there is no such story")
	}
}

// world is one store and the people around it.
type world struct {
	flow.Ledger
	ctx   context.Context
	open  func() flow.Ledger
	fresh Place // for stories that need many places
}

func newWorld(t *testing.T, newPlace Place) *world {
	open := newPlace(t)
	w := &world{Ledger: open(), ctx: t.Context(), open: open, fresh: newPlace}
	t.Cleanup(func() { w.Ledger.Close() })
	return w
}

// crash closes the store and opens it again; memory is gone.
func (w *world) crash(t *testing.T) {
	t.Helper()
	if err := w.Ledger.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	w.Ledger = w.open()
}

const long = time.Hour

// newID makes ids as flow does.
func newID(prefix string) string {
	var b [15]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + "_" + strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

func slackThread(thread string) chat.Place {
	return chat.Place{Connection: "slack", Kind: "slack", Channel: "C1", Thread: thread}
}

func opening(key, thread string) flow.Opening {
	place := slackThread(thread)
	id := newID("task")
	return flow.Opening{
		EventKey: key,
		Task: task.Task{
			ID: id, Conversation: place.Key(), Place: place, Title: "fix the flaky test", Prompt: "Fix the flaky test.",
			Requester: task.Requester{Actor: chat.Actor{Kind: "slack", ID: "U1", Name: "Ada"}, Person: "ada", Role: task.RoleUser},
			Spec:      task.Spec{Route: "fix", Mode: task.ModeGoal, Posture: "ask", Model: "script"},
			SessionID: newID("ses"), WorkspaceID: id,
		},
		Posts: []flow.NewPost{notice(id, "ack:"+id, place, "on it")},
	}
}

func notice(taskID, key string, place chat.Place, text string) flow.NewPost {
	return flow.NewPost{Key: key, TaskID: taskID, Place: place, Message: chat.Message{Kind: chat.KindNotice, TaskID: taskID, Text: text}}
}

// opened is a queued task.
func (w *world) opened(t *testing.T, thread string) task.Task {
	t.Helper()
	tk, err := w.Open(w.ctx, opening(newID("evt"), thread))
	must(t, err)
	return tk
}

// claimed is a running task whose lease holds for an hour.
func (w *world) claimed(t *testing.T, thread string) flow.Claim {
	t.Helper()
	c, err := w.Claim(w.ctx, w.opened(t, thread).ID, "host-a", long)
	must(t, err)
	return c
}

func newAsk(taskID string) approval.Ask {
	return approval.Ask{
		ID: newID("ask"), TaskID: taskID, CallID: "call-1", Kind: approval.KindApproval, State: approval.StateOpen,
		Title: "Run a command?", Blocks: []chat.Block{{Name: "command.sh", Text: "rm -rf build"}}, Digest: "d1",
		Choices: []approval.Choice{{ID: "allow", Consent: true}, {ID: "deny"}},
		Rules:   approval.Rules{Approvers: []string{"lead"}, Quorum: 1, Requester: "ada", Then: "deny"},
	}
}

// parked is a task that waits for n asks.
func (w *world) parked(t *testing.T, thread string, n int) (task.Task, []approval.Ask) {
	t.Helper()
	c := w.claimed(t, thread)
	var asks []approval.Ask
	for range n {
		asks = append(asks, newAsk(c.Task.ID))
	}
	must(t, w.Park(w.ctx, flow.Parking{Held: c.Held(), Reason: approval.KindApproval, Asks: asks}))
	return w.task(t, c.Task.ID), asks
}

func (w *world) task(t *testing.T, id string) task.Task {
	t.Helper()
	tk, err := w.Task(w.ctx, id)
	must(t, err)
	return tk
}

// answerBy is the simplest judge: an open ask is answered, everything else is too late.
func answerBy(person, choice string) func(approval.Ask, task.Task) flow.Judged {
	return func(a approval.Ask, _ task.Task) flow.Judged {
		if a.State != approval.StateOpen {
			return flow.Judged{Verdict: approval.Verdict{Kind: approval.TooLate, Ask: a, Reason: "answered before"}}
		}
		a.State = approval.StateAnswered
		a.Answer = &approval.Answer{Choice: choice, Person: person, Actor: "slack:" + person}
		return flow.Judged{Verdict: approval.Verdict{Kind: approval.Accepted, Ask: a}}
	}
}

// tb is what testing.T and rapid.T share.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func must(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t tb, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want %v", err, want)
	}
}

func wantState(t *testing.T, got task.Task, want task.State) {
	t.Helper()
	if got.State != want {
		t.Fatalf("task is %s, want %s", got.State, want)
	}
}

// soon is how long a story waits for something that another goroutine or process does.
const soon = 10 * time.Second

// receive waits for a value.
func receive[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(soon):
		t.Fatalf("%s did not come within %s", what, soon)
		panic("unreachable")
	}
}
