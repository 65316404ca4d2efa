package tui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"reasonix/internal/agent"
	"reasonix/internal/budget"
	"reasonix/internal/chat"
	"reasonix/internal/goal"
	"reasonix/internal/run"
	"reasonix/internal/session"
)

// Talk is one session at a terminal. Its state is the transcript.
type Talk struct {
	o     Options
	mode  string // of the next request
	seq   int64
	state state

	mu       sync.Mutex // guards what is read while a run works
	standing *run.Standing
	said     []agent.Steer
	next     Next
	left     bool // the person wants to leave
}

// Open reads where the session stands.
func Open(ctx context.Context, o Options) (*Talk, error) {
	t := &Talk{o: o, mode: o.Mode}
	t.state.price = o.Bench.Price()
	if t.mode == "" {
		t.mode = run.ModeRun
	}
	if err := t.catchUp(ctx); err != nil {
		return nil, err
	}
	posture := t.state.posture
	if o.Posture != "" {
		posture = o.Posture
	}
	if posture == "" {
		posture = "ask"
	}
	t.standing = run.NewStanding(posture, false)
	if t.state.posture != "" && t.state.posture != posture {
		return t, t.notePosture(ctx, posture)
	}
	return t, nil
}

// catchUp reads what was appended since.
func (t *Talk) catchUp(ctx context.Context) error {
	entries, err := t.o.Session.Entries(ctx, t.seq)
	if err != nil {
		return fmt.Errorf("read the session: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range entries {
		t.seq = e.Seq
		t.state.apply(e)
	}
	return nil
}

func (t *Talk) note(ctx context.Context, name string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("note %s: %w", name, err)
	}
	if err := t.o.Session.Append(ctx, session.Entry{Kind: session.KindNote, Name: name, Data: raw}); err != nil {
		return fmt.Errorf("note %s: %w", name, err)
	}
	return t.catchUp(ctx)
}

func (t *Talk) say(format string, args ...any) {
	t.o.Screen.Print(chat.Visible(t.redact(fmt.Sprintf(format, args...))) + "\n")
}

func (t *Talk) redact(s string) string {
	if t.o.Redact == nil {
		return s
	}
	return t.o.Redact(s)
}

// Run talks until the person leaves. What is open then stays open in the transcript.
func (t *Talk) Run(ctx context.Context) (Next, error) {
	if err := t.takeUp(ctx); err != nil {
		return t.next, t.ended(err)
	}
	first := t.o.First
	for !t.left {
		line := first
		if first = ""; line == "" {
			var err error
			if line, err = t.o.Screen.Line(ctx, t.prompt()); err != nil {
				switch {
				case errors.Is(err, ErrInterrupted):
					t.say("Nothing is running. /quit or Ctrl-D leaves.")
				case errors.Is(err, ErrTooLong):
					t.say("%v", err)
				default:
					return t.next, t.ended(err)
				}
				continue
			}
		}
		if err := t.hear(ctx, line); err != nil {
			return t.next, t.ended(err)
		}
	}
	return t.next, nil
}

// ended: the end of the input is how a person leaves.
func (t *Talk) ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Asking tells whether a question waits for the person.
func (t *Talk) Asking() bool { return t.state.asking() }

// takeUp goes on with what an earlier run left: a question is asked again, anything else is offered.
func (t *Talk) takeUp(ctx context.Context) error {
	switch {
	case t.state.asking() && t.o.First == "":
		t.say("The last request waits for you: %s", oneLine(t.state.request.Text))
		return t.work(ctx, false)
	case t.state.unfinished() && t.o.First == "":
		t.say("The last request is not finished: %s\n/continue goes on with it; anything else that you type begins a new one.", oneLine(t.state.request.Text))
	}
	return nil
}

func (t *Talk) prompt() string {
	mark := ""
	if t.mode != run.ModeRun {
		mark = t.mode + " "
	}
	if t.state.pursuing() {
		mark = "goal "
	}
	if p := t.standing.Posture(); p != "ask" {
		mark += p + " "
	}
	return mark + "> "
}

// hear takes a line that was typed while nothing runs.
func (t *Talk) hear(ctx context.Context, line string) error {
	line = strings.TrimSpace(line)
	switch {
	case line == "":
		return nil
	case strings.HasPrefix(line, "/"):
		return t.command(ctx, line)
	case t.state.pursuing():
		t.steer(line)
		return t.work(ctx, false)
	}
	return t.ask(ctx, t.mode, line)
}

func (t *Talk) steer(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, agent.Steer{Key: "said:" + t.o.NewID(), Text: line})
}

// ask begins a request.
func (t *Talk) ask(ctx context.Context, mode, text string) error {
	t.mu.Lock()
	t.said = nil // what was said to an earlier request is no part of this one
	t.mu.Unlock()
	if err := t.note(ctx, noteRequest, Request{Key: t.o.NewID(), Mode: mode, Text: t.redact(text)}); err != nil {
		return err
	}
	return t.work(ctx, true)
}

