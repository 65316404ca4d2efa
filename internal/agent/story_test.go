package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	"reasonix/internal/permission"
	"reasonix/internal/provider"
	"reasonix/internal/session"
)

func TestAStepThatNeedsAPersonWaitsAndGoesOnWithTheAnswer(t *testing.T) {
	h := newHouse(t,
		turn{text: "I deploy.", calls: []provider.ToolCall{call("c1", "write", "deploy")}},
		turn{text: "Deployed."})
	h.gate.rule("deploy", permission.Ask)
	out := h.mustRun(StopPending)
	p := out.Pending[0]
	if len(out.Pending) != 1 || p.Tool != "write" || p.Text != "v: deploy" || p.Kind != "approval" || len(p.Digest) != 64 || p.Offers[0] != "Act(x)" || len(h.ran) != 0 {
		t.Fatalf("pending %+v, ran %v", out.Pending, h.ran)
	}
	// The host is restarted, nobody has answered yet: the same question stands, and nothing is asked of the model.
	again := h.mustRun(StopPending)
	if again.Pending[0].Digest != p.Digest || len(h.model.asked) != 1 {
		t.Fatalf("after a restart: %+v, %d model calls", again.Pending, len(h.model.asked))
	}
	done := h.mustRun(StopDone, yes(p))
	if strings.Join(h.ran, " ") != "deploy" || done.Text != "Deployed." {
		t.Fatalf("ran %v, %+v", h.ran, done)
	}
	if f := h.facts()[0]; !f.OK || f.Approved != "lead" || f.Digest != p.Digest || f.Paths[0] != "deploy" {
		t.Fatalf("fact: %+v", f)
	}
	// The same answer comes again, with another job: nothing happens.
	if h.mustRun(StopDone, yes(p)); len(h.ran) != 1 {
		t.Fatalf("ran %v", h.ran)
	}
}

func TestADenialReachesTheModelWithItsReason(t *testing.T) {
	h := newHouse(t, turn{calls: []provider.ToolCall{call("c1", "write", "deploy")}}, turn{text: "I leave it."})
	h.gate.rule("deploy", permission.AskHuman)
	p := h.mustRun(StopPending).Pending[0]
	h.gate.rule("deploy", permission.Allow) // a later grant does not overrule a person's no
	out := h.mustRun(StopDone, no(p, "not on Fridays"))
	var shown []string
	for _, o := range h.shown {
		if o.Kind == "decision" {
			shown = append(shown, o.Text)
		}
	}
	if strings.Join(shown, "|") != "Allow write?|deny by lead\nnot on Fridays" {
		t.Errorf("shown %q", shown)
	}
	if len(h.ran) != 0 || !strings.Contains(h.results()[0], "denied by lead: not on Fridays") || !h.facts()[0].Refused {
		t.Fatalf("ran %v, results %q", h.ran, h.results())
	}
	if !out.LastRefused || out.Refusals != 1 {
		t.Fatalf("outcome %+v", out)
	}
}

func TestARefusalThatTheModelWorksAroundIsNoEnd(t *testing.T) {
	h := newHouse(t,
		turn{calls: []provider.ToolCall{call("c1", "write", "forbidden")}},
		turn{calls: []provider.ToolCall{call("c2", "write", "other")}},
		turn{text: "Done another way."})
	h.gate.rule("forbidden", permission.Deny)
	out := h.mustRun(StopDone)
	if out.LastRefused || out.Refusals != 1 || strings.Join(h.ran, " ") != "other" {
		t.Fatalf("%+v, ran %v", out, h.ran)
	}
	if r := h.results()[0]; !strings.Contains(r, "blocked: the rule says deny") || !strings.Contains(r, "Act(forbidden)") {
		t.Fatalf("result %q", r)
	}
}

