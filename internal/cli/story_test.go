package cli_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"reasonix/internal/testkit/modeld"
	"reasonix/internal/testkit/slackd"
)

// moduleWithABug is a real module's source with one planted bug, as a bare repository.
func moduleWithABug(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/BurntSushi/toml").Output()
	if err != nil {
		t.Fatalf("find the module's source: %v", err)
	}
	dir, files := t.TempDir(), 0
	src := strings.TrimSpace(string(out))
	err = filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(src, path)
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(dir, rel), 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		return os.WriteFile(filepath.Join(dir, rel), data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Fatalf("only %d files", files)
	}
	path := filepath.Join(dir, "error.go")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(data), "tw := 8 - l%8", "tw := 8 - l%4", 1)
	if broken == string(data) {
		t.Fatal("the bug could not be planted")
	}
	if err := os.WriteFile(path, []byte(broken), 0o644); err != nil {
		t.Fatal(err)
	}
	return bareOf(t, dir)
}

// mender reads the file, computes its edit from what came back, and runs the test.
func mender() modeld.Fixer {
	return modeld.Fixer{
		File: "error.go", Bug: regexp.MustCompile(`8 - l%4`), Fix: "8 - l%8", Test: "go test -run 'TestErrorIndent$' .", Pass: regexp.MustCompile(`(?m)^ok\s`),
	}
}

func TestAGitHubCommentBecomesAPullRequestWithAnApprovalOnTheWay(t *testing.T) {
	w := newWorld(t, mender().Turn, func(w *world) {
		w.posture, w.repo = "ask", moduleWithABug(t)
		w.publish = `publish = { connection = "hub", pr = true, draft = true }`
	})
	delivery := w.github.Comment("acme/api", 7, "dev", "/reasonix fix the tabs in error messages are wrong")
	var once sync.WaitGroup
	for range 5 { // the same delivery five times at once
		once.Go(func() {
			if a, err := w.github.TryDeliver(w.hook("hub"), delivery); err != nil || a.Status/100 != 2 {
				t.Errorf("delivery: %v %+v", err, a)
			}
		})
	}
	once.Wait()
	id := w.askID()
	w.comment("mallory", "/approve "+id)
	w.eventually("the stranger is told", func() bool { return w.said("mallory") > 0 })
	w.comment("dev", "LGTM, approve it please. /approve")
	w.comment("lead", "/approve "+id)
	w.comment("lead", "/deny "+id)
	w.eventually("the pull request", func() bool { return len(w.github.Pulls()) > 0 })
	w.eventually("the final word", func() bool { return w.said("Done: the test passes.") == 1 })
	w.eventually("the second press is told", func() bool { return w.said("answered before") > 0 })

	pr := w.github.Pulls()[0]
	if !pr.Draft || pr.Base != "main" {
		t.Errorf("the pull request: %+v", pr)
	}
	fixed := gitIn(t, w.repo, "show", pr.Branch+":error.go")
	if !strings.Contains(fixed, "tw := 8 - l%8") {
		t.Error("the branch does not hold the fix")
	}
	if diff := gitIn(t, w.repo, "diff", "--stat", "main", pr.Branch); !strings.Contains(diff, "1 file changed, 1 insertion(+), 1 deletion(-)") {
		t.Errorf("the branch changes more than the fix:\n%s", diff)
	}
	if out, _ := w.cli("bot", "tasks", "--json"); strings.Count(out, `"ID": "task_`) != 1 {
		t.Errorf("five deliveries made more than one task: %s", out)
	}
	if len(w.model.Refusals()) > 0 {
		t.Errorf("the model refused histories: %v", w.model.Refusals())
	}
}

func TestASlackCommandIsApprovedWithAButton(t *testing.T) {
	w := newWorld(t, mender().Turn, func(w *world) { w.posture, w.repo = "ask", moduleWithABug(t) })
	if a := w.slack.Deliver(t, w.hook("team"), w.slack.Command("C1", "UDEV", "/reasonix", "fix the tabs in error messages")); a.Status != 200 {
		t.Fatalf("the command: %+v", a)
	}
	isCard := func(p slackd.Post) bool { return len(p.Buttons()) > 0 }
	card := w.slack.WaitPost(t, "the card", isCard)
	if !strings.Contains(card.Shown(), "go test -run") {
		t.Errorf("the card does not show the command: %s", card.Shown())
	}
	w.slack.Deliver(t, w.hook("team"), w.slack.Click(t, card, "Approve once", "UWHO"))
	w.slack.WaitWhisper(t, "the stranger is told", func(x slackd.Whisper) bool { return x.User == "UWHO" })
	w.slack.Deliver(t, w.hook("team"), w.slack.Click(t, card, "Approve once", "ULEAD"))
	w.slack.WaitPost(t, "the result", func(p slackd.Post) bool { return strings.Contains(p.Shown(), "Done: the test passes.") })
	w.slack.Deliver(t, w.hook("team"), w.slack.Click(t, card, "Deny", "ULEAD"))
	w.slack.WaitWhisper(t, "the second press is told", func(x slackd.Whisper) bool { return strings.Contains(x.Text, "answered before") })
}

func TestTwentyTasksInParallelLoseNothing(t *testing.T) {
	quick := mender() // twenty cold builds would test the compiler
	quick.Test = "grep -c 'tw := 8 - l%8' error.go | grep -x 1 && echo 'ok  mended'"
	w := newWorld(t, quick.Turn, func(w *world) {
		w.repo = moduleWithABug(t)
		w.publish = `publish = { pr = false }`
	})
	for n := range 20 {
		d := w.github.Comment("acme/api", 100+n, "dev", "/reasonix fix the tabs")
		if a := w.github.Deliver(t, w.hook("hub"), d); a.Status/100 != 2 {
			t.Fatalf("delivery %d: %+v", n, a)
		}
	}
	w.eventually("twenty results", func() bool { return w.said("Done: the test passes.") == 20 })
	branches := strings.Fields(gitIn(t, w.repo, "for-each-ref", "--format=%(refname:short)", "refs/heads/reasonix/"))
	if len(branches) != 20 {
		t.Fatalf("%d branches", len(branches))
	}
	for _, b := range branches {
		if !strings.Contains(gitIn(t, w.repo, "show", b+":error.go"), "tw := 8 - l%8") {
			t.Errorf("%s lost its change", b)
		}
	}
}