// work drives the request until it is done or the person stops it.
func (t *Talk) work(ctx context.Context, fresh bool) error {
	var answers []agent.Answer
	for {
		out, err := t.attempt(ctx, answers, fresh)
		if cerr := t.settle(context.WithoutCancel(ctx)); cerr != nil {
			return cerr
		}
		if err != nil {
			return t.failed(ctx, err)
		}
		fresh, answers = false, nil
		again := false
		switch out.Stop {
		case agent.StopPending:
			answers, again, err = t.answer(ctx, out.Pending)
		case agent.StopBudget, agent.StopSteps:
			again, err = t.raise(ctx, out.Limit)
		default:
			if err := t.end(context.WithoutCancel(ctx), out); err != nil {
				return err
			}
			if t.left {
				return io.EOF
			}
			again = out.Stop == agent.StopInterrupted && len(t.said) > 0 && ctx.Err() == nil
		}
		if err != nil || !again {
			return err
		}
	}
}

// settle follows what the attempt wrote, and records a posture that was changed after its last turn.
func (t *Talk) settle(ctx context.Context) error {
	if err := t.catchUp(ctx); err != nil {
		return err
	}
	if now := t.standing.Posture(); t.state.posture != "" && now != t.state.posture {
		return t.notePosture(ctx, now)
	}
	return nil
}

// failed shows an error that ends the request but not the conversation; what ends the session is returned.
func (t *Talk) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, session.ErrFenced) {
		return err
	}
	t.say("%v", err)
	if errors.Is(err, run.ErrBlockedRequest) {
		return t.note(ctx, noteRequest, Request{}) // it never began
	}
	t.say("/continue tries again.")
	return nil
}

// attempt runs once, until something stops it.
func (t *Talk) attempt(ctx context.Context, answers []agent.Answer, fresh bool) (run.Outcome, error) {
	r := t.state.request
	t.mu.Lock()
	t.standing = run.NewStanding(t.standing.Posture(), r.Mode == run.ModePlan)
	t.mu.Unlock()
	spec, err := t.o.Bench.Equip(ctx, t.now(r.Mode), fresh)
	if err != nil {
		return run.Outcome{}, err
	}
	spec.Session, spec.Standing, spec.Mode = t.o.Session, t.standing, r.Mode
	spec.Prompt, spec.PromptKey, spec.Answers = r.Text, r.Key, answers
	spec.Inbox, spec.Observe = t.inbox, t.o.Screen.Observe
	spec.PostureBy = func() string { return t.o.By }
	if m := t.meter(r.Mode); m != nil {
		spec.Meter = m
	}
	return t.drive(ctx, spec)
}

func (t *Talk) now(mode string) Now {
	return Now{Session: t.o.Session, Standing: t.standing, Mode: mode, Grants: t.state.rules(), Dirs: t.state.dirs()}
}

// inbox gives what was typed meanwhile; the transcript keeps each once.
func (t *Talk) inbox(context.Context) ([]agent.Steer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.said
	t.said = nil
	return out, nil
}

// drive runs the attempt beside the person, who may type and interrupt.
func (t *Talk) drive(ctx context.Context, spec run.Spec) (run.Outcome, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type result struct {
		out run.Outcome
		err error
	}
	done := make(chan result, 1)
	go func() {
		out, err := run.Drive(ctx, spec)
		done <- result{out, err}
	}()
	typed := t.o.Screen.Typed()
	for {
		select {
		case r := <-done:
			return r.out, r.err
		case <-t.o.Screen.Interrupts():
			stop()
		case line, open := <-typed:
			if !open {
				typed, t.left = nil, true
				stop()
				continue
			}
			if t.meanwhile(ctx, line) {
				stop()
			}
		}
	}
}

// meanwhile takes a line that was typed while a run works; it reports whether the run should stop.
func (t *Talk) meanwhile(ctx context.Context, line string) bool {
	line = strings.TrimSpace(line)
	if line == "" {
		return false
	}
	if !strings.HasPrefix(line, "/") {
		t.steer(line)
		t.say("(read at the next turn)")
		return false
	}
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "/stop":
		return true
	case "/quit", "/exit":
		t.left = true
		return true
	case "/status":
		t.status()
	case "/posture":
		t.mu.Lock()
		defer t.mu.Unlock()
		if err := t.setPosture(strings.TrimSpace(rest)); err != nil {
			t.say("%v", err)
		}
	default:
		t.say("While the model works: a message for it, /status, /posture, /stop or Ctrl-C, /quit.")
	}
	return false
}

// limits that hold for a request: those that the person set here, else the bench's.
func (t *Talk) limits(mode string) budget.Limits {
	if t.state.limits != nil {
		return *t.state.limits
	}
	return t.o.Bench.Limits(mode)
}

// end words how a request ended.
func (t *Talk) end(ctx context.Context, out run.Outcome) error {
	switch out.Stop {
	case agent.StopInterrupted:
		if len(t.said) > 0 && ctx.Err() == nil && !t.left {
			t.say("Interrupted. It goes on with what you typed; Ctrl-C again stops it.")
			return nil
		}
		t.say("Interrupted. /continue goes on; anything else begins a new request.")
	case agent.StopBlocked:
		t.say("The goal is blocked: %s\nType what it needs, and it goes on; /goal clear gives it up.", out.Text)
	case agent.StopDone:
		t.o.Screen.Print("")
		if r := out.Report; r != nil && t.state.request.Mode == run.ModeGoal && r.Disposition == goal.Complete {
			t.say("The goal is reported complete.")
			if r.Summary != "" && r.Summary != out.Text {
				t.say("%s", r.Summary)
			}
		}
		return t.facts(ctx)
	}
	return nil
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 160 {
		return string(r[:159]) + "…"
	}
	return s
}
