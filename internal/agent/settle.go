package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"reasonix/internal/permission"
	"reasonix/internal/provider"
	"reasonix/internal/session"
)

// settle gives every open call its result, in call order, until one needs a person.
func (l *Loop) settle(ctx context.Context) (Stop, error) {
	calls, err := l.judgeAll(ctx)
	if err != nil {
		return "", err
	}
	if err := l.decide(ctx, calls); err != nil {
		return "", err
	}
	for i := 0; i < len(calls); {
		l.refresh(ctx, calls[i])
		if calls[i].fate() == fateAsk {
			return StopPending, l.park(ctx, calls[i:])
		}
		n, err := l.advance(ctx, calls[i:])
		if err != nil {
			return "", err
		}
		i += n
	}
	return "", nil
}

// refresh judges a call again when calls before it had effects: a link that they made may have moved its target.
func (l *Loop) refresh(ctx context.Context, j *judged) {
	if j.effects == l.effects || j.Started {
		return
	}
	l.judge(ctx, j)
	if j.decided && l.drifted(j, j.pending.Tree) {
		j.answer, j.decided = nil, false
	}
}

// advance settles the first call, and with it the readers that stand right behind it; it returns how many it settled.
func (l *Loop) advance(ctx context.Context, calls []*judged) (int, error) {
	j := calls[0]
	if j.fate() != fateRun {
		return 1, l.answerFor(ctx, j)
	}
	if !j.reader() {
		return 1, l.runEffect(ctx, j)
	}
	n := 1
	for ; n < len(calls); n++ {
		l.refresh(ctx, calls[n])
		if calls[n].fate() != fateRun || !calls[n].reader() {
			break
		}
	}
	return n, l.runReaders(ctx, calls[:n])
}

// answerFor appends the result of a call that does not run.
func (l *Loop) answerFor(ctx context.Context, j *judged) error {
	var e session.Entry
	switch j.fate() {
	case fateUnknown:
		e = l.unknownResult(j.Call)
	case fateFail:
		e = l.result(j.Call, j.failure, session.Fact{})
	case fateRefuse:
		e = l.result(j.Call, blockedText(j.decision), session.Fact{Refused: true, Command: command(j.args), Paths: j.paths})
	case fateDenied:
		e = l.result(j.Call, deniedText(*j.answer), session.Fact{Refused: true, Digest: j.answer.Digest, Command: command(j.args), Paths: j.paths})
	case fateReply:
		e = l.result(j.Call, replyText(j.question.Kind, *j.answer), replyFact(j.question.Kind, *j.answer))
	}
	if err := l.append(ctx, e); err != nil {
		return err
	}
	l.settled(e)
	return nil
}

// settled counts and shows a result that stands in the transcript.
func (l *Loop) settled(e session.Entry) {
	if e.Fact.Refused {
		l.out.Refusals++
	}
	l.observe(Observation{Kind: "result", CallID: e.CallID, Tool: e.Fact.Tool, Text: e.Message.Content, OK: e.Fact.OK})
}

func (l *Loop) result(c provider.ToolCall, text string, f session.Fact) session.Entry {
	f.Tool = c.Name
	return session.Entry{Kind: session.KindResult, CallID: c.ID, Fact: &f,
		Message: &provider.Message{Role: provider.RoleTool, ToolCallID: c.ID, Name: c.Name, Content: bound(l.redact(text))}}
}

func (l *Loop) unknownResult(c provider.ToolCall) session.Entry {
	return l.result(c, "outcome unknown: check before repeating. This call was started, but the host stopped before its result was "+
		"recorded; it may have had its effect wholly, in part or not at all.", session.Fact{Unknown: true})
}

func blockedText(d permission.Decision) string {
	text := "blocked: " + d.Reason
	if d.Rule != "" {
		text += fmt.Sprintf(" (rule %s)", d.Rule)
	}
	return text + "\nThe call did not run. Reach the goal another way, or say what is missing."
}

func deniedText(a Answer) string {
	text := "denied by " + a.By
	if a.Text != "" {
		text += ": " + a.Text
	}
	return text + "\nThe call did not run. Do not repeat it; go on another way, or say what is missing."
}

