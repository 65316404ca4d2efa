package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"reasonix/internal/permission"
	"reasonix/internal/session"
	"reasonix/internal/tool"
)

// judged is an open call with everything that decides what becomes of it.
type judged struct {
	session.Open
	tool     tool.Tool
	args     json.RawMessage
	paths    []string
	failure  string         // it can never run: the text for the model
	question *tool.Question // it is a question, not an action
	decision permission.Decision
	pending  *Pending // the last question about it, nil when there was none
	answer   *Answer  // the answer to exactly that question
	decided  bool     // the answer stands in the transcript
	effects  int      // Loop.effects when it was judged
}

// serial is a ReadOnly tool whose calls must not overlap, because the last one wins.
type serial interface{ Serial() bool }

// reader tells whether the call may overlap with its neighbours.
func (j *judged) reader() bool {
	if j.tool == nil || !j.tool.ReadOnly() {
		return false
	}
	s, ok := j.tool.(serial)
	return !ok || !s.Serial()
}

// judgeAll judges every open call before any runs.
func (l *Loop) judgeAll(ctx context.Context) ([]*judged, error) {
	var out []*judged
	for _, o := range l.where.Open() {
		j := &judged{Open: o}
		if err := j.recall(); err != nil {
			return nil, err
		}
		l.judge(ctx, j)
		l.match(j)
		out = append(out, j)
	}
	return out, ctx.Err()
}

// recall reads what was asked and answered about the call from the transcript.
func (j *judged) recall() error {
	if j.Pending != nil {
		j.pending = &Pending{}
		if err := json.Unmarshal(j.Pending, j.pending); err != nil {
			return fmt.Errorf("read the question about call %s: %w", j.Call.ID, err)
		}
	}
	if j.Decision != nil {
		j.answer, j.decided = &Answer{}, true
		if err := json.Unmarshal(j.Decision, j.answer); err != nil {
			return fmt.Errorf("read the answer about call %s: %w", j.Call.ID, err)
		}
	}
	return nil
}

// match finds the answer to the question that now stands. One that was given to an older question, to another call or twice
// changes nothing.
func (l *Loop) match(j *judged) {
	if j.pending == nil || j.decided {
		return
	}
	for i := range l.answers {
		a := &l.answers[i]
		if a.CallID == j.Call.ID && a.Digest == j.pending.Digest {
			j.answer = a
			return
		}
	}
}

// judge decodes the call once and asks the gate.
func (l *Loop) judge(ctx context.Context, j *judged) {
	j.effects = l.effects
	j.failure, j.question, j.decision = "", nil, permission.Decision{}
	if j.Index >= maxCalls {
		j.failure = fmt.Sprintf("not run: a message may hold at most %d calls", maxCalls)
		return
	}
	args, err := l.cfg.Tools.Decode(j.Call.Name, j.Call.Arguments)
	t, known := l.cfg.Tools.Get(j.Call.Name)
	if known && isUnparsed(j.Call.Arguments) {
		err = fmt.Errorf("the arguments of %s were not a JSON object; nothing was run", j.Call.Name)
	}
	if err != nil {
		j.failure = fmt.Sprintf("error: %v", err)
		return
	}
	j.tool, j.args = t, args
	if asker, ok := t.(tool.Asker); ok {
		q, err := asker.Question(args)
		if err != nil {
			j.failure = fmt.Sprintf("error: %v", err)
			return
		}
		if l.cfg.Unasked != "" && q.Kind == "question" {
			j.failure = l.cfg.Unasked
			return
		}
		j.question = &q
		if d := l.cfg.Gate.Judge(ctx, l.gateCall(j)); d.Verdict == permission.Deny { // no answer is needed to what may not be asked
			j.decision = d
		}
		return
	}
	j.decision = l.cfg.Gate.Judge(ctx, l.gateCall(j))
}

func (l *Loop) gateCall(j *judged) permission.Call {
	c := permission.Call{Tool: j.Call.Name, Args: j.args, ReadOnly: j.tool.ReadOnly(), Root: l.cfg.WorkDir, Asked: j.pending != nil}
	j.paths = nil
	if p, ok := j.tool.(tool.Pather); ok {
		j.paths = p.Paths(j.args)
	}
	for _, raw := range j.paths {
		c.Paths = append(c.Paths, permission.Path{Raw: raw, Resolved: l.resolve(raw)})
	}
	return c
}

func (l *Loop) resolve(path string) string {
	if l.cfg.Resolve != nil {
		return l.cfg.Resolve(path)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.cfg.WorkDir, path)
	}
	return filepath.Clean(path)
}

// fate is what becomes of a judged call now.
type fate int

const (
	fateRun     fate = iota
	fateUnknown      // it was started before and left no result
	fateFail         // it cannot be decoded
	fateRefuse       // policy or a hook says no
	fateDenied       // a person says no
	fateReply        // a person answered its question
	fateAsk          // it needs a person
)

// fate follows from the judgement and the answer. A person's no holds against any later yes of the policy, and the policy's
// no against any earlier yes of a person.
func (j *judged) fate() fate {
	switch {
	case j.Started:
		return fateUnknown
	case j.failure != "":
		return fateFail
	case j.question != nil && j.decision.Verdict == permission.Deny:
		return fateRefuse
	case j.question != nil && j.answer != nil:
		return fateReply
	case j.question != nil:
		return fateAsk
	case j.answer != nil && !j.answer.Allows():
		return fateDenied
	}
	switch j.decision.Verdict {
	case permission.Allow:
		return fateRun
	case permission.Ask, permission.AskHuman:
		if j.answer != nil {
			return fateRun
		}
		return fateAsk
	}
	return fateRefuse
}
