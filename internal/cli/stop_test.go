package cli_test

import (
	"os/user"
	"strings"
	"testing"

	"reasonix/internal/testkit/modeld"
)

// TestAnAnswerFromTheTerminalWhileTheHostIsDown: the host is stopped, an approver looks and answers with the command line, and the next start continues
// that very call.
func TestAnAnswerFromTheTerminalWhileTheHostIsDown(t *testing.T) {
	var effects string
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(r modeld.Request) modeld.Turn { return counter(&effects, "true")(r) }, func(w *world) {
		w.posture, effects = "ask", w.effects
		w.publish = "[[people]]\nname = \"me\"\nrole = \"admin\"\ncli = \"" + me.Username + "\"\n"
	})
	w.comment("dev", "/reasonix fix run it")
	id := w.askID()
	if out, code := w.cli("bot", "stop"); code != 0 || !strings.Contains(out, "Stopped.") {
		t.Fatalf("stop: %d %s", code, out)
	}
	<-w.stopped
	if !w.process.ProcessState.Success() {
		t.Errorf("the host ended with %v", w.process.ProcessState)
	}
	if out, _ := w.cli("bot", "stop"); !strings.Contains(out, "No host is running") {
		t.Errorf("stopping twice: %s", out)
	}
	if out, _ := w.cli("bot", "asks"); !strings.Contains(out, id) {
		t.Errorf("asks: %s", out)
	}
	if out, _ := w.cli("bot", "asks", "show", id); !strings.Contains(out, "/runs") || !strings.Contains(out, "digest: ") {
		t.Errorf("the ask is not shown whole: %s", out)
	}
	if out, code := w.cli("bot", "asks", "answer", id, "nonsense"); code != 1 || !strings.Contains(out, "allow") {
		t.Errorf("a wrong answer: %d %s", code, out)
	}
	if out, code := w.cli("bot", "asks", "answer", id, "allow"); code != 0 {
		t.Fatalf("the answer: %d %s", code, out)
	}
	if out, code := w.cli("bot", "asks", "answer", id, "deny"); code != 1 || !strings.Contains(out, "answered before") {
		t.Errorf("a second answer: %d %s", code, out)
	}
	w.start()
	w.eventually("the final word", func() bool { return w.said("Done:") == 1 })
	if w.runs() != 1 {
		t.Errorf("%d effects", w.runs())
	}
	out, _ := w.cli("bot", "tasks")
	task := strings.Fields(out[strings.Index(out, "task_"):])[0]
	if out, code := w.cli("bot", "tasks", "show", task); code != 0 || !strings.Contains(out, "completed") || !strings.Contains(out, "receipt") {
		t.Errorf("show: %s", out)
	}
	if out, code := w.cli("bot", "tasks", "retry", task); code != 1 || !strings.Contains(out, "only failed, cancelled and expired") {
		t.Errorf("retry of a completed task: %s", out)
	}
	if out, code := w.cli("bot", "tasks", "cancel", "task_nosuch"); code == 0 && !strings.Contains(out, "Nothing") {
		t.Errorf("cancel of nothing: %s", out)
	}
}
