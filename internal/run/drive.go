package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reasonix/internal/agent"
	"reasonix/internal/goal"
	"reasonix/internal/session"
	"reasonix/internal/tool"
)

// The modes that Drive knows.
const (
	ModeRun  = "run"
	ModeGoal = "goal"
	ModePlan = "plan"
)

// ErrMode: the mode of the spec cannot be driven; nothing was appended.
var ErrMode = errors.New("mode cannot be run")

// ErrSpec: the spec lacks something; nothing was appended.
var ErrSpec = errors.New("incomplete run")

// Drive runs one attempt: it brings the session to where the spec wants it, continues where the transcript stands, and returns
// when something stops it. The attempt's end is the transcript's last entry. A session that is already finished stays as it is.
// Errors: ErrSpec, ErrMode, session.ErrFenced when the lease was lost, and failures of the model, the session or the host.
func Drive(ctx context.Context, s Spec) (Outcome, error) {
	began := time.Now()
	d, err := open(ctx, s)
	if err != nil {
		return Outcome{}, err
	}
	out, err := d.run(ctx)
	result := Outcome{Outcome: out, Report: d.goal.Last, Duration: time.Since(began)}
	if errors.Is(err, session.ErrFenced) || !d.moved {
		return result, err
	}
	end := map[string]any{"stop": out.Stop, "ms": result.Duration.Milliseconds()}
	if out.Limit != "" {
		end["limit"] = out.Limit
	}
	if err != nil {
		end["stop"], end["error"] = "error", d.redact(err.Error())
	}
	return result, errors.Join(err, d.loop.End(ctx, end))
}

// drive is one attempt.
type drive struct {
	spec  Spec
	loop  *agent.Loop
	goal  goal.State
	lease lease
	noted string // posture in the transcript
	moved bool   // something was appended in this attempt
}

func open(ctx context.Context, s Spec) (*drive, error) {
	if err := check(s); err != nil {
		return nil, err
	}
	d := &drive{spec: s}
	if s.SignOff {
		if err := d.offerSteps(); err != nil {
			return nil, err
		}
	}
	if s.Mode == ModeGoal {
		d.goal.GoalID = goal.ID(s.PromptKey)
		if err := d.offerReport(); err != nil {
			return nil, err
		}
	}
	if s.Mode == ModePlan {
		if err := d.offerPlan(); err != nil {
			return nil, err
		}
	}
	loop, err := agent.Open(ctx, d.config())
	if err != nil {
		return nil, err
	}
	d.loop, d.moved = loop, false
	return d, d.begin(ctx)
}

func check(s Spec) error {
	switch s.Mode {
	case ModeRun, ModeGoal, ModePlan:
	default:
		return fmt.Errorf("%w: %q is not one of run, goal, plan", ErrMode, s.Mode)
	}
	switch {
	case s.Session == nil, s.Provider == nil, s.Tools == nil, s.Gate == nil:
		return fmt.Errorf("%w: it needs a session, a provider, tools and a gate", ErrSpec)
	case s.PromptKey == "":
		return fmt.Errorf("%w: the request has no key, so it could be told twice", ErrSpec)
	}
	return nil
}

// offerReport adds update_goal, bound to this goal, behind the other tools.
func (d *drive) offerReport() error {
	if d.spec.Notebook == nil {
		d.spec.Notebook = &agent.Notebook{}
	}
	if _, there := d.spec.Tools.Get(goal.ToolName); there {
		return fmt.Errorf("%w: %s is offered by the host itself, leave it out of the tools", ErrSpec, goal.ToolName)
	}
	return d.spec.Tools.Add(goal.NewBound(tool.Env{Note: d.spec.Notebook.Note}, d.goal.GoalID))
}

func (d *drive) config() agent.Config {
	s := d.spec
	c := agent.Config{Session: s.Session, Provider: s.Provider, Tools: s.Tools, Gate: s.Gate, Tree: s.Tree, BoxDigest: s.BoxDigest,
		WorkDir: s.WorkDir, Place: s.Place, Temperature: s.Temperature, MaxTokens: s.MaxTokens, MaxSteps: s.MaxSteps, Meter: s.Meter, Inbox: d.inbox,
		Draining: s.Draining, Observe: s.Observe, Redact: s.Redact, LiveRedact: s.LiveRedact, Resolve: s.Resolve, Notebook: s.Notebook,
		Ended: d.ended, OnEntry: d.see, After: s.Hooks.after(), Unasked: s.Unasked}
	if s.Snapshot != nil {
		c.Boundary, c.Quiet = s.Snapshot.Boundary, s.Snapshot.Quiet
	}
	return c
}

func (d *drive) see(e session.Entry) {
	d.moved = true
	d.lease.apply(e)
	if d.spec.Standing != nil {
		d.spec.Standing.apply(e, d.spec.PromptKey)
	}
	if p, ok := lastPosture(e); ok {
		d.noted = p
	}
	if d.spec.Mode == ModeGoal {
		d.goal.Apply(e)
	}
}

