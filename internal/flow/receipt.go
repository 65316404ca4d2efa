package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"reasonix/internal/agent"
	"reasonix/internal/budget"
	"reasonix/internal/chat"
	"reasonix/internal/evidence"
	"reasonix/internal/run"
	"reasonix/internal/session"
	"reasonix/internal/workspace"
)

// receipt is what the task shows for itself: host facts beside the model's word.
func (a *attempt) receipt(ctx context.Context, hv workspace.Harvest, p Progress) (*chat.ReceiptView, error) {
	entries, err := a.Ledger.Transcript(a.t.ID, a.t.SessionID, 0).Entries(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("read transcript for the receipt: %w", err)
	}
	facts := evidence.Since(entries, promptKey(a.t))
	r := &chat.ReceiptView{AskedBy: a.t.Spec.Asks.Requester, BaseCommit: hv.Base, HeadCommit: hv.Head}
	facts.Fill(r)
	for _, ask := range a.claim.Asks {
		if ask.Answer != nil && ask.CallID == "" { // decisions on calls stand in the transcript
			r.Approvals = append(r.Approvals, fmt.Sprintf("%s: %s by %s", ask.Title, labelOf(ask), ask.Answer.Person))
		}
	}
	for _, s := range a.t.Sources {
		r.Sources = append(r.Sources, s.Title+" by "+s.Author)
	}
	r.Usage = a.usageFields(p)
	return r, nil
}

func (a *attempt) usageFields(p Progress) []chat.Field {
	total, u := a.t.Spent.Add(p.Spent), a.t.Usage.Add(p.Usage)
	f := []chat.Field{
		{Label: "Model calls", Value: fmt.Sprint(total.Steps)},
		{Label: "Tokens", Value: fmt.Sprintf("%d in, %d out (%d cached)", u.Input, u.Output, u.CacheRead)},
		{Label: "Running time", Value: stamp(total.Time)},
	}
	if price := a.Workshop.Price(a.t.Spec.Model); price.Currency != "" {
		f = append(f, chat.Field{Label: "Cost", Value: budget.FormatMoney(total.Cost, price.Currency)})
	}
	return append(f, chat.Field{Label: "From request to result", Value: stamp(a.Now().Sub(a.t.Created).Round(time.Second))})
}

// decisionWords are the agent's choices as people say them.
var decisionWords = map[string]string{"allow": "approved", "deny": "denied", "approve": "approved", "approve-changes": "approved with changes", "reject": "rejected", "answer": "answered"}

func decisionText(e session.Entry) string {
	var d agent.Answer
	if json.Unmarshal(e.Data, &d) != nil || d.By == "" {
		return string(e.Data)
	}
	text := d.Choice + " by " + d.By
	if word, ok := decisionWords[d.Choice]; ok {
		text = word + " by " + d.By
	}
	if d.Text != "" {
		text += ": " + d.Text
	}
	return text
}

// noteText is what a note says to people; notes that only the host reads say nothing.
func noteText(e session.Entry) string {
	if e.Message != nil {
		return e.Message.Content
	}
	var posture run.PostureNote
	if e.Name == run.NotePosture && json.Unmarshal(e.Data, &posture) == nil {
		return postureText(posture)
	}
	var s string
	if json.Unmarshal(e.Data, &s) == nil {
		return s
	}
	return ""
}

func postureText(n run.PostureNote) string {
	switch {
	case n.From == "": // where the request begins; the controls show it
		return ""
	case n.By == "":
		return fmt.Sprintf("posture %s, before %s", n.To, n.From)
	}
	return fmt.Sprintf("posture %s, before %s, set by %s", n.To, n.From, n.By)
}
