package run

import (
	"context"

	"reasonix/internal/agent"
)

// inbox is the turn boundary: what people said meanwhile, the posture that now holds, and what the progress lease has to say.
func (d *drive) inbox(ctx context.Context) ([]agent.Steer, error) {
	var heard []agent.Steer
	if d.spec.Inbox != nil {
		items, err := d.spec.Inbox(ctx)
		if err != nil {
			return nil, err
		}
		if heard, err = d.screen(ctx, items); err != nil {
			return nil, err
		}
	}
	if err := d.notePosture(ctx); err != nil {
		return nil, err
	}
	if s, ok := d.lease.due(d.spec.PromptKey, d.spec.Mode == ModeGoal); ok && len(heard) == 0 {
		heard = append(heard, s)
	}
	return heard, nil
}

// screen lets UserPromptSubmit hooks read each message before the model does. A blocked one is replaced by word of the block.
func (d *drive) screen(ctx context.Context, items []agent.Steer) ([]agent.Steer, error) {
	if d.spec.Hooks == nil {
		return items, nil
	}
	out := make([]agent.Steer, len(items))
	for i, s := range items {
		out[i] = s
		if s.Key != "" && d.loop.Seen(s.Key) {
			continue
		}
		more, err := d.spec.Hooks.submit(ctx, s.Text)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			out[i].Text = "[host] A message from a person was withheld: " + err.Error()
			continue
		}
		out[i].Text += more
	}
	return out, nil
}
