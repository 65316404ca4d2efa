package run_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/agent"
	"reasonix/internal/permission"
	"reasonix/internal/run"
	"reasonix/internal/session"
	"reasonix/internal/testkit/modeld"
)

// dying is a log whose host dies at the n-th append, before or after it was written.
type dying struct {
	session.Log
	n, at int
	after bool
}

var errKilled = errors.New("killed")

func (d *dying) Append(ctx context.Context, e ...session.Entry) error {
	d.n++
	if d.n > d.at || (d.n == d.at && !d.after) {
		return errKilled
	}
	err := d.Log.Append(ctx, e...)
	if d.n == d.at {
		return errKilled
	}
	return err
}

// effectOnce is a brain without memory: what it does next follows from the history alone, as with a real model. It makes one
// effect; when its outcome is unknown it looks before it repeats.
func effectOnce(r modeld.Request) modeld.Turn {
	results := strings.Join(r.Results(), "\n")
	turns := 0
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			turns++
		}
	}
	effect := modeld.Call{Name: "bash", Args: map[string]string{"command": "echo x >> effects; echo made"}}
	switch {
	case turns == 0:
		return modeld.Turn{Text: "I make the effect.", Calls: []modeld.Call{effect}}
	case strings.Contains(results, "outcome unknown"):
		return modeld.Turn{Text: "I look.", Calls: []modeld.Call{{Name: "read_file", Args: map[string]string{"path": "effects"}}}}
	case strings.HasPrefix(results, "error"): // nothing there: it did not happen
		return modeld.Turn{Text: "I make the effect again.", Calls: []modeld.Call{effect}}
	}
	return modeld.Turn{Text: "made", Calls: []modeld.Call{report("complete", "made once")}}
}

// kill -9 at every point of the whole story, before and after the write.
func TestInvariant03_KilledAnywhereTheStoryEndsWithOneEffect(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := 1; at <= 14; at++ {
			d := newDesk(t, effectOnce)
			attempt := func(log session.Log, answers ...agent.Answer) (run.Outcome, error) {
				s := d.spec("goal")
				s.Session, s.Answers, s.Gate = log, answers, gate{"bash": permission.Ask}
				return run.Drive(t.Context(), s)
			}
			var answers []agent.Answer
			var log session.Log = &dying{Log: d.log, at: at, after: after}
			var out run.Outcome
			for range 8 {
				var err error
				out, err = attempt(log, answers...)
				if err != nil && !errors.Is(err, errKilled) {
					t.Fatalf("killed at %d (after: %v): %v", at, after, err)
				}
				if err != nil {
					log = d.log
					continue
				}
				if out.Stop != agent.StopPending {
					break
				}
				answers = append(answers, allow(out.Pending[0]))
			}
			b, _ := os.ReadFile(filepath.Join(d.dir, "effects"))
			if out.Stop != agent.StopDone || out.Report == nil || string(b) != "x\n" {
				t.Errorf("killed at append %d (after: %v): stopped with %q, %d effects", at, after, out.Stop, len(b)/2)
			}
			if n := len(d.server.Refusals()); n > 0 {
				t.Errorf("killed at append %d (after: %v): %d invalid histories: %v", at, after, n, d.server.Refusals())
			}
		}
	}
}