// begin appends the system prompt and the request where they are missing. Calls that an earlier request left open are closed
// first; calls of this request stay open, and the notes wait until they have their results.
func (d *drive) begin(ctx context.Context) error {
	if err := d.loop.Begin(ctx, d.spec.System); err != nil {
		return fmt.Errorf("begin the session: %w", err)
	}
	if !d.loop.Seen(d.spec.PromptKey) {
		if d.spec.Prompt == "" {
			return fmt.Errorf("%w: the request is empty", ErrSpec)
		}
		more, err := d.spec.Hooks.submit(ctx, d.spec.Prompt)
		if err != nil {
			return err
		}
		if err := d.loop.Abandon(ctx, d.abandoned()); err != nil {
			return fmt.Errorf("close the calls of the earlier request: %w", err)
		}
		if err := d.loop.Say(ctx, d.spec.PromptKey, d.request()+more); err != nil {
			return fmt.Errorf("append the request: %w", err)
		}
	}
	if err := d.notePosture(ctx); err != nil {
		return err
	}
	for _, n := range d.spec.Notes {
		if n.Key == "" {
			return fmt.Errorf("%w: a note has no key, so it could be told twice", ErrSpec)
		}
	}
	d.loop.Queue(d.spec.Notes...)
	return nil
}

// abandoned says why calls of an earlier request do not run.
func (d *drive) abandoned() string {
	for _, o := range d.loop.Open() {
		if o.Call.Name == PlanTool {
			return "nobody decided on this plan. The next message is a person's word on what happens now"
		}
	}
	return "the request that it belonged to had ended"
}

func (d *drive) request() string {
	switch d.spec.Mode {
	case ModeGoal:
		return goal.Block(d.goal.GoalID, d.spec.Prompt)
	case ModePlan:
		return planBlock(d.spec.Prompt)
	}
	return d.spec.Prompt
}

// run drives turns until one is the last: hooks on Stop, and a plan that is missing, make it go on.
func (d *drive) run(ctx context.Context) (agent.Outcome, error) {
	for {
		out, err := d.turns(ctx)
		if err != nil || out.Stop != agent.StopDone {
			return out, err
		}
		more, err := d.nudge(ctx)
		if err == nil && !more {
			more, err = d.stopHooks(ctx, out)
		}
		if err != nil && ctx.Err() != nil && !errors.Is(err, session.ErrFenced) {
			out.Stop, err = agent.StopInterrupted, nil
		}
		if err != nil || !more || out.Stop != agent.StopDone {
			return out, err
		}
	}
}

// turns is one turn, or in goal mode as many as the goal takes.
func (d *drive) turns(ctx context.Context) (agent.Outcome, error) {
	for {
		out, err := d.loop.Run(ctx, d.spec.Answers)
		if err != nil || d.spec.Mode != ModeGoal || (out.Stop != agent.StopDone && out.Stop != agent.StopBlocked) {
			return out, err
		}
		if d.goal.Turn.Ended {
			return d.finished(out), nil
		}
		turn := goal.Decide(d.lastTurn(), d.goal.Report, d.spec.BlockedRepeats)
		next := ""
		if !turn.Ended {
			next = goal.Next(turn, d.goal.Report)
		}
		key := fmt.Sprintf("%s%s:%d", goal.KeyPrefix, turn.GoalID, turn.N)
		err = d.loop.TurnOver(ctx, goal.NoteTurn, turn, key, next)
		if err != nil && ctx.Err() != nil && !errors.Is(err, session.ErrFenced) {
			out.Stop = agent.StopInterrupted
			return out, nil
		}
		if err != nil {
			return out, fmt.Errorf("end the goal's turn: %w", err)
		}
		if turn.Ended {
			return d.finished(out), nil
		}
	}
}

func (d *drive) lastTurn() goal.Turn {
	t := d.goal.Turn
	t.GoalID = d.goal.GoalID
	return t
}

// ended stops the loop where the goal's report ends it: after the results of the message that reported.
func (d *drive) ended() agent.Stop {
	if d.spec.Mode != ModeGoal {
		return ""
	}
	if r := d.goal.Report; r != nil {
		return stopOf(r.Disposition)
	}
	if d.goal.Turn.Ended {
		return stopOf(d.goal.Turn.Status)
	}
	return ""
}

func stopOf(s goal.Disposition) agent.Stop {
	switch s {
	case goal.Complete:
		return agent.StopDone
	case goal.Blocked:
		return agent.StopBlocked
	}
	return ""
}

// finished words the end of a goal: the model's last text, else its report.
func (d *drive) finished(out agent.Outcome) agent.Outcome {
	r := d.goal.Last
	if r == nil {
		return out
	}
	switch {
	case r.Disposition == goal.Blocked:
		out.Stop, out.Text = agent.StopBlocked, r.Reason
	case out.Text == "":
		out.Text = r.Summary
	}
	return out
}

func (d *drive) redact(s string) string {
	if d.spec.Redact == nil {
		return s
	}
	return d.spec.Redact(s)
}
