package cli_test

import (
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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

// TestOneHostAtATimeAndOnlyTheHostIsStopped: a second start is refused, a stale process id is nobody's, and a console that cannot open is said at once.
func TestOneHostAtATimeAndOnlyTheHostIsStopped(t *testing.T) {
	w := newWorld(t, func(modeld.Request) modeld.Turn { return modeld.Turn{Text: "ok"} })
	out, code := w.cli("bot", "start")
	if code != 1 || !strings.Contains(out, "already runs") || !strings.Contains(out, strconv.Itoa(w.process.Process.Pid)) {
		t.Fatalf("a second start: %d %s", code, out)
	}
	w.kill()
	bystander := exec.Command("sleep", "60")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
	pid := filepath.Join(w.home, "data", "host.pid")
	if err := os.WriteFile(pid, []byte(strconv.Itoa(bystander.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := w.cli("bot", "stop"); code != 0 || !strings.Contains(out, "ended without cleaning up") {
		t.Errorf("a stop with a stale process id: %d %s", code, out)
	}
	if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
		t.Error("a bystander was ended")
	}

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	w.console = taken.Addr().String()
	w.configure()
	out, code = w.cli("bot", "start")
	if code != 1 || !strings.Contains(out, "address already in use") {
		t.Errorf("a start whose console cannot open: %d %s", code, out)
	}
}
