package run_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/agent"
	"reasonix/internal/evidence"
	"reasonix/internal/hook"
	"reasonix/internal/permission"
	"reasonix/internal/run"
	"reasonix/internal/testkit/modeld"
	"reasonix/internal/tool"
)

// steps is a spec with the real todo list and complete_step.
func (d *desk) steps(mode string) run.Spec {
	d.t.Helper()
	s := d.spec(mode)
	s.Notebook, s.SignOff = &agent.Notebook{}, true
	for _, b := range tool.Builtins(tool.Env{Note: s.Notebook.Note}) {
		if b.Name() == "todo_write" {
			if err := s.Tools.Add(b); err != nil {
				d.t.Fatal(err)
			}
		}
	}
	return s
}

func listOf(status string) modeld.Call {
	return modeld.Call{Name: "todo_write", Args: map[string]any{"todos": []map[string]any{{"content": "mend add.txt", "status": status}, {"content": "check", "status": "pending"}}}}
}

func signs(step string, evidence ...map[string]any) modeld.Call {
	return modeld.Call{Name: stepTool, Args: map[string]any{"step": step, "summary": "done", "evidence": evidence}}
}

const stepTool = evidence.StepTool

func sh(line string) modeld.Call {
	return modeld.Call{Name: "bash", Args: map[string]string{"command": line}}
}

func TestAStepIsSignedOffWithWhatTheHostSaw(t *testing.T) {
	check := map[string]any{"kind": "verification", "command": "grep 'a + b' add.txt"}
	d := newDesk(t, plays(
		modeld.Turn{Calls: []modeld.Call{listOf("in_progress"), signs("mend add.txt", check)}}, // it claims what it did not do
		modeld.Turn{Calls: []modeld.Call{sh("grep 'a + b' add.txt")}},                          // fails
		modeld.Turn{Calls: []modeld.Call{signs("mend add.txt", check)}},
		modeld.Turn{Calls: []modeld.Call{mend, sh("grep 'a + b' add.txt"), signs("mend add.txt", check, map[string]any{"kind": "diff", "paths": []string{"add.txt"}})}},
		modeld.Turn{Calls: []modeld.Call{signs("check", map[string]any{"kind": "manual", "note": "read it again"})}},
		modeld.Turn{Text: "done"}))
	d.plant()
	d.drive(agent.StopDone, d.steps(run.ModeRun))
	r := d.server.Requests()
	if got := r[1].Results(); !strings.Contains(got[1], "NOT completed") || !strings.Contains(got[1], "not run in this task") {
		t.Errorf("claimed and not done: %q", got)
	}
	if got := r[3].Results(); !strings.Contains(got[len(got)-1], "its last run failed (exit code 1)") {
		t.Errorf("claimed and failed: %q", got)
	}
	if got := r[4].Results(); !strings.Contains(got[len(got)-1], "completed, verified: mend add.txt") || !strings.Contains(got[len(got)-1], "now in progress: check") {
		t.Errorf("done in the same message: %q", got)
	}
	facts := evidence.Since(d.entries(), "p1")
	if got := strings.Join(facts.Lines(), "\n"); got != "unverified: check: on the model's word: read it again" {
		t.Errorf("facts:\n%s", got)
	}
}

func TestNothingIsSignedOffBeforeThePlanIsApproved(t *testing.T) {
	d := newDesk(t, plays(
		modeld.Turn{Calls: []modeld.Call{listOf("in_progress"), signs("mend add.txt", map[string]any{"kind": "manual", "note": "x"})}},
		modeld.Turn{Calls: []modeld.Call{presents("mend add.txt")}},
		modeld.Turn{Calls: []modeld.Call{signs("mend add.txt", map[string]any{"kind": "manual", "note": "x"})}},
		modeld.Turn{Text: "done"}))
	out := d.drive(agent.StopPending, d.steps(run.ModePlan))
	if got := d.server.Requests()[1].Results(); !strings.Contains(got[0], "0 of 2 done") || !strings.Contains(got[1], "blocked: plan mode: complete_step belongs to carrying the plan out") {
		t.Fatalf("while planning: %q", got)
	}
	s := d.steps(run.ModePlan)
	s.Answers = []agent.Answer{answer(out.Pending[0], "approve", "")}
	d.drive(agent.StopDone, s)
	if got := d.server.Requests()[3].Results(); !strings.Contains(got[len(got)-1], "completed, unverified") {
		t.Errorf("afterwards: %q", got)
	}
}

