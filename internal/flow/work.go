package flow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reasonix/internal/agent"
	"reasonix/internal/approval"
	"reasonix/internal/budget"
	"reasonix/internal/permission"
	"reasonix/internal/provider"
	"reasonix/internal/run"
	"reasonix/internal/task"
)

// Causes that end an attempt from outside.
var (
	errStopped = errors.New("the task was stopped")
	errLost    = errors.New("the lease was lost")
)

// attempt is one job: claim the task, work until it parks, ends or must stop, and leave the truth in its row.
func (h *Host) attempt(ctx context.Context, taskID string) error {
	if h.draining.Load() {
		return nil // the next host's sweeper wakes it
	}
	h.attempts.Add(1)
	defer h.attempts.Done()
	claim, err := h.Ledger.Claim(ctx, taskID, h.ID, h.LeaseTTL)
	if errors.Is(err, ErrLeased) || errors.Is(err, ErrState) || errors.Is(err, ErrUnknown) {
		return nil // a doubled or late job harms nothing
	}
	if err != nil {
		return fmt.Errorf("claim task %s: %w", taskID, err)
	}
	a := &attempt{Host: h, claim: claim, t: claim.Task, held: claim.Held(), started: h.Now()}
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		a.keepLease(work, cancel)
	}()
	err = a.work(work)
	cancel(nil)
	<-kept
	if errors.Is(err, ErrFenced) || err != nil && errors.Is(context.Cause(work), errLost) {
		h.Log.Warn("another worker took the task over; this attempt left no trace", "task", taskID)
		return nil
	}
	if err != nil {
		return fmt.Errorf("work on task %s: %w", taskID, err)
	}
	return nil
}

// unasked is a question's result on a headless route.
const unasked = "nobody can be asked here: decide with a sensible default and report it as an assumption, or say what is missing"

// attempt is one stretch of running.
type attempt struct {
	*Host
	claim   Claim
	t       task.Task
	held    Held
	bench   Bench
	started time.Time
	offered []int64 // inbox items given to the loop since the last look

	standing *run.Standing
	setBy    string // who set the posture that now holds
	purse    *dayLedger
}

// work drives the attempt. Its writes after the run use a context that outlives a shutdown for a moment.
func (a *attempt) work(ctx context.Context) error {
	a.Host.state(a.t, "running")
	if a.t.CancelBy != "" {
		return a.finishCancelled(ctx, a.t.CancelBy, Progress{})
	}
	grants, err := a.Ledger.Grants(ctx, a.t.Spec.Route, a.t.ID)
	if err != nil {
		return fmt.Errorf("read grants: %w", err)
	}
	bench, err := a.Workshop.Prepare(ctx, a.t, grants)
	if err != nil {
		return a.afterStop(ctx, Progress{}, func(ctx context.Context) error {
			return a.trouble(ctx, Progress{}, "The workspace could not be prepared", err)
		})
	}
	a.bench = bench
	a.standing, a.setBy = run.NewStanding(a.t.Spec.Posture, a.t.Spec.Mode == task.ModePlan), a.t.Spec.PostureBy
	a.purse = a.ledger()
	spec := a.spec()
	if a.t.Spec.Headless {
		spec.Unasked = unasked
	}
	if err := bench.Equip(ctx, &spec); err != nil {
		return a.afterStop(ctx, Progress{}, func(ctx context.Context) error {
			return a.trouble(ctx, Progress{}, "The task could not be equipped", err)
		})
	}
	out, err := run.Drive(ctx, spec)
	progress := a.progress(out)
	return a.afterStop(ctx, progress, func(ctx context.Context) error {
		ended := bench.Close()
		if err != nil {
			return a.trouble(ctx, progress, "The work stopped on an error", err)
		}
		return a.settle(ctx, out, progress, ended)
	})
}

// afterStop settles an attempt, unless it was ended from outside — before, or while it was being settled. Harvest and push of a large
// repository may take long, so settling has no limit of its own; only the last words of a host that goes down are short.
func (a *attempt) afterStop(ctx context.Context, p Progress, then func(context.Context) error) error {
	if ctx.Err() != nil {
		return a.ended(ctx, p)
	}
	err := then(ctx)
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrFenced) {
		return a.ended(ctx, p)
	}
	return err
}

// lastWords is how long a host that goes down may take to say where an attempt stands.
const lastWords = 20 * time.Second

// ended leaves the truth about an attempt that was ended from outside.
func (a *attempt) ended(ctx context.Context, p Progress) error {
	a.closeBench()
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	cause := context.Cause(ctx)
	if errors.Is(cause, errLost) {
		return ErrFenced
	}
	if !errors.Is(cause, errStopped) { // the host goes down: the next one continues here
		return a.Ledger.Yield(writing, a.held, p)
	}
	t, err := a.Ledger.Task(writing, a.t.ID)
	if err != nil {
		return err
	}
	return a.finishCancelled(writing, t.CancelBy, p)
}

