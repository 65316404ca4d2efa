package flow

import (
	"context"
	"fmt"

	"reasonix/internal/agent"
	"reasonix/internal/approval"
)

// asksFor words every pending call of the message.
func (a *attempt) asksFor(pending []agent.Pending) []approval.Ask {
	asks := make([]approval.Ask, len(pending))
	for i, p := range pending {
		asks[i] = askFor(a.t, p, a.Now().UTC())
		for _, old := range a.claim.Asks {
			if old.CallID == p.CallID && p.Drift != "" {
				asks[i].Supersedes = old.ID
			}
		}
	}
	return asks
}

// park ends the attempt with questions to people and frees the lease; the task costs a row until somebody answers.
func (a *attempt) park(ctx context.Context, p Progress, reason approval.Kind, asks []approval.Ask) error {
	posts := []NewPost{statusPost(a.t, "Waiting for an answer ("+string(reason)+")", fmt.Sprint("park:", a.t.Fence))}
	var superseded []string
	for _, ask := range asks {
		if ask.Supersedes != "" {
			superseded = append(superseded, ask.Supersedes)
			posts = append(posts, a.supersededPost(ask.Supersedes))
		}
		posts = append(posts, askPost(ask, a.t, a.People))
	}
	for i := range asks {
		asks[i].Title, asks[i].Text = a.Redactor.String(asks[i].Title), a.Redactor.String(asks[i].Text)
		for j := range asks[i].Blocks {
			asks[i].Blocks[j].Text = a.Redactor.String(asks[i].Blocks[j].Text)
		}
	}
	err := a.Ledger.Park(ctx, Parking{Held: a.held, Progress: p, Reason: reason, Asks: asks, Supersedes: superseded, Posts: a.redacted(posts)})
	if err != nil {
		return fmt.Errorf("park: %w", err)
	}
	a.Host.state(a.t, "parked")
	return nil
}

func (a *attempt) supersededPost(id string) NewPost {
	for _, old := range a.claim.Asks {
		if old.ID == id {
			p := settledPost(old, a.t, "**Asked again**: what this acts on has changed since. A new request stands below.")
			p.Key = "ask:" + id + ":superseded"
			return p
		}
	}
	return NewPost{}
}