func TestAQuestionIsAnsweredByAPersonAndNeverRuns(t *testing.T) {
	h := newHouse(t, turn{calls: []provider.ToolCall{call("c1", "ask", "Which port?"), call("c2", "ask", "")}}, turn{text: "ok"})
	p := h.mustRun(StopPending).Pending
	if len(p) != 1 || p[0].Kind != "question" || p[0].Text != "Which port?" || len(p[0].Options) != 2 {
		t.Fatalf("pending %+v", p)
	}
	h.tree.state.Hash = "changed" // a question acts on nothing
	h.mustRun(StopDone, Answer{CallID: "c1", Choice: "answer", Text: "8080", By: "lead", Digest: p[0].Digest})
	if r := h.results(); r[0] != "8080" || r[1] != "error: nothing is asked" {
		t.Fatalf("results %q", r)
	}
}

func TestADenyRuleHoldsForQuestionsToo(t *testing.T) {
	h := newHouse(t, turn{calls: []provider.ToolCall{call("c1", "ask", "Which port?")}}, turn{text: "ok"})
	h.gate.rule("Which port?", permission.Deny)
	h.mustRun(StopDone)
	if r := h.results(); len(r) != 1 || !strings.HasPrefix(r[0], "blocked: the rule says deny") {
		t.Fatalf("results %q", r)
	}
}

func TestAllQuestionsOfAMessageArePostedTogetherAndItsOwnEffectsAreNoDrift(t *testing.T) {
	h := newHouse(t, turn{calls: []provider.ToolCall{
		call("c1", "write", "free"), call("c2", "write", "first"), call("c3", "read", "x"), call("c4", "write", "second"), call("c5", "write", "late"),
	}}, turn{text: "all done"})
	h.gate.rule("first", permission.Ask)
	h.gate.rule("second", permission.AskHuman)
	p := h.mustRun(StopPending).Pending
	if len(p) != 2 || p[0].CallID != "c2" || p[1].CallID != "c4" || strings.Join(h.ran, " ") != "free" || h.tree.hashed != 1 {
		t.Fatalf("pending %+v, ran %v, hashed %d times", p, h.ran, h.tree.hashed)
	}
	h.gate.rule("late", permission.Deny) // judged again before it runs
	h.mustRun(StopDone, yes(p[1]), yes(p[0]))
	if strings.Join(h.ran, " ") != "free first second" || h.tree.hashed != 2 {
		t.Fatalf("ran %v, hashed %d times", h.ran, h.tree.hashed)
	}
	r := h.results()
	if len(r) != 5 || r[2] != "read x" || !strings.HasPrefix(r[4], "blocked") {
		t.Fatalf("results %q", r)
	}
}

func TestWhatChangedSinceItWasAskedIsAskedAgainWithTheDifference(t *testing.T) {
	cases := []struct {
		name   string
		change func(*house)
		drift  string
	}{
		{"the workspace", func(h *house) { h.tree.state.Hash = "t9" }, "from t0 to t9"},
		{"the base", func(h *house) { h.tree.state.Base = "b2" }, "base commit changed from  to b2"},
		{"the head", func(h *house) { h.tree.state.Head = "h2" }, "head commit changed"},
		{"the rules", func(h *house) { h.gate.digest = "other rules" }, "rules or the sandbox policy"},
		{"the box", func(h *house) { h.config = func(c *Config) { c.BoxDigest = "other" } }, "rules or the sandbox policy"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t, turn{calls: []provider.ToolCall{call("c1", "write", "a"), call("c2", "write", "b")}}, turn{text: "ok"})
			h.gate.rule("a", permission.Ask)
			h.gate.rule("b", permission.Ask)
			old := h.mustRun(StopPending).Pending
			c.change(h)
			fresh := h.mustRun(StopPending, yes(old[0]), yes(old[1])).Pending
			if len(fresh) != 2 || !strings.Contains(fresh[0].Drift, c.drift) || fresh[0].Digest == old[0].Digest || len(h.ran) != 0 {
				t.Fatalf("fresh %+v, ran %v", fresh, h.ran)
			}
			// The answer to the old question comes late once more: it answers nothing.
			if h.mustRun(StopPending, yes(old[0])); len(h.ran) != 0 {
				t.Fatalf("a stale answer ran %v", h.ran)
			}
			if h.mustRun(StopPending, no(old[0], "too late")); len(h.results()) != 0 {
				t.Fatalf("a stale denial gave %q", h.results())
			}
			h.mustRun(StopDone, yes(fresh[0]), yes(fresh[1]))
			if strings.Join(h.ran, " ") != "a b" {
				t.Fatalf("ran %v", h.ran)
			}
		})
	}
}

