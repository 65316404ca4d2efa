package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"reasonix/internal/testkit/modeld"
)

// turnsOf counts what the model said before.
func turnsOf(r modeld.Request) (n int) {
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	return n
}

// told are the user messages that the host put before the model.
func told(r modeld.Request) string {
	var all []string
	for _, m := range r.Messages {
		if m.Role == "user" {
			all = append(all, m.Text())
		}
	}
	return strings.Join(all, "\n")
}

func bash(command string) modeld.Turn {
	return modeld.Turn{Text: "I run it.", Calls: []modeld.Call{{Name: "bash", Args: map[string]any{"command": command}}}}
}

// workspaces are the folders of tasks on the host's disk.
func (w *world) workspaces() []string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.home, "data", "work", "task_*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func TestATaskGoesOnFromTheLastTurnWhenHostAndFolderAreLost(t *testing.T) {
	w := newWorld(t, func(r modeld.Request) modeld.Turn {
		switch turnsOf(r) {
		case 0:
			return bash("echo one > first.txt; mkdir -p build; echo big > build/cache.tmp; git checkout -q -b side; git add first.txt; git commit -qm first")
		case 1:
			return bash("echo two > second.txt")
		case 2:
			return bash("sleep 300")
		case 3:
			return bash("cat first.txt second.txt; git branch --show-current; git log --format=%s -1; ls build 2>&1")
		}
		return modeld.Turn{Text: "Done: " + strings.Join(r.Results(), " ") + "\nTold: " + told(r)}
	}, func(w *world) {
		w.repo = bareRepo(t, map[string]string{"README.md": "hello\n", ".gitignore": "*.tmp\n"})
	})
	w.comment("dev", "/reasonix fix run it")
	w.eventually("both turns are kept", func() bool {
		for _, dir := range w.workspaces() {
			id := filepath.Base(dir)
			git := filepath.Join(w.home, "data", "host", id, "git")
			out, _ := exec.Command("git", "--git-dir="+git, "for-each-ref", "--format=%(refname)", "refs/snapshots").Output()
			refs := strings.Fields(string(out))
			if len(refs) > 0 {
				files, _ := exec.Command("git", "--git-dir="+git, "ls-tree", "--name-only", refs[len(refs)-1]).Output()
				return strings.Contains(string(files), "second.txt")
			}
		}
		return false
	})
	w.eventually("the request is acknowledged", func() bool { return len(w.github.BotComments()) > 0 })
	w.kill()
	for _, dir := range w.workspaces() {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.eventually("the final word", func() bool { return w.said("Done:") == 1 })
	for _, want := range []string{"one\ntwo\nside\nfirst", "cannot access 'build'", "is restored in", "Files that git ignores"} {
		if w.said(want) != 1 {
			t.Errorf("lacks %q in %+v", want, w.github.BotComments())
		}
	}
}

// A parked task's state is copied to another place, as to another machine, without the folders of its workspaces. The press there continues
// the very call.
func TestAParkedTaskContinuesTheVeryCallOnAnotherHost(t *testing.T) {
	var effects string
	w := newWorld(t, func(r modeld.Request) modeld.Turn {
		switch turnsOf(r) {
		case 0:
			return modeld.Turn{Text: "I write.", Calls: []modeld.Call{{Name: "write_file", Args: map[string]any{"path": "made.txt", "content": "kept\n"}}}}
		case 1:
			return bash("cat made.txt >> " + effects + "/runs")
		}
		return modeld.Turn{Text: "Done: " + strings.Join(r.Results(), " ") + "\nTold: " + told(r)}
	}, func(w *world) { w.posture, effects = "ask", w.effects })
	w.comment("dev", "/reasonix fix run it")
	ask := w.askID()
	_ = w.process.Process.Signal(syscall.SIGTERM)
	<-w.stopped

	other := filepath.Join(t.TempDir(), "host-b")
	if out, err := exec.Command("cp", "-a", w.home, other).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, gone := range []string{w.home, filepath.Join(other, "data", "work")} {
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
	}
	w.home = other
	w.configure()
	w.start()
	w.comment("lead", "/approve "+ask)
	w.eventually("the final word", func() bool { return w.said("Done:") == 1 })
	if w.runs() != 1 {
		t.Errorf("the command ran %d times", w.runs())
	}
	asks := map[string]bool{}
	for _, c := range w.github.BotComments() {
		if id := askIn.FindString(c.Body); id != "" {
			asks[id] = true
		}
	}
	if len(asks) != 1 {
		t.Errorf("it was asked again: %v", asks)
	}
	if w.said("restored in "+other) != 1 {
		t.Errorf("the model was not told: %+v", w.github.BotComments())
	}
}

// A reply that comes after the workspace was let go starts on a new clone: on the branch as it was pushed, where there is one. The model is
// told what is gone.
func TestAReplyAfterTheWorkspaceWasCollected(t *testing.T) {
	for _, c := range []struct{ name, publish, file, says string }{
		{"pushed", "publish = { pr = false }", "made.txt: kept", "as it was pushed (commit "},
		{"never pushed", "", "made.txt: gone", "nothing of it was pushed or kept"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(r modeld.Request) modeld.Turn {
				switch turnsOf(r) {
				case 0:
					return modeld.Turn{Text: "I write.", Calls: []modeld.Call{{Name: "write_file", Args: map[string]any{"path": "made.txt", "content": "kept\n"}}}}
				case 1:
					return modeld.Turn{Text: "First: done"}
				case 2:
					return bash("printf 'made.txt: '; cat made.txt 2>/dev/null || echo gone; git branch --show-current; echo more > more.txt")
				}
				return modeld.Turn{Text: "Second: " + strings.Join(r.Results(), " ") + "\nTold: " + told(r)}
			}, func(w *world) { w.publish = c.publish })
			w.comment("dev", "/reasonix fix write a file")
			w.eventually("the first task is done", func() bool { return w.said("First: done") == 1 })
			w.settled()
			id := filepath.Base(w.workspaces()[0])
			config := filepath.Join(w.home, "config.toml")
			text, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(config, []byte(strings.Replace(string(text), "[bot]\n", "[bot]\nkeep_workspaces_for = \"1ns\"\n", 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, code := w.cli("bot", "workspace", "gc"); code != 0 || !strings.Contains(out, "1 removed") {
				t.Fatalf("%d %s", code, out)
			}
			w.comment("dev", "/reasonix fix and more")
			w.eventually("the reply is done", func() bool { return w.said("Second:") == 1 })
			for _, want := range []string{c.file, c.says, "reasonix/" + strings.TrimPrefix(id, "task_")} {
				if w.said(want) == 0 {
					t.Errorf("lacks %q in %+v", want, w.github.BotComments())
				}
			}
			if c.publish == "" {
				return
			}
			branch := "reasonix/" + strings.TrimPrefix(id, "task_")
			w.eventually("both changes are published", func() bool {
				out, _ := exec.Command("git", "--git-dir="+w.repo, "ls-tree", "--name-only", branch).Output()
				return strings.Contains(string(out), "made.txt\nmore.txt")
			})
		})
	}
}
