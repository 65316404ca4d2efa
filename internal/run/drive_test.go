package run_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"reasonix/internal/agent"
	"reasonix/internal/permission"
	"reasonix/internal/run"
	"reasonix/internal/session"
	"reasonix/internal/testkit/modeld"
)

// fixer mends add.txt, whose content it reads first; the "test" is a grep.
var fixer = modeld.Fixer{File: "add.txt", Bug: regexp.MustCompile(`a - b`), Fix: "a + b", Test: "grep -q 'a + b' add.txt && echo PASS || echo FAIL", Pass: regexp.MustCompile("PASS")}

func (d *desk) plant() {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, "add.txt"), []byte("func add(a, b int) int {\n\treturn a - b\n}\n"), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) mended() bool {
	b, _ := os.ReadFile(filepath.Join(d.dir, "add.txt"))
	return strings.Contains(string(b), "a + b")
}

func TestARequestBecomesAFixWithAnApprovalOnTheWay(t *testing.T) {
	d := newDesk(t, fixer.Turn)
	d.plant()
	s := d.spec("goal")
	s.Gate = gate{"bash": permission.Ask}
	out := d.drive(agent.StopPending, s)
	if len(out.Pending) != 1 || out.Pending[0].Text != fixer.Test || !d.mended() {
		t.Fatalf("pending %+v", out.Pending)
	}
	s = d.spec("goal")
	s.Gate = gate{"bash": permission.Ask}
	s.Answers = []agent.Answer{allow(out.Pending[0])}
	s.Notes = []agent.Steer{{Key: "ended", Text: "[host] Your background processes were ended."}}
	out = d.drive(agent.StopDone, s)
	if out.Report == nil || out.Report.Disposition != "complete" || out.Text != "Done: the test passes." || out.Steps != 1 {
		t.Fatalf("%+v, report %+v", out, out.Report)
	}
	es := d.entries()
	if last := es[len(es)-1]; last.Kind != session.KindEnd || !regexp.MustCompile(`^{"ms":\d+,"stop":"done"}$`).Match(last.Data) {
		t.Fatalf("last entry %+v", last)
	}
	// A doubled job drives the finished session again: nothing is asked, nothing is written.
	calls := d.server.Calls()
	again := d.drive(agent.StopDone, s2(d, s))
	if again.Text != out.Text || d.server.Calls() != calls || len(d.entries()) != len(es) {
		t.Fatalf("again %+v, %d calls, %d entries", again, d.server.Calls(), len(d.entries()))
	}
}

// s2 is the same spec for another attempt, with tools of its own.
func s2(d *desk, s run.Spec) run.Spec {
	s.Tools = workshop(d.t, d.dir)
	return s
}

func TestAGoalWithoutAReportGoesOnUntilItReports(t *testing.T) {
	d := newDesk(t, plays(modeld.Turn{Text: "I think."}, modeld.Turn{Text: "Hm."}, modeld.Turn{Text: "Hm hm."}, modeld.Turn{Text: "Hm hm hm."},
		modeld.Turn{Text: "I plan.", Calls: []modeld.Call{report("continue", "write the file")}}, modeld.Turn{Text: "Soon."},
		modeld.Turn{Calls: []modeld.Call{report("complete", "all written")}}))
	out := d.drive(agent.StopDone, d.spec("goal"))
	if out.Text != "all written" || out.Steps != 7 {
		t.Fatalf("%+v", out)
	}
	var told []string
	for _, m := range d.server.Requests()[6].Messages {
		if m.Role == "user" {
			told = append(told, m.Text())
		}
	}
	if len(told) != 6 || !strings.Contains(told[0], "----- objective -----\nmend it") || !strings.Contains(told[4], "Change the approach") ||
		!strings.Contains(told[5], "Go on with: write the file") {
		t.Fatalf("told %q", told)
	}
}

func TestABlockedGoalParksAndAPersonsWordOpensItAgain(t *testing.T) {
	d := newDesk(t, plays(modeld.Turn{Calls: []modeld.Call{report("blocked", "Need the key.")}},
		modeld.Turn{Calls: []modeld.Call{report("blocked", "need the KEY")}}, modeld.Turn{Calls: []modeld.Call{report("complete", "ok")}}))
	s := d.spec("goal")
	s.BlockedRepeats = 2
	out := d.drive(agent.StopBlocked, s)
	if out.Text != "need the KEY" || out.Steps != 2 {
		t.Fatalf("%+v", out)
	}
	// Driven again without a word it stays blocked, and costs nothing.
	if out := d.drive(agent.StopBlocked, s2(d, s)); out.Steps != 0 {
		t.Fatalf("%+v", out)
	}
	s.Notes = []agent.Steer{{Key: "ask:1", Text: "lead: the key is in the vault"}}
	if out := d.drive(agent.StopDone, s2(d, s)); out.Text != "ok" {
		t.Fatalf("%+v", out)
	}
}

