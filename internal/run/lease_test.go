package run_test

import (
	"strings"
	"testing"

	"reasonix/internal/agent"
	"reasonix/internal/testkit/modeld"
)

// stalls repeats one read n times, after one that is new, and then ends.
func stalls(n int, end ...modeld.Call) modeld.Brain {
	turns := []modeld.Turn{}
	for range n + 1 {
		turns = append(turns, modeld.Turn{Text: "again", Calls: []modeld.Call{{Name: "read_file", Args: map[string]string{"path": "add.txt"}}}})
	}
	return plays(append(turns, modeld.Turn{Text: "enough", Calls: end})...)
}

func (d *desk) told(part string) int {
	n := 0
	last := d.server.Requests()[len(d.server.Requests())-1]
	for _, m := range last.Messages {
		if m.Role == "user" && strings.Contains(m.Text(), part) {
			n++
		}
	}
	return n
}

func TestExactRepeatsBringOneReassessmentAndNeverAPause(t *testing.T) {
	for n, want := range map[int]int{7: 0, 8: 1, 20: 1} {
		d := newDesk(t, stalls(n))
		d.plant()
		d.drive(agent.StopDone, d.spec("run"))
		if got := d.told("Stop and reassess"); got != want {
			t.Errorf("after %d repeats: %d notes, want %d", n, got, want)
		}
		if got := d.told("Drop the current approach"); got != 0 {
			t.Errorf("a re-plan outside a goal: %d", got)
		}
	}
}

func TestAGoalIsForcedToPlanAnewAndGoesOn(t *testing.T) {
	d := newDesk(t, stalls(20, report("complete", "done")))
	d.plant()
	out := d.drive(agent.StopDone, d.spec("goal"))
	if d.told("Stop and reassess") != 1 || d.told("Drop the current approach") != 1 || out.Report == nil {
		t.Fatalf("notes %d and %d, %+v", d.told("Stop and reassess"), d.told("Drop the current approach"), out)
	}
}

func TestNewWorkRenewsTheLease(t *testing.T) {
	var turns []modeld.Turn
	for i := range 20 {
		cmd := "echo same"
		if i%4 == 0 {
			cmd = "echo " + strings.Repeat("x", i+1)
		}
		turns = append(turns, modeld.Turn{Text: "go", Calls: []modeld.Call{{Name: "bash", Args: map[string]string{"command": cmd}}}})
	}
	d := newDesk(t, plays(append(turns, modeld.Turn{Text: "done"})...))
	d.drive(agent.StopDone, d.spec("run"))
	if d.told("[host]") != 0 {
		t.Error("a note although there was progress")
	}
}

func TestATodoThatIsCompletedAgainAndAgainIsNoProgress(t *testing.T) {
	var turns []modeld.Turn
	for i := range 20 {
		turns = append(turns, modeld.Turn{Text: "go", Calls: []modeld.Call{listOf([]string{"in_progress", "completed"}[i%2])}})
	}
	d := newDesk(t, plays(append(turns, modeld.Turn{Text: "done"})...))
	d.drive(agent.StopDone, d.steps("run"))
	if got := d.told("Stop and reassess"); got != 1 {
		t.Errorf("%d notes, want 1", got)
	}
}