func (a *attempt) closeBench() {
	if a.bench != nil {
		a.bench.Close()
	}
}

// keepLease renews until ctx ends, and ends the attempt when the lease is lost or somebody stopped the task.
func (a *attempt) keepLease(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(a.LeaseTTL / 3)
	defer tick.Stop()
	good := time.Now()
	for {
		changed := a.Ledger.Changed(a.t.ID)
		t, err := a.Ledger.Renew(ctx, a.held, a.LeaseTTL)
		switch {
		case err == nil && t.CancelBy != "":
			cancel(errStopped)
			return
		case err == nil:
			good = time.Now()
		case errors.Is(err, ErrFenced) || time.Since(good) > a.LeaseTTL:
			cancel(errLost)
			return
		}
		if !wait(ctx, tick.C, changed, a.LeaseTTL/15) {
			return
		}
	}
}

// wait returns on the tick, or on a change but not before pause, so that a busy transcript does not renew all the time.
func wait(ctx context.Context, tick <-chan time.Time, changed <-chan struct{}, pause time.Duration) bool {
	least := time.NewTimer(pause)
	defer least.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-least.C:
	}
	select {
	case <-ctx.Done():
		return false
	case <-tick:
	case <-changed:
	}
	return true
}

func (a *attempt) spec() run.Spec {
	t := a.t
	return run.Spec{
		Session:   a.Ledger.Transcript(t.ID, t.SessionID, t.Fence),
		Mode:      string(t.Spec.Mode),
		Prompt:    promptOf(t),
		PromptKey: promptKey(t),
		Notes:     notesOf(a.claim.Asks),
		Answers:   answersOf(a.claim.Asks),
		MaxSteps:  a.stepsLeft(),
		Meter: budget.NewMeter(budget.MeterConfig{
			Ledger: a.purse, Limits: t.Spec.Limits, Price: a.Workshop.Price(t.Spec.Model), Estimate: a.estimate(), Now: a.Now,
		}),
		Inbox:     a.inbox,
		Draining:  a.draining.Load,
		Observe:   func(o agent.Observation) { a.feed.observe(t.ID, o, a.Now()) },
		Redact:    a.Redactor.String,
		Standing:  a.standing,
		PostureBy: func() string { return a.setBy },
	}
}

// promptKey names a task's request in the transcript, which it may share with the tasks before it.
func promptKey(t task.Task) string { return "task:" + t.ID }

func (a *attempt) stepsLeft() int {
	limit := a.t.Spec.MaxSteps
	if l := a.t.Spec.Limits.Steps; l > 0 && (limit == 0 || l < limit) {
		limit = l
	}
	if limit == 0 {
		return 0
	}
	return max(1, limit-a.t.Spent.Steps)
}

// inbox reads steering text. What the call before gave out is in the transcript by now and leaves the inbox; after a crash between the two the
// key keeps it from being told twice.
func (a *attempt) inbox(ctx context.Context) ([]agent.Steer, error) {
	if err := a.consume(ctx); err != nil {
		return nil, err
	}
	if err := a.lookAround(ctx); err != nil {
		return nil, err
	}
	items, err := a.Ledger.Inbox(ctx, a.t.ID)
	if err != nil {
		return nil, fmt.Errorf("read inbox: %w", err)
	}
	steers := make([]agent.Steer, len(items))
	for i, it := range items {
		a.offered = append(a.offered, it.ID)
		steers[i] = agent.Steer{Key: fmt.Sprintf("inbox:%d", it.ID), Text: fmt.Sprintf("Message from %s while you work:\n\n%s", it.Actor, it.Text)}
	}
	return steers, nil
}

// lookAround takes over what people changed while the task runs: a posture, and grants that were revoked or given by another task's ask. It
// holds from this turn boundary on.
func (a *attempt) lookAround(ctx context.Context) error {
	t, err := a.Ledger.Task(ctx, a.t.ID)
	if err != nil {
		return fmt.Errorf("read posture: %w", err)
	}
	if t.Spec.Posture != a.standing.Posture() {
		a.standing.SetPosture(t.Spec.Posture)
		a.setBy = t.Spec.PostureBy
	}
	grants, err := a.Ledger.Grants(ctx, t.Spec.Route, t.ID)
	if err != nil {
		return fmt.Errorf("read grants: %w", err)
	}
	a.standing.SetGrants(GrantRules(grants))
	return nil
}