func replyText(kind string, a Answer) string {
	text := a.Text
	switch {
	case a.Choice == "deny":
		return deniedText(a)
	case kind != "plan":
		return text
	case a.Choice == "approve":
		return join("The plan is approved by "+a.By+". Carry it out.", text)
	case a.Choice == "approve-changes":
		return join("The plan is approved by "+a.By+" with changes:", text)
	}
	return join("The plan is rejected by "+a.By+". Change it and present it again.", text)
}

// replyFact: who approved a plan stands in the receipt, as with any other approval.
func replyFact(kind string, a Answer) session.Fact {
	f := session.Fact{OK: a.Choice != "deny" && a.Choice != "reject", Refused: a.Choice == "deny"}
	if kind == "plan" && f.OK {
		f.Approved, f.Digest = a.By, a.Digest
	}
	return f
}

func join(head, text string) string {
	if text == "" {
		return head
	}
	return head + "\n" + text
}

// decide records the answers that still fit what was asked. The tree is compared once, before the first approved call of the
// message; afterwards its own effects are no drift, because the recorded decision says that the comparison was made.
func (l *Loop) decide(ctx context.Context, calls []*judged) error {
	var entries []session.Entry
	var news []Observation
	var now *TreeState
	for _, j := range calls {
		if j.answer == nil || j.Started {
			continue
		}
		if j.decided {
			if l.drifted(j, j.pending.Tree) {
				j.answer, j.decided = nil, false
			}
			continue
		}
		if l.bound(j) {
			if now == nil {
				s, err := l.tree(ctx)
				if err != nil {
					return err
				}
				now = &s
			}
			if l.drifted(j, *now) {
				j.answer = nil
				continue
			}
		}
		e, err := l.record(j)
		if err != nil {
			return err
		}
		entries = append(entries, e)
		text := join(j.answer.Choice+" by "+j.answer.By, j.answer.Text)
		news = append(news, Observation{Kind: "decision", CallID: e.CallID, Tool: e.Name, Text: text, OK: j.answer.Choice != "deny"})
	}
	if err := l.append(ctx, entries...); err != nil {
		return err
	}
	for _, o := range news {
		l.observe(o)
	}
	return nil
}

// record makes the entry of an answer that stands.
func (l *Loop) record(j *judged) (session.Entry, error) {
	a := *j.answer
	a.Text = l.redact(a.Text)
	data, err := json.Marshal(a)
	if err != nil {
		return session.Entry{}, fmt.Errorf("record the decision about call %s: %w", j.Call.ID, err)
	}
	j.answer, j.decided = &a, true
	return session.Entry{Kind: session.KindDecision, CallID: j.Call.ID, Name: j.Call.Name, Data: data}, nil
}

// bound tells whether the answer lets an action run that only the answer allows: then it must still be the action shown.
func (l *Loop) bound(j *judged) bool {
	v := j.decision.Verdict
	return j.question == nil && j.failure == "" && j.answer.Allows() && (v == permission.Ask || v == permission.AskHuman)
}

// drifted tells whether the action, acting on that tree, is another one than the answer was given to.
func (l *Loop) drifted(j *judged, tree TreeState) bool {
	if !l.bound(j) {
		return false
	}
	digest, err := l.digest(j, tree)
	return err != nil || digest != j.answer.Digest
}

func (l *Loop) digest(j *judged, tree TreeState) (string, error) {
	a := Action{Tool: j.Call.Name, Args: j.args, WorkDir: cmp.Or(l.cfg.Place, l.cfg.WorkDir)}
	if j.question == nil { // a question acts on nothing
		a.Tree, a.Base, a.Head = tree.Hash, tree.Base, tree.Head
		a.Gate, a.Box = l.cfg.Gate.Digest(), l.cfg.BoxDigest
	}
	return Digest(a)
}

func (l *Loop) tree(ctx context.Context) (TreeState, error) {
	if l.cfg.Tree == nil {
		return TreeState{}, nil
	}
	s, err := l.cfg.Tree.State(ctx)
	if err != nil {
		return TreeState{}, fmt.Errorf("read the state of the workspace: %w", err)
	}
	return s, nil
}
