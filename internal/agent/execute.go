package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"reasonix/internal/permission"
	"reasonix/internal/session"
	"reasonix/internal/tool"
)

const (
	maxResult = 32 << 10 // bytes of one result that the model reads (Spec, section 3.6)
	maxReads  = 8        // read-only calls at once
)

func bound(s string) string { return tool.Bound(s, maxResult) }

// errStopped: the attempt was stopped while a call ran.
var errStopped = errors.New("stopped while a call ran")

// runEffect starts a call at most once: its intent stands in the transcript, under a live lease, before it begins.
func (l *Loop) runEffect(ctx context.Context, j *judged) error {
	if !j.tool.ReadOnly() {
		if l.cfg.Quiet != nil {
			l.cfg.Quiet(ctx)
		}
		intent := session.Entry{Kind: session.KindIntent, CallID: j.Call.ID, Name: j.Call.Name}
		if err := l.append(ctx, intent); err != nil {
			return err
		}
		l.effects++
	}
	l.showCall(j)
	e, stopped := l.execute(ctx, j)
	if stopped && j.tool.ReadOnly() {
		return errStopped
	}
	keep, cancel := detached(ctx)
	defer cancel()
	if err := l.append(keep, append(l.cfg.Notebook.drain(), e)...); err != nil {
		return err
	}
	l.settled(e)
	if stopped {
		return errStopped
	}
	return nil
}

// runReaders overlaps read-only calls and appends their results in call order, together.
func (l *Loop) runReaders(ctx context.Context, calls []*judged) error {
	results := make([]session.Entry, len(calls))
	stopped := make([]bool, len(calls))
	var g errgroup.Group
	g.SetLimit(maxReads)
	for i, j := range calls {
		l.showCall(j)
		g.Go(func() error {
			results[i], stopped[i] = l.execute(ctx, j)
			return nil
		})
	}
	_ = g.Wait() // no reader returns an error: its result tells
	for _, s := range stopped {
		if s {
			return errStopped // reads may be repeated
		}
	}
	keep, cancel := detached(ctx)
	defer cancel()
	if err := l.append(keep, append(l.cfg.Notebook.drain(), results...)...); err != nil {
		return err
	}
	for _, e := range results {
		l.settled(e)
	}
	return nil
}

// execute runs the tool and words its result. stopped: the attempt ended under it, so nothing is known about its effect.
func (l *Loop) execute(ctx context.Context, j *judged) (e session.Entry, stopped bool) {
	began := time.Now()
	ctx, report := tool.WithReport(ctx)
	if j.answer != nil && j.answer.Allows() && j.decision.Kind == permission.KindWrite {
		ctx = tool.WithWrites(ctx, j.decision.Writes)
	}
	text, err := safely(ctx, j)
	f := session.Fact{OK: err == nil && report.ExitCode == 0, Command: command(j.args), ExitCode: report.ExitCode, Changes: tool.ChangesWorkspace(j.tool), Live: report.Live,
		Paths: j.paths, DurationMS: time.Since(began).Milliseconds()}
	if report.Open {
		f.Command = "" // started is not passed
	}
	if report.Command != "" {
		f.Command = report.Command
	}
	if len(report.Paths) > 0 {
		f.Paths = report.Paths
	}
	if j.answer != nil && j.answer.Allows() {
		f.Digest, f.Approved = j.answer.Digest, j.answer.By
	}
	if err != nil && ctx.Err() != nil {
		f.Unknown = !j.tool.ReadOnly()
		return l.result(j.Call, join("outcome unknown: check before repeating. The call was stopped while it ran.", text), f), true
	}
	if err != nil {
		text = join("error: "+err.Error(), text)
	}
	if l.cfg.After != nil {
		said := l.cfg.After(ctx, Ran{Tool: j.Call.Name, Args: j.args, Text: text, OK: f.OK})
		text = bound(text) // what hooks say must not fall into the gap of a long result
		if said != "" {
			text = join(text, said)
		}
	}
	return l.result(j.Call, text, f), false
}

// safely keeps a broken tool from taking the host down.
func safely(ctx context.Context, j *judged) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			text, err = "", fmt.Errorf("the tool %s crashed: %v", j.Call.Name, p)
		}
	}()
	return j.tool.Execute(ctx, j.args)
}

func command(args json.RawMessage) string {
	var a struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(args, &a) != nil {
		return ""
	}
	return a.Command
}

func (l *Loop) showCall(j *judged) {
	_, text := describe(j.tool, j.args)
	l.observe(Observation{Kind: "call", CallID: j.Call.ID, Tool: j.Call.Name, Text: text, OK: true})
}