func (a *attempt) consume(ctx context.Context) error {
	if len(a.offered) == 0 {
		return nil
	}
	if err := a.Ledger.Consumed(ctx, a.held, a.offered); err != nil {
		return fmt.Errorf("empty inbox: %w", err)
	}
	a.offered = nil
	return nil
}

func (a *attempt) progress(out run.Outcome) Progress {
	cost := a.Workshop.Price(a.t.Spec.Model).Cost(out.Usage)
	return Progress{
		Usage: out.Usage,
		Spent: budget.Spent{Tokens: out.Usage.Total(), Cost: cost, Steps: out.Steps, Time: a.Now().Sub(a.started)},
	}
}

// settle turns how the run ended into an arrow.
func (a *attempt) settle(ctx context.Context, out run.Outcome, p Progress, ended []string) error {
	if err := a.consume(ctx); err != nil {
		return err
	}
	if err := a.bench.Snapshot(ctx); err != nil {
		a.Log.Warn("snapshot failed; the workspace itself is kept", "task", a.t.ID, "error", err)
	}
	spent := a.t
	spent.Spent = spent.Spent.Add(p.Spent)
	switch out.Stop {
	case agent.StopPending:
		if a.t.Spec.Headless {
			return a.endOnQuestion(ctx, out, p)
		}
		return a.park(ctx, p, approval.Kind(out.Pending[0].Kind), a.asksFor(out.Pending))
	case agent.StopSteps, agent.StopBudget:
		if full := a.purse.full; full != nil && out.Stop == agent.StopBudget {
			return a.parkOr(ctx, p, approval.KindBudget, a.dayAsk(a.t, full, a.Now()), "It reached "+full.Error()+".")
		}
		return a.parkOr(ctx, p, approval.KindBudget, limitAsk(spent, out.Limit, a.Now()), "It reached "+out.Limit+".")
	case agent.StopBlocked:
		why := "The model reports that it cannot go on: "
		if out.Report != nil {
			why += out.Report.Reason
		}
		return a.parkOr(ctx, p, approval.KindBlocked, stuckAsk(spent, approval.KindBlocked, "The task is blocked", why, a.Now()), why)
	case agent.StopDrained, agent.StopInterrupted:
		return a.Ledger.Yield(ctx, a.held, p)
	case agent.StopDone:
		return a.finishOrGoOn(ctx, out, p)
	}
	return fmt.Errorf("the run ended in an unknown way: %q", out.Stop)
}

// trouble is for what a person can mend: the task parks and continues at the same point. Without anybody to ask it fails.
func (a *attempt) trouble(ctx context.Context, p Progress, title string, err error) error {
	if errors.Is(err, ErrFenced) {
		return err
	}
	if errors.Is(err, run.ErrBlockedRequest) {
		return a.fail(ctx, p, capital(err.Error())+".")
	}
	text := a.Redactor.String(err.Error())
	var pe *provider.Error
	if errors.As(err, &pe) {
		title = "The model could not be used"
		text += " Look at it with `reasonix doctor`, then continue; nothing of the work is lost."
	}
	return a.parkOr(ctx, p, approval.KindBlocked, stuckAsk(a.t, approval.KindBlocked, title, capital(text), a.Now()), title+": "+text)
}

// parkOr parks attended tasks and fails headless ones, which nobody could wake.
func (a *attempt) parkOr(ctx context.Context, p Progress, reason approval.Kind, ask approval.Ask, failure string) error {
	if a.t.Spec.Headless {
		return a.fail(ctx, p, failure)
	}
	return a.park(ctx, p, reason, []approval.Ask{ask})
}

// endOnQuestion ends a headless task that stopped for a person: its plan is its result; a question fails it.
func (a *attempt) endOnQuestion(ctx context.Context, out run.Outcome, p Progress) error {
	first := out.Pending[0]
	if approval.Kind(first.Kind) != approval.KindPlan {
		return a.fail(ctx, p, "It asked a person, and this route is headless: "+first.Text)
	}
	out.Text = "The task ends on its plan: the route is headless, so nobody can approve it here. Nothing was changed.\n\n" + first.Text
	return a.finish(ctx, out, p)
}

// GrantRules are grants as the policy reads them; granted folders are roots, not rules.
func GrantRules(grants []Grant) []permission.Rule {
	var rules []permission.Rule
	for _, g := range grants {
		if _, folder := g.WriteDir(); !folder {
			rules = append(rules, permission.Rule{Text: g.Rule, Source: "granted by " + g.By})
		}
	}
	return rules
}

// SurfaceOf tells permission whether a person can be asked.
func SurfaceOf(t task.Task) permission.Surface {
	if t.Spec.Headless {
		return permission.Headless
	}
	return permission.Attended
}
