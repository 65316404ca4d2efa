package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"reasonix/internal/provider"
	"reasonix/internal/session"
	"reasonix/internal/tool"
)

// Config is what one Loop works with. Session, Provider, Tools and Gate are needed; the rest may be zero.
type Config struct {
	Session     session.Log
	Provider    provider.Provider
	Tools       *tool.Registry
	Gate        Gate
	Tree        Tree   // nil: actions are not bound to a tree
	BoxDigest   string // identifies the box policy
	WorkDir     string // absolute workspace root
	Place       string // names WorkDir in digests, so that a workspace that moved is the same; empty: WorkDir
	Temperature float64
	MaxTokens   int // per model call, 0: the vendor's default
	MaxSteps    int // model calls of this Loop, 0: no limit
	Meter       Meter
	Inbox       func(ctx context.Context) ([]Steer, error)
	Draining    func() bool
	Observe     func(Observation)
	Redact      func(string) string                        // applied to everything before it is appended or observed
	LiveRedact  func() TextFilter                          // for streamed text; nil with Redact set: text is observed when the message is whole
	Resolve     func(path string) string                   // symlink-free absolute path of a path as the model wrote it; nil: as written
	Notebook    *Notebook                                  // host facts that tools leave; appended with the result of their call
	Ended       func() Stop                                // asked at every turn boundary; not empty: the loop stops with it
	OnEntry     func(session.Entry)                        // sees every entry, loaded and appended, in order
	Unasked     string                                     // what the model hears when it asks a question that nobody will answer; empty: questions wait
	Boundary    func(ctx context.Context, changed bool)    // before each model call; changed: calls with effects ran since the last one. May be nil
	Quiet       func(ctx context.Context)                  // before a call with effects starts: waits for what Boundary started. May be nil
	After       func(ctx context.Context, call Ran) string // what the user's hooks say to a call that ran; empty: nothing. Nil: none
}

// Ran is a call that ran, as hooks after it see it. Reads that overlap are seen at the same time.
type Ran struct {
	Tool string
	Args json.RawMessage
	Text string // the result, before it was bounded and redacted
	OK   bool
}

// TextFilter masks secrets in streamed text, also across chunk boundaries.
type TextFilter interface {
	Push(piece string) string // what may be shown now
	Flush() string            // the rest
}

// Loop drives one session. Its state is the transcript; what it holds in memory is a projection of it. Not for concurrent use.
type Loop struct {
	cfg     Config
	schemas []provider.ToolSchema

	messages []provider.Message
	where    session.Where
	seq      int64
	ids      map[string]bool // call ids ever used in the session
	keys     map[string]bool // keys of user entries
	queue    []Steer         // appended at the next turn boundary
	answers  []Answer
	effects  int // calls with effects that ran: what was judged before is judged again
	kept     int // effects at the last boundary; -1: an earlier attempt may have left some behind
	stumbles int // turns in a row without anything usable

	out     Outcome
	refused refusals
}

// refusals remembers whether the last refusal was worked around: a later message with a call that succeeded.
type refusals struct {
	message int // ordinal of the assistant message now worked on
	last    int // ordinal of the message with the last refusal, 0: none since the last success
}

// Open loads the transcript. The error names what is missing.
func Open(ctx context.Context, cfg Config) (*Loop, error) {
	if cfg.Session == nil || cfg.Provider == nil || cfg.Tools == nil || cfg.Gate == nil {
		return nil, errors.New("open the loop: it needs a session, a provider, tools and a gate")
	}
	entries, err := cfg.Session.Entries(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("open the loop: %w", err)
	}
	l := &Loop{cfg: cfg, schemas: cfg.Tools.Schemas(), ids: map[string]bool{}, keys: map[string]bool{}}
	for _, e := range entries {
		l.see(e)
		if e.Kind == session.KindIntent {
			l.kept = -1
		}
	}
	return l, nil
}

// Run goes on from where the transcript stands until something stops it. Totals in the Outcome grow over the Loop's life. An
// error is session.ErrFenced (nothing was written after the lease was lost), a failure of the model or of the host.
func (l *Loop) Run(ctx context.Context, answers []Answer) (Outcome, error) {
	l.answers = answers
	l.out.Stop, l.out.Pending, l.out.Limit, l.out.LastRefused = "", nil, "", false
	for {
		stop, err := l.step(ctx)
		if err != nil && ctx.Err() != nil && !errors.Is(err, session.ErrFenced) {
			stop, err = StopInterrupted, nil
		}
		if err != nil || stop != "" {
			l.out.Stop = stop
			l.out.LastRefused = stop == StopDone && l.refused.last != 0
			return l.out, err
		}
	}
}

// step does one thing: it settles the open calls, or asks the model once.
func (l *Loop) step(ctx context.Context) (Stop, error) {
	if err := ctx.Err(); err != nil {
		return StopInterrupted, nil
	}
	if len(l.where.Open()) > 0 {
		return l.settle(ctx)
	}
	if err := l.listen(ctx); err != nil {
		return "", err
	}
	if l.cfg.Ended != nil {
		if stop := l.cfg.Ended(); stop != "" {
			return stop, nil
		}
	}
	if len(l.messages) == 0 || l.messages[len(l.messages)-1].Role == provider.RoleSystem {
		return "", errors.New("ask the model: the session holds no request yet")
	}
	if l.messages[len(l.messages)-1].Role == provider.RoleAssistant {
		return StopDone, nil
	}
	if l.cfg.Draining != nil && l.cfg.Draining() {
		return StopDrained, nil
	}
	if l.cfg.Boundary != nil {
		l.cfg.Boundary(ctx, l.effects != l.kept)
		l.kept = l.effects
	}
	return l.turn(ctx)
}

