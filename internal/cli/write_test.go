package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/testkit/modeld"
)

func TestWriteAccessOutsideIsAskedForOnceAndForTheTask(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	_ = os.Chmod(dir, 0o777)
	call := func(n, dir string) modeld.Turn {
		return modeld.Turn{Text: "I write.", Calls: []modeld.Call{{Name: "bash", Args: map[string]any{"command": "echo x > " + dir + "/" + n,
			"additional_write_dirs": []string{dir}, "justification": "the cache lives there"}}}}
	}
	var state string
	brain := func(r modeld.Request) modeld.Turn {
		turns := 0
		for _, m := range r.Messages {
			if m.Role == "assistant" {
				turns++
			}
		}
		switch turns {
		case 0:
			return call("state", state)
		case 1:
			if !strings.Contains(strings.Join(r.Results(), ""), "never opened for writing") {
				return modeld.Turn{Text: "Done: the host's state: " + strings.Join(r.Results(), " ")}
			}
			return call("one", dir)
		case 2:
			return call("two", dir)
		case 3:
			return call("three", dir)
		}
		return modeld.Turn{Text: "Done: " + strings.Join(r.Results(), " ")}
	}
	w := newWorld(t, brain, func(w *world) { w.posture, state = "yolo", w.home })
	w.comment("dev", "/reasonix fix fill the cache")
	first := w.askID()
	if w.said("the cache lives there") == 0 || w.said(dir) == 0 {
		t.Errorf("the request does not show what it is about: %+v", w.github.BotComments())
	}
	w.comment("lead", "/approve "+first)
	w.eventually("the second request", func() bool { return w.askID() != first })
	if _, err := os.Stat(filepath.Join(dir, "one")); err != nil {
		t.Errorf("after the approval: %v", err)
	}
	second := w.askID()
	w.kill()
	w.start()
	w.comment("lead", "/answer "+second+" allow-session")
	w.eventually("the task is done", func() bool { return w.said("Done:") == 1 })
	for _, n := range []string{"one", "two", "three"} {
		if _, err := os.Stat(filepath.Join(dir, n)); err != nil {
			t.Error(err)
		}
	}
	if w.askID() != second {
		t.Error("it was asked again after the grant for the task")
	}
	if _, err := os.Stat(filepath.Join(w.home, "state")); err == nil {
		t.Error("the host's state was written")
	}
}

func TestWriteAccessForTheRouteHoldsForLaterTasksUntilItIsRevoked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "reports")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	_ = os.Chmod(dir, 0o777)
	w := newWorld(t, func(r modeld.Request) modeld.Turn {
		if results := r.Results(); len(results) > 0 {
			return modeld.Turn{Text: "Done: " + strings.Join(results, " ")}
		}
		return modeld.Turn{Text: "I write.", Calls: []modeld.Call{{Name: "write_file", Args: map[string]any{"path": filepath.Join(dir, "report.txt"), "content": lastPrompt(r) + "\n"}}}}
	}, func(w *world) { w.posture = "auto" })
	w.comment("dev", "/reasonix fix the first report")
	first := w.askID()
	if w.said("Let every task of this route write "+dir) == 0 {
		t.Errorf("the card: %+v", w.github.BotComments())
	}
	w.comment("lead", "/answer "+first+" allow-always")
	w.eventually("the first report", func() bool { return w.said("Done:") == 1 })
	w.commentOn(8, "dev", "/reasonix fix the second report")
	w.eventually("the second report", func() bool { return strings.Contains(w.onIssue(8), "Done:") })
	if w.askID() != first {
		t.Error("it was asked again")
	}
	out, _ := w.cli("permission", "list")
	if !strings.Contains(out, "WriteDir("+dir+")  route fix, by lead") {
		t.Fatalf("list:\n%s", out)
	}
	if out, code := w.cli("permission", "revoke", "1"); code != 0 {
		t.Fatal(out)
	}
	w.commentOn(9, "dev", "/reasonix fix the third report")
	w.eventually("it is asked about again", func() bool { return strings.Contains(w.onIssue(9), "ask_") })
}

func TestAddDirIsCheckedBeforeTheRun(t *testing.T) {
	w := newWorld(t, func(modeld.Request) modeld.Turn { return modeld.Turn{Text: "fine"} })
	for _, bad := range []string{"/", "/nowhere/at/all", filepath.Join(w.home, "config.toml")} {
		if out, code := w.cli("run", "--dir", t.TempDir(), "--add-dir", bad, "hello"); code != 2 || !strings.Contains(out, "--add-dir") {
			t.Errorf("%s: %d %s", bad, code, out)
		}
	}
	if out, code := w.cli("run", "--dir", t.TempDir(), "--add-dir", t.TempDir(), "hello"); code != 0 || !strings.Contains(out, "fine") {
		t.Errorf("%d %s", code, out)
	}
}