func TestAFollowUpClosesWhatTheEarlierRequestLeftOpen(t *testing.T) {
	d := newDesk(t, plays(modeld.Turn{Calls: []modeld.Call{{Name: "bash", Args: map[string]string{"command": "true"}}}}, modeld.Turn{Text: "the second answer"}))
	s := d.spec("run")
	s.Gate = gate{"bash": permission.Ask}
	d.drive(agent.StopPending, s)
	s = s2(d, s)
	s.Prompt, s.PromptKey = "never mind, answer this", "p2"
	if out := d.drive(agent.StopDone, s); out.Text != "the second answer" {
		t.Fatalf("%+v", out)
	}
	if r := d.server.Requests()[1].Messages; r[len(r)-2].Text() != "not run: the request that it belonged to had ended" || r[len(r)-1].Text() != "never mind, answer this" {
		t.Fatalf("history %+v", r)
	}
}

func TestWhatCannotBeDrivenIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	d := newDesk(t, plays())
	for want, change := range map[string]func(*run.Spec){
		`"fly" is not one of`:    func(s *run.Spec) { s.Mode = "fly" },
		"needs a session":        func(s *run.Spec) { s.Gate = nil },
		"the request has no key": func(s *run.Spec) { s.PromptKey = "" },
	} {
		s := d.spec("run")
		change(&s)
		_, err := run.Drive(t.Context(), s)
		if err == nil || !strings.Contains(err.Error(), want) || (!errors.Is(err, run.ErrMode) && !errors.Is(err, run.ErrSpec)) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if len(d.entries()) != 0 || d.server.Calls() != 0 {
		t.Fatal("something was written or asked")
	}
}

func TestAFailingModelEndsTheAttemptAndTheNextOneGoesOn(t *testing.T) {
	d := newDesk(t, plays(modeld.Turn{Text: "hello"}))
	d.server.Fail(modeld.Fault{Status: 401})
	if _, err := run.Drive(t.Context(), d.spec("run")); err == nil || !strings.Contains(err.Error(), "401") {
		t.Fatalf("error %v", err)
	}
	es := d.entries()
	if last := es[len(es)-1]; last.Kind != session.KindEnd || !strings.Contains(string(last.Data), "401") {
		t.Fatalf("last entry %s", last.Data)
	}
	if out := d.drive(agent.StopDone, d.spec("run")); out.Text != "hello" {
		t.Fatalf("%+v", out)
	}
}

func TestStoppingTheHostMidStreamLosesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d := newDesk(t, func(r modeld.Request) modeld.Turn {
		if r.N == 2 {
			cancel() // the second answer is on its way
		}
		return fixer.Turn(r)
	})
	d.plant()
	hold := make(chan struct{})
	defer close(hold)
	d.server.Fail(modeld.Fault{}, modeld.Fault{Hold: hold})
	out, err := run.Drive(ctx, d.spec("run"))
	if err != nil || out.Stop != agent.StopInterrupted {
		t.Fatalf("%+v, %v", out, err)
	}
	if out := d.drive(agent.StopDone, d.spec("run")); out.Text != "Done: the test passes." || !d.mended() {
		t.Fatalf("%+v", out)
	}
}

// The vendor's prompt cache lives on this: parks, restarts, steering, goal turns and cut streams only ever append.
func TestInvariant11_EveryRequestOfAStoryBeginsWithTheBytesOfTheOneBefore(t *testing.T) {
	d := newDesk(t, plays(
		modeld.Turn{Text: "I look.", Calls: []modeld.Call{{Name: "read_file", Args: map[string]string{"path": "add.txt"}}, {Name: "read_file", Args: map[string]string{"path": "none"}}}},
		modeld.Turn{Text: "I act.", Calls: []modeld.Call{{ID: "call_1", Name: "bash", Args: map[string]string{"command": "echo <ü> & echo"}}}},
		modeld.Turn{Text: "This message will be cut in the middle of it."},
		modeld.Turn{Text: "no report"},
		modeld.Turn{Text: "bad", Calls: []modeld.Call{{Name: "bash", Raw: `{"command":`}, {Name: "fly", Args: map[string]string{}}}},
		modeld.Turn{},
		modeld.Turn{Calls: []modeld.Call{report("blocked", "x")}},
		modeld.Turn{Calls: []modeld.Call{report("complete", "x")}}))
	d.plant()
	d.server.Fail(modeld.Fault{}, modeld.Fault{}, modeld.Fault{CutAfter: 3})
	s := d.spec("goal")
	s.Gate = gate{"bash": permission.Ask}
	p := d.drive(agent.StopPending, s).Pending
	s = s2(d, s)
	s.Answers = []agent.Answer{allow(p[0])}
	s.Inbox = func(context.Context) ([]agent.Steer, error) {
		return []agent.Steer{{Key: "s1", Text: "by the way"}}, nil
	}
	d.drive(agent.StopBlocked, s)
	s = s2(d, s)
	s.Notes = []agent.Steer{{Key: "n1", Text: "go on"}}
	d.drive(agent.StopDone, s)
	reqs := d.server.Requests()
	if len(reqs) != 8 || len(d.server.Refusals()) != 0 {
		t.Fatalf("%d requests, refused %v", len(reqs), d.server.Refusals())
	}
	for i := 1; i < len(reqs); i++ {
		before := strings.TrimSuffix(string(reqs[i-1].Body), "]}")
		if !strings.HasPrefix(string(reqs[i].Body), before+",") {
			t.Errorf("request %d does not go on from request %d", i+1, i)
		}
	}
}