func TestSigningOffRenewsTheLeaseAndTryingToDoesNot(t *testing.T) {
	// Seven rounds of nothing new, then a step or the attempt at one, then seven more.
	for what, c := range map[string]struct {
		step modeld.Call
		told int
	}{
		"signed off": {signs("mend add.txt", map[string]any{"kind": "manual", "note": "seen"}), 0},
		"lowered":    {signs("mend add.txt", map[string]any{"kind": "verification", "command": "make"}), 1},
	} {
		turns := []modeld.Turn{{Calls: []modeld.Call{listOf("in_progress")}}}
		for range 7 {
			turns = append(turns, modeld.Turn{Calls: []modeld.Call{{Name: "read_file", Args: map[string]string{"path": "add.txt"}}}})
		}
		turns = append(turns, modeld.Turn{Calls: []modeld.Call{c.step}})
		turns = append(turns, turns[1:7]...)
		d := newDesk(t, plays(append(turns, modeld.Turn{Text: "done"})...))
		d.plant()
		d.drive(agent.StopDone, d.steps(run.ModeRun))
		if got := d.told("Stop and reassess"); got != c.told {
			t.Errorf("%s: told %d times, want %d", what, got, c.told)
		}
	}
}

func TestWaitingForALiveBackgroundCommandIsProgress(t *testing.T) {
	for _, live := range []bool{true, false} {
		var turns []modeld.Turn
		for range 20 {
			turns = append(turns, modeld.Turn{Calls: []modeld.Call{{Name: "wait", Args: map[string]string{}}}})
		}
		d := newDesk(t, plays(append(turns, modeld.Turn{Text: "it ended", Calls: []modeld.Call{report("complete", "built")}})...))
		s := d.spec(run.ModeGoal)
		err := s.Tools.Add(fn{"wait", schema(), true, func(ctx context.Context, _ map[string]string) (string, error) {
			tool.ReportFrom(ctx).Live = live
			return "shell_1 runs", nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		d.drive(agent.StopDone, s)
		if told := d.told("brought nothing new") > 0; told == live {
			t.Errorf("live %v: told %v", live, told)
		}
	}
}

// A PermissionRequest hook is asked before people are. After a person's answer, and while the question stands, it is not asked again.
func TestAHookDoesNotOverturnAPersonsAnswer(t *testing.T) {
	d := newDesk(t, plays(modeld.Turn{Calls: []modeld.Call{sh("echo one"), sh("echo two")}}, modeld.Turn{Text: "done"}))
	log := filepath.Join(t.TempDir(), "asked")
	// It lets the first two calls go to people and would block everything after that.
	hooks := d.hooks(hook.Hook{Event: hook.PermissionRequest, Command: "echo x >> " + log + "; if [ $(wc -l < " + log + ") -gt 2 ]; then echo 'too late' >&2; exit 2; fi"})
	spec := func() run.Spec {
		s := d.spec(run.ModeRun)
		s.Gate = run.Rules{Policy: permission.NewPolicy(permission.Config{}), Situation: permission.Situation{Posture: permission.PostureAsk, Surface: permission.Attended}}.WithHooks(hooks)
		return s
	}
	out := d.drive(agent.StopPending, spec())
	if len(out.Pending) != 2 {
		t.Fatalf("pending %+v", out.Pending)
	}
	s := spec()
	s.Answers = []agent.Answer{allow(out.Pending[0])}
	again := d.drive(agent.StopPending, s) // the first ran, the second still waits
	s = spec()
	s.Answers = []agent.Answer{allow(again.Pending[0])}
	d.drive(agent.StopDone, s)
	if got := d.server.Requests()[1].Results(); !strings.Contains(got[0], "one") || !strings.Contains(got[1], "two") {
		t.Errorf("results %q", got)
	}
	if b, err := os.ReadFile(log); err != nil || strings.Count(string(b), "x") != 2 {
		t.Errorf("the hook was asked %q, %v", b, err)
	}
}
