package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"reasonix/internal/testkit/modeld"
)

func TestWorkspacesAreListedShownRestoredAndLetGoOnlyWhenNoTaskNeedsThem(t *testing.T) {
	brain := func(r modeld.Request) modeld.Turn {
		turns := 0
		for _, m := range r.Messages {
			if m.Role == "assistant" {
				turns++
			}
		}
		switch turns {
		case 0:
			return modeld.Turn{Text: "I write.", Calls: []modeld.Call{{Name: "write_file", Args: map[string]any{"path": "made.txt", "content": "kept\n"}}}}
		case 1:
			return modeld.Turn{Text: "I ask.", Calls: []modeld.Call{{Name: "ask", Args: map[string]any{"question": "Go on?"}}}}
		}
		return modeld.Turn{Text: "Done: " + strings.Join(r.Results(), " ")}
	}
	w := newWorld(t, brain)
	config := filepath.Join(w.home, "config.toml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	// The commands read this; the running host keeps its own values.
	if err := os.WriteFile(config, []byte(strings.Replace(string(text), "[bot]\n", "[bot]\nkeep_workspaces_for = \"1ns\"\n", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := w.cli("bot", "workspace", "list"); code != 0 || !strings.Contains(out, "No workspaces.") {
		t.Errorf("%d %s", code, out)
	}
	w.comment("dev", "/reasonix fix write a file")
	ask := w.askID()
	out, code := w.cli("bot", "workspace", "list")
	id := regexp.MustCompile(`task_\w+`).FindString(out)
	if code != 0 || id == "" || !strings.Contains(out, "yes") {
		t.Fatalf("%d %s", code, out)
	}
	if out, code := w.cli("bot", "workspace", "gc"); code != 0 || !strings.Contains(out, "0 removed") {
		t.Errorf("a parked task's workspace: %d %s", code, out)
	}
	if out, code := w.cli("bot", "workspace", "show", id); code != 0 || !strings.Contains(out, "snapshot ") || !strings.Contains(out, "parked") || !strings.Contains(out, "MiB") {
		t.Errorf("%d %s", code, out)
	}
	to := filepath.Join(t.TempDir(), "restored")
	if out, code := w.cli("bot", "workspace", "restore", id, to); code != 0 {
		t.Errorf("%d %s", code, out)
	}
	if data, err := os.ReadFile(filepath.Join(to, "made.txt")); err != nil || string(data) != "kept\n" {
		t.Errorf("%q %v", data, err)
	}
	file := filepath.Join(t.TempDir(), "export")
	if out, code := w.cli("bot", "workspace", "export", id, file); code != 0 || !strings.Contains(out, "Written to "+file) {
		t.Errorf("%d %s", code, out)
	}
	config2 := filepath.Join(t.TempDir(), "home")
	b := *w
	b.home = config2
	if err := os.MkdirAll(b.home, 0o700); err != nil {
		t.Fatal(err)
	}
	b.configure()
	if out, code := b.cli("bot", "workspace", "import", file); code != 0 || !strings.Contains(out, id+" is here, with ") {
		t.Errorf("%d %s", code, out)
	}
	there := filepath.Join(t.TempDir(), "there")
	if out, code := b.cli("bot", "workspace", "restore", id, there); code != 0 {
		t.Errorf("%d %s", code, out)
	}
	if data, err := os.ReadFile(filepath.Join(there, "made.txt")); err != nil || string(data) != "kept\n" {
		t.Errorf("%q %v", data, err)
	}
	for _, args := range [][]string{{"export", id, file}, {"export", "nobody", file + "2"}, {"export", id}, {"import", file}, {"import", filepath.Join(to, "made.txt")}, {"import", file + "3"},
		{"restore", id, to}, {"restore", "nobody", t.TempDir()}, {"show", "../x"}, {"show"}} {
		if out, code := w.cli(append([]string{"bot", "workspace"}, args...)...); code == 0 {
			t.Errorf("%v: %s", args, out)
		}
	}
	w.comment("lead", "/answer "+ask+" yes")
	w.eventually("the task is done", func() bool { return w.said("Done:") == 1 })
	if out, code := w.cli("bot", "workspace", "gc", "--dry-run"); code != 0 || !strings.Contains(out, "1 would go") {
		t.Errorf("%d %s", code, out)
	}
	if out, code := w.cli("bot", "workspace", "gc"); code != 0 || !strings.Contains(out, "1 removed") {
		t.Errorf("%d %s", code, out)
	}
	if out, _ := w.cli("bot", "workspace", "list"); !strings.Contains(out, "No workspaces.") {
		t.Errorf("%s", out)
	}
}

func TestAFullHostLetsGoWhatNobodyNeedsAndSaysWhenThatIsNotEnough(t *testing.T) {
	w := newWorld(t, func(r modeld.Request) modeld.Turn {
		switch {
		case strings.Contains(told(r), "ask me") && turnsOf(r) == 0:
			return modeld.Turn{Text: "I ask.", Calls: []modeld.Call{{Name: "ask", Args: map[string]any{"question": "Go on?"}}}}
		case strings.Contains(told(r), "ask me"):
			return modeld.Turn{Text: "Asked and done."}
		}
		return modeld.Turn{Text: "Done at once."}
	}, func(w *world) { w.publish = "max_workspaces = 1" })
	on := func(issue int, user, body string) {
		t.Helper()
		if a := w.github.Deliver(t, w.hook("hub"), w.github.Comment("acme/api", issue, user, body)); a.Status/100 != 2 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	on(7, "dev", "/reasonix fix and ask me")
	first := w.askID()
	one := w.workspaces()
	on(8, "dev", "/reasonix fix another")
	w.eventually("the second waits for room", func() bool { return w.said("no room for another workspace") > 0 })
	if w.said("the route fix may have 1 workspaces") == 0 || w.said("raise max_workspaces") == 0 {
		t.Errorf("%+v", w.github.BotComments())
	}
	if out, code := w.cli("bot", "doctor"); code == 0 || !strings.Contains(out, "no room for another workspace") {
		t.Errorf("%d %s", code, out)
	}
	second := ""
	for _, c := range w.github.BotComments() {
		if id := askIn.FindString(c.Body); id != "" && id != first {
			second = id
		}
	}
	on(7, "lead", "/answer "+first+" yes")
	w.eventually("the first is done", func() bool { return w.said("Asked and done.") == 1 })
	w.eventually("its end is stored", func() bool {
		out, _ := w.cli("bot", "tasks")
		return strings.Contains(out, "completed")
	})
	on(8, "lead", "/answer "+second+" there is room now")
	w.eventually("the second is done", func() bool { return w.said("Done at once.") == 1 })
	if left := w.workspaces(); len(left) != 1 || left[0] == one[0] {
		t.Errorf("before %v, now %v", one, left)
	}
	out, code := w.cli("bot", "workspace", "list")
	if code != 0 || !strings.Contains(out, "Together: 1, ") || !strings.Contains(out, "quota: none") || !strings.Contains(out, "Mirrors, shared by all: ") || !strings.Contains(out, " fix ") {
		t.Errorf("%d %s", code, out)
	}
}
