package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"reasonix/internal/agent"
	"reasonix/internal/budget"
	"reasonix/internal/evidence"
	"reasonix/internal/permission"
)

// answer asks about every call that waits. again is false when the person turned away: the questions then stay in the transcript.
func (t *Talk) answer(ctx context.Context, pending []agent.Pending) (answers []agent.Answer, again bool, err error) {
	project, user := t.o.Bench.Files()
	for _, p := range pending {
		if t.granted(p) {
			answers = append(answers, agent.Answer{CallID: p.CallID, Choice: "allow", By: t.o.By, Digest: p.Digest})
			continue
		}
		p.Title, p.Text, p.Drift = t.redact(p.Title), t.redact(p.Text), t.redact(p.Drift)
		got, err := t.put(ctx, cardOf(p, files{project, user}))
		switch {
		case errors.Is(err, ErrInterrupted):
			t.say("Nothing was decided. /continue asks again; anything else begins a new request.")
			return nil, false, nil
		case errors.Is(err, io.EOF):
			t.say("\nThe question stays open. `reasonix chat --continue` asks it again.")
			return nil, false, err
		case err != nil:
			return nil, false, err
		}
		if err := t.keep(ctx, got); err != nil {
			return nil, false, err
		}
		answers = append(answers, agent.Answer{CallID: p.CallID, Choice: got.answer, Text: got.text, By: t.o.By, Digest: p.Digest})
	}
	return answers, true, nil
}

// granted: an answer to an earlier card of the same message covers this call too.
func (t *Talk) granted(p agent.Pending) bool {
	if p.Decision.Kind != "" && p.Decision.Kind != permission.KindApproval {
		return false
	}
	return slices.ContainsFunc(t.state.grants, func(g Grant) bool { return g.Rule != "" && slices.Contains(p.Offers, g.Rule) })
}

// put shows a card until it is answered; commands that change nothing of it may be given meanwhile.
func (t *Talk) put(ctx context.Context, c card) (picked, error) {
	t.o.Screen.Print(c.text())
	for {
		line, err := t.o.Screen.Line(ctx, "? ")
		if errors.Is(err, ErrTooLong) {
			t.say("%v", err)
			continue
		}
		if err != nil {
			return picked{}, err
		}
		if strings.HasPrefix(strings.TrimSpace(line), "/") && len(c.choices) > 0 {
			if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); slices.Contains(idle, word) {
				t.say("%s has to wait until this is answered. %s", word, c.ways())
				continue
			}
			if err := t.aside(ctx, line); err != nil {
				return picked{}, err
			}
			t.o.Screen.Print(c.again())
			continue
		}
		got, err := c.pick(line)
		if err == nil {
			return got, nil
		}
		t.say("%v. %s", err, c.ways())
	}
}

// keep stores what an answer grants for later calls. What goes into a file counts in this session at once.
func (t *Talk) keep(ctx context.Context, p picked) error {
	var grants []Grant
	if p.rule != "" {
		grants = append(grants, Grant{Rule: p.rule})
	}
	for _, d := range p.dirs {
		grants = append(grants, Grant{Dir: d})
	}
	if p.scope == "" || p.scope == Once {
		return nil
	}
	for _, g := range grants {
		if p.scope != Session {
			file, err := t.o.Bench.Keep(ctx, p.scope, g)
			if err != nil {
				t.say("It could not be written down, so it holds for this session only: %v", err)
			} else {
				t.say("Written into %s: %s", file, g)
			}
		}
		if err := t.note(ctx, noteGrant, g); err != nil {
			return err
		}
	}
	return nil
}

// raise offers more when a limit is reached; the limits are cumulative over the request.
func (t *Talk) raise(ctx context.Context, limit string) (again bool, err error) {
	c := card{title: "A limit is reached", body: limit, fields: []string{"The request stopped here and can go on from here."}, choices: []choice{
		{key: "y", label: "raise by the same amount and go on", answer: "raise"},
		{key: "n", label: "stop here; /continue asks again", answer: "stop"},
	}}
	got, err := t.put(ctx, c)
	if errors.Is(err, ErrInterrupted) {
		t.say("Nothing was decided. /continue asks again; anything else begins a new request.")
		return false, nil
	}
	if errors.Is(err, io.EOF) {
		t.say("\nThe request stays stopped. `reasonix chat --continue` asks again.")
	}
	if err != nil || got.answer != "raise" {
		return false, err
	}
	return true, t.note(ctx, noteLimits, budget.Raise(t.limits(t.state.request.Mode), t.state.spent))
}

// meter counts the request against its limits; nil when there are none.
func (t *Talk) meter(mode string) agent.Meter {
	l := t.limits(mode)
	if l == (budget.Limits{}) {
		return nil
	}
	return budget.NewMeter(budget.MeterConfig{Ledger: budget.NewAccount(t.state.spent), Limits: l, Price: t.o.Bench.Price(), Estimate: budget.Spent{Tokens: 4000}, Now: clock})
}

// maxFacts bounds what stands beside the model's word.
const maxFacts = 12

// facts shows what the host saw beside the model's word.
func (t *Talk) facts(ctx context.Context) error {
	entries, err := t.o.Session.Entries(ctx, 0)
	if err != nil {
		return fmt.Errorf("read the session: %w", err)
	}
	lines := evidence.Shown(evidence.Since(entries, t.state.request.Key).Lines(), maxFacts)
	if len(lines) > 0 {
		t.say("\nThe host notes:")
	}
	for _, l := range lines {
		t.say("  %s", l)
	}
	return nil
}
