// Package chattest is the contract of a door: one suite that every adapter passes, and the sink that tests listen with.
package chattest

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"reasonix/internal/chat"
)

// Sink records what a door hands over and has each key's effect once, as the house does.
type Sink struct {
	Entered chan chat.Event // every call, before it is answered; buffered

	mu      sync.Mutex
	effects []chat.Event
	seen    map[string]bool
	fail    []error
	hold    chan struct{}
	outcome chat.Outcome
}

// NewSink is a sink that takes everything.
func NewSink() *Sink { return &Sink{Entered: make(chan chat.Event, 1000), seen: map[string]bool{}} }

// Accept implements chat.Sink.
func (s *Sink) Accept(ctx context.Context, e chat.Event) (chat.Outcome, error) {
	select {
	case s.Entered <- e:
	default:
	}
	s.mu.Lock()
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return chat.Outcome{}, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.fail) > 0 {
		err := s.fail[0]
		s.fail = s.fail[1:]
		return chat.Outcome{}, err
	}
	if s.seen[e.Key] {
		return chat.Outcome{Kind: chat.OutcomeDuplicate}, nil
	}
	s.seen[e.Key] = true
	s.effects = append(s.effects, e)
	if s.outcome.Kind != "" {
		return s.outcome, nil
	}
	return chat.Outcome{Kind: chat.OutcomeOpened, TaskID: "task_1"}, nil
}

// Effects are the events that had an effect, in order.
func (s *Sink) Effects() []chat.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]chat.Event(nil), s.effects...)
}

// Last is the newest effect; the test fails when there is none.
func (s *Sink) Last(t testing.TB) chat.Event {
	t.Helper()
	all := s.Effects()
	if len(all) == 0 {
		t.Fatal("the door handed nothing over")
	}
	return all[len(all)-1]
}

// Fail makes the next calls fail.
func (s *Sink) Fail(errs ...error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = append(s.fail, errs...)
}

// Hold keeps every call waiting until the returned function is called.
func (s *Sink) Hold() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := make(chan struct{})
	s.hold = ch
	return sync.OnceFunc(func() {
		s.mu.Lock()
		s.hold = nil
		s.mu.Unlock()
		close(ch)
	})
}

// Say makes every further effect answer with this outcome.
func (s *Sink) Say(o chat.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcome = o
}

// Host is what a door needs to work with this sink; the log goes to the test.
func (s *Sink) Host(t testing.TB) chat.Host {
	return chat.Host{Sink: s, Log: slog.New(slog.NewTextHandler(testLog{t}, nil))}
}

type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(string(p))
	return len(p), nil
}