// Kill the host at every append of the story, before and after the write, and go on each time: the approved effect happens at
// most once, and exactly once or it is called unknown.
func TestInvariant03_AnEffectIsStartedAtMostOnceAcrossCrashes(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := 1; at <= 9; at++ {
			h := newHouse(t, turn{text: "I go.", calls: []provider.ToolCall{call("c1", "write", "effect"), call("c2", "read", "x")}}, turn{text: "end"}, turn{text: "end"})
			h.gate.rule("effect", permission.Ask)
			log := &crash{Log: h.log, at: at, after: after}
			answers := []Answer{}
			for range 4 {
				out, err := h.attempt(log, answers...)
				if errors.Is(err, errCrash) {
					log = &crash{Log: h.log} // the next host
					h.model.turns = []turn{{text: "I go.", calls: []provider.ToolCall{call("c1", "write", "effect"), call("c2", "read", "x")}}, {text: "end"}}
					if len(session.Messages(h.entries())) > 1 {
						h.model.turns = h.model.turns[1:]
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if out.Stop == StopDone {
					break
				}
				answers = []Answer{yes(out.Pending[0])}
			}
			unknown := len(h.facts()) > 0 && h.facts()[0].Unknown
			if len(h.ran) > 1 {
				t.Errorf("killed at append %d (after: %v): the effect happened %d times", at, after, len(h.ran))
			}
			if len(h.ran) == 0 && !unknown {
				t.Errorf("killed at append %d (after: %v): the effect never happened and nobody says so: %q", at, after, h.results())
			}
			if unknown && !strings.Contains(h.results()[0], "outcome unknown: check before repeating") {
				t.Errorf("result %q", h.results()[0])
			}
			if open := session.OpenCalls(h.entries()); len(open) != 0 {
				t.Errorf("killed at append %d (after: %v): calls stay open: %+v", at, after, open)
			}
		}
	}
}

func TestInvariant03_AWorkerWithoutItsLeaseStartsAndWritesNothing(t *testing.T) {
	h := newHouse(t, turn{calls: []provider.ToolCall{call("c1", "write", "effect")}})
	h.config = func(c *Config) { c.Session = &fenced{Log: h.log, from: session.KindIntent} }
	_, err := h.attempt(h.log)
	if !errors.Is(err, session.ErrFenced) || len(h.ran) != 0 {
		t.Fatalf("%v, ran %v", err, h.ran)
	}
	// The lease is lost while the call runs: its result is discarded, and the next worker calls it unknown.
	h.config = func(c *Config) { c.Session = &fenced{Log: h.log, from: session.KindResult} }
	if _, err := h.attempt(h.log); !errors.Is(err, session.ErrFenced) || len(h.results()) != 0 || len(h.ran) != 1 {
		t.Fatalf("%v, results %q", err, h.results())
	}
	h.config = nil
	h.mustRun(StopDone)
	if !h.facts()[0].Unknown || len(h.ran) != 1 {
		t.Fatalf("facts %+v, ran %v", h.facts(), h.ran)
	}
}

// fenced loses its lease at the first entry of a kind.
type fenced struct {
	session.Log
	from session.Kind
	lost bool
}

func (f *fenced) Append(ctx context.Context, entries ...session.Entry) error {
	for _, e := range entries {
		f.lost = f.lost || e.Kind == f.from
	}
	if f.lost {
		return session.ErrFenced
	}
	return f.Log.Append(ctx, entries...)
}