// listen appends what waits for the turn boundary, each key once.
func (l *Loop) listen(ctx context.Context) error {
	heard := l.queue
	if l.cfg.Inbox != nil {
		more, err := l.cfg.Inbox(ctx)
		if err != nil {
			return fmt.Errorf("read the inbox: %w", err)
		}
		for _, s := range more {
			if s.Key == "" {
				return errors.New("read the inbox: an item has no key, so it would be told at every turn")
			}
		}
		heard = append(heard[:len(heard):len(heard)], more...)
	}
	for _, s := range heard {
		if err := l.Say(ctx, s.Key, s.Text); err != nil {
			return err
		}
	}
	l.queue = nil
	return nil
}

// Queue keeps text for the next turn boundary: while calls are open nothing may stand between them and their results.
func (l *Loop) Queue(s ...Steer) { l.queue = append(l.queue, s...) }

// Say appends a user message, unless one with that key is there already; an empty key never counts as seen. The caller makes
// sure that no call is open.
func (l *Loop) Say(ctx context.Context, key, text string) error {
	if key != "" && l.keys[key] {
		return nil
	}
	return l.append(ctx, session.Entry{Kind: session.KindUser, Name: key,
		Message: &provider.Message{Role: provider.RoleUser, Content: l.redact(text)}})
}

// TurnOver appends a host fact about the turn that ended and, with it or not at all, the user message that goes on.
func (l *Loop) TurnOver(ctx context.Context, name string, fact any, key, text string) error {
	data, err := json.Marshal(fact)
	if err != nil {
		return fmt.Errorf("note %s: %w", name, err)
	}
	entries := []session.Entry{{Kind: session.KindNote, Name: name, Data: data}}
	if text != "" {
		entries = append(entries, session.Entry{Kind: session.KindUser, Name: key,
			Message: &provider.Message{Role: provider.RoleUser, Content: l.redact(text)}})
	}
	return l.append(ctx, entries...)
}

// Note appends a host fact that the model does not read.
func (l *Loop) Note(ctx context.Context, name string, fact any) error {
	return l.TurnOver(ctx, name, fact, "", "")
}

// Begin appends the system prompt of a session that has no message yet.
func (l *Loop) Begin(ctx context.Context, system string) error {
	if len(l.messages) > 0 || system == "" {
		return nil
	}
	return l.append(ctx, session.Entry{Kind: session.KindSystem,
		Message: &provider.Message{Role: provider.RoleSystem, Content: l.redact(system)}})
}

// Abandon gives every open call a result that says why it will not run, so that another request can follow.
func (l *Loop) Abandon(ctx context.Context, why string) error {
	var results []session.Entry
	for _, o := range l.where.Open() {
		if o.Started {
			results = append(results, l.unknownResult(o.Call))
			continue
		}
		results = append(results, l.result(o.Call, "not run: "+why, session.Fact{Refused: true}))
	}
	return l.append(ctx, results...)
}

// Seen tells whether a user message with that key is in the transcript; Open lists the calls without a result.
func (l *Loop) Seen(key string) bool { return l.keys[key] }

// Open lists the calls without a result, in call order.
func (l *Loop) Open() []session.Open { return l.where.Open() }

// End appends how the attempt ended. It works under an ended ctx too.
func (l *Loop) End(ctx context.Context, how any) error {
	data, err := json.Marshal(how)
	if err != nil {
		return fmt.Errorf("end the attempt: %w", err)
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	return l.append(ctx, session.Entry{Kind: session.KindEnd, Data: data})
}

// append writes to the session and then follows it in memory.
func (l *Loop) append(ctx context.Context, entries ...session.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	if err := l.cfg.Session.Append(ctx, entries...); err != nil {
		return err
	}
	for _, e := range entries {
		e.Seq = l.seq + 1
		l.see(e)
	}
	return nil
}

// see projects one entry.
func (l *Loop) see(e session.Entry) {
	l.seq = e.Seq
	l.where.Apply(e)
	if m, ok := e.ForModel(); ok {
		l.messages = append(l.messages, m)
	}
	switch e.Kind {
	case session.KindUser:
		if e.Name != "" {
			l.keys[e.Name] = true
		}
		l.refused.last = 0
	case session.KindAssistant:
		l.refused.message++
		if e.Message != nil {
			l.out.Text = e.Message.Content
			for _, c := range e.Message.ToolCalls {
				l.ids[c.ID] = true
			}
		}
	case session.KindResult:
		l.follow(e.Fact)
	}
	if l.cfg.OnEntry != nil {
		l.cfg.OnEntry(e)
	}
}

func (l *Loop) follow(f *session.Fact) {
	switch {
	case f == nil:
	case f.Refused:
		l.refused.last = l.refused.message
	case f.OK && l.refused.message > l.refused.last:
		l.refused.last = 0
	}
}

func (l *Loop) redact(s string) string {
	if l.cfg.Redact == nil {
		return s
	}
	return l.cfg.Redact(s)
}

func (l *Loop) observe(o Observation) {
	if l.cfg.Observe != nil {
		o.Seq = l.seq
		l.cfg.Observe(o)
	}
}

// detached lets what already happened be written although the attempt is being stopped; the lease still decides.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}
