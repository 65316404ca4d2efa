package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"reasonix/internal/agent"
	"reasonix/internal/approval"
	"reasonix/internal/chat"
	"reasonix/internal/evidence"
	"reasonix/internal/session"
	"reasonix/internal/workspace"
)

// receipt is what the task shows for itself: host facts beside the model's word.
func (a *attempt) receipt(ctx context.Context, hv workspace.Harvest, p Progress) (*chat.ReceiptView, error) {
	entries, err := a.Ledger.Transcript(a.t.ID, a.t.SessionID, 0).Entries(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("read transcript for the receipt: %w", err)
	}
	facts := evidence.Collect(entries)
	r := &chat.ReceiptView{AskedBy: a.t.Spec.Asks.Requester, BaseCommit: hv.Base, HeadCommit: hv.Head, Tools: facts.ToolFields(), Checks: facts.CheckFields(), HostFacts: facts.Notes()}
	for _, ask := range a.claim.Asks {
		if ask.Answer != nil && ask.Kind != approval.KindQuestion {
			r.Approvals = append(r.Approvals, fmt.Sprintf("%s by %s (digest %s)", labelOf(ask), ask.Answer.Person, short(ask.Digest)))
		}
	}
	for _, s := range a.t.Sources {
		r.Sources = append(r.Sources, s.Title+" by "+s.Author)
	}
	r.Usage = a.usageFields(p)
	return r, nil
}

func (a *attempt) usageFields(p Progress) []chat.Field {
	total, u := add(a.t.Spent, p.Spent), a.t.Usage.Add(p.Usage)
	f := []chat.Field{
		{Label: "Model calls", Value: fmt.Sprint(total.Steps)},
		{Label: "Tokens", Value: fmt.Sprintf("%d in, %d out (%d cached)", u.Input, u.Output, u.CacheRead)},
		{Label: "Running time", Value: stamp(total.Time)},
	}
	if cost, currency := a.Workshop.Price(a.t.Spec.Model)(u.Input, u.CacheRead, u.Output); currency != "" {
		f = append(f, chat.Field{Label: "Cost", Value: fmt.Sprintf("%.4f %s", float64(cost)/1e6, currency)})
	}
	return append(f, chat.Field{Label: "From request to result", Value: stamp(a.Now().Sub(a.t.Created).Round(time.Second))})
}

func decisionText(e session.Entry) string {
	var d agent.Answer
	if json.Unmarshal(e.Data, &d) != nil || d.By == "" {
		return string(e.Data)
	}
	text := d.Choice + " by " + d.By
	if d.Text != "" {
		text += ": " + d.Text
	}
	return text
}

func noteText(e session.Entry) string {
	if e.Message != nil {
		return e.Message.Content
	}
	var s string
	if json.Unmarshal(e.Data, &s) == nil && s != "" {
		return s
	}
	return e.Name
}
