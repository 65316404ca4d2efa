package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"reasonix/internal/session"
)

// park posts all questions of the message together: of the call that needs a person, and of every later one that does so as
// judged now. The tree is hashed once for all of them.
func (l *Loop) park(ctx context.Context, calls []*judged) error {
	tree, err := l.tree(ctx)
	if err != nil {
		return err
	}
	var entries []session.Entry
	for _, j := range calls {
		l.refresh(ctx, j)
		if j.fate() != fateAsk {
			continue
		}
		p, fresh, err := l.pend(ctx, j, tree)
		if err != nil {
			return err
		}
		l.out.Pending = append(l.out.Pending, p)
		if !fresh {
			continue
		}
		data, err := json.Marshal(p)
		if err != nil {
			return fmt.Errorf("ask about call %s: %w", p.CallID, err)
		}
		entries = append(entries, session.Entry{Kind: session.KindPending, CallID: p.CallID, Name: p.Kind, Data: data})
	}
	if err := l.append(ctx, entries...); err != nil {
		return err
	}
	for _, p := range l.out.Pending {
		l.observe(Observation{Kind: "decision", CallID: p.CallID, Tool: p.Tool, Text: p.Title})
	}
	return nil
}

// pend words the question; one that stands in the transcript unchanged is returned as it is.
func (l *Loop) pend(ctx context.Context, j *judged, tree TreeState) (p Pending, fresh bool, err error) {
	digest, err := l.digest(j, tree)
	if err != nil {
		return p, false, err
	}
	if j.pending != nil && j.Decision == nil && j.pending.Digest == digest {
		return *j.pending, false, nil
	}
	p = Pending{CallID: j.Call.ID, Kind: "approval", Tool: j.Call.Name, Args: j.args, Decision: j.decision, Digest: digest, Tree: tree}
	if j.question != nil {
		p.Kind, p.Title, p.Text, p.Options = j.question.Kind, j.question.Title, j.question.Text, j.question.Options
		return p, true, nil
	}
	p.Title, p.Text = describe(j.tool, j.args)
	p.Offers = l.cfg.Gate.Offers(l.gateCall(j))
	if j.pending != nil {
		p.Drift, err = l.difference(ctx, j, tree)
	}
	return p, true, err
}

// difference says in words why a call is asked again.
func (l *Loop) difference(ctx context.Context, j *judged, now TreeState) (string, error) {
	was := j.pending.Tree
	var b bytes.Buffer
	if was.Hash != now.Hash && l.cfg.Tree != nil {
		d, err := l.cfg.Tree.Difference(ctx, was.Hash)
		if err != nil {
			d = fmt.Sprintf("the difference cannot be shown: %v", err)
		}
		fmt.Fprintf(&b, "The workspace changed since this was asked:\n%s\n", d)
	}
	if was.Base != now.Base {
		fmt.Fprintf(&b, "The base commit changed from %s to %s.\n", was.Base, now.Base)
	}
	if was.Head != now.Head {
		fmt.Fprintf(&b, "The head commit changed from %s to %s.\n", was.Head, now.Head)
	}
	if b.Len() == 0 {
		b.WriteString("The rules or the sandbox policy changed since this was asked.\n")
	}
	return l.redact(string(bytes.TrimRight(b.Bytes(), "\n"))), nil
}
