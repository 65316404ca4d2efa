package run_test

import (
	"encoding/json"
	"strings"
	"testing"

	"reasonix/internal/agent"
	"reasonix/internal/provider"
	"reasonix/internal/run"
	"reasonix/internal/session"
	"reasonix/internal/testkit/modeld"
)

func presents(plan string) modeld.Call {
	return modeld.Call{Name: run.PlanTool, Args: map[string]string{"plan": plan}}
}

func answer(p agent.Pending, choice, text string) agent.Answer {
	return agent.Answer{CallID: p.CallID, AskID: "a", Choice: choice, Text: text, By: "lead", Digest: p.Digest}
}

var mend = modeld.Call{Name: "edit_file", Args: map[string]string{"path": "add.txt", "old_string": "a - b", "new_string": "a + b"}}

func TestWhatStoodBesideThePlanIsNotRunByItsApproval(t *testing.T) {
	d := newDesk(t, plays(
		modeld.Turn{Text: "I mend it at once.", Calls: []modeld.Call{mend}},
		modeld.Turn{Text: "The plan.", Calls: []modeld.Call{presents("mend add.txt"), mend}},
		modeld.Turn{Text: "Now.", Calls: []modeld.Call{mend}},
		modeld.Turn{Text: "mended"}))
	d.plant()
	out := d.drive(agent.StopPending, d.spec(run.ModePlan))
	if len(out.Pending) != 1 || out.Pending[0].Kind != "plan" || out.Pending[0].Text != "mend add.txt" || d.mended() {
		t.Fatalf("pending %+v, mended %v", out.Pending, d.mended())
	}
	s := d.spec(run.ModePlan)
	s.Answers = []agent.Answer{answer(out.Pending[0], "approve", "")}
	if out = d.drive(agent.StopDone, s); out.Text != "mended" || !d.mended() {
		t.Fatalf("%+v", out)
	}
	results := d.server.Requests()[2].Results()
	if len(results) != 2 || !strings.Contains(results[1], "has to be made again after the answer") || !strings.Contains(results[0], "approved by lead") {
		t.Fatalf("results %q", results)
	}
}

func TestAPlanThatIsMissingIsAskedForOnce(t *testing.T) {
	d := newDesk(t, plays(modeld.Turn{Text: "All is well."}, modeld.Turn{Text: "No plan is needed: nothing is broken."}))
	out := d.drive(agent.StopDone, d.spec(run.ModePlan))
	if out.Text != "No plan is needed: nothing is broken." || out.Steps != 2 {
		t.Fatalf("%+v", out)
	}
}

func TestBashNeedsABoxThatCanBeReadOnly(t *testing.T) {
	for _, box := range []bool{false, true} {
		d := newDesk(t, plays(modeld.Turn{Calls: []modeld.Call{{Name: "bash", Args: map[string]string{"command": "echo hello"}}}}, modeld.Turn{Calls: []modeld.Call{presents("p")}}))
		s := d.spec(run.ModePlan)
		s.ReadOnlyBox = box
		d.drive(agent.StopPending, s)
		result := d.server.Requests()[1].Results()[0]
		if ran := strings.Contains(result, "hello"); ran != box || (!box && !strings.Contains(result, "no sandbox")) {
			t.Errorf("box %v: %q", box, result)
		}
	}
}

func TestAResumedRunTellsThatThePersonTookOverThePlan(t *testing.T) {
	d := newDesk(t, plays(modeld.Turn{Calls: []modeld.Call{presents("mend add.txt")}}, modeld.Turn{Calls: []modeld.Call{mend}}, modeld.Turn{Text: "mended"}))
	d.plant()
	d.drive(agent.StopPending, d.spec(run.ModePlan))
	s := d.spec(run.ModeRun)
	s.Prompt, s.PromptKey = "carry out the plan", "p2"
	d.drive(agent.StopDone, s)
	if got := d.server.Requests()[1].Results()[0]; !strings.Contains(got, "a person's word on what happens now") || !d.mended() {
		t.Fatalf("result %q", got)
	}
}

func TestTheWindowFollowsTheDecisions(t *testing.T) {
	request := session.Entry{Kind: session.KindUser, Name: "r"}
	turn := session.Entry{Kind: session.KindAssistant, Message: &provider.Message{Role: provider.RoleAssistant}}
	decide := func(choice string) session.Entry {
		data, _ := json.Marshal(agent.Answer{Choice: choice, By: "lead"})
		return session.Entry{Kind: session.KindDecision, Name: run.PlanTool, Data: data}
	}
	other := decide("approve")
	other.Name = "bash"
	for name, c := range map[string]struct {
		entries []session.Entry
		open    bool
	}{
		"nothing decided":                    {[]session.Entry{request, turn}, false},
		"approved, same message":             {[]session.Entry{request, turn, decide("approve")}, false},
		"approved, next message":             {[]session.Entry{request, turn, decide("approve"), turn}, true},
		"approved with changes":              {[]session.Entry{request, turn, decide("approve-changes"), turn, turn}, true},
		"rejected":                           {[]session.Entry{request, turn, decide("reject"), turn}, false},
		"nobody answered":                    {[]session.Entry{request, turn, decide("deny"), turn}, false},
		"a later plan is rejected":           {[]session.Entry{request, turn, decide("approve"), turn, decide("reject"), turn}, false},
		"another request":                    {[]session.Entry{request, turn, decide("approve"), turn, request}, false},
		"a decision on another call":         {[]session.Entry{request, turn, other, turn}, false},
		"a person's message changes nothing": {[]session.Entry{request, turn, decide("approve"), turn, {Kind: session.KindUser, Name: "inbox:1"}}, true},
	} {
		if got := run.Approved(c.entries, "r"); got != c.open {
			t.Errorf("%s: open %v", name, got)
		}
	}
}

func TestBadPlansAreToldToTheModel(t *testing.T) {
	d := newDesk(t, plays(modeld.Turn{Calls: []modeld.Call{presents("  ")}}, modeld.Turn{Calls: []modeld.Call{presents(strings.Repeat("x", 33<<10))}}, modeld.Turn{Calls: []modeld.Call{presents("good")}}))
	d.drive(agent.StopPending, d.spec(run.ModePlan))
	requests := d.server.Requests()
	if r := requests[1].Results(); !strings.Contains(r[0], "plan is empty") {
		t.Errorf("empty: %q", r)
	}
	if r := requests[2].Results(); !strings.Contains(r[0], "maxLength") {
		t.Errorf("long: %q", r)
	}
}
