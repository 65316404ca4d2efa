package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"reasonix/internal/provider"
	"reasonix/internal/session"
	"reasonix/internal/tool"
)

// desk is a transcript with complete_step over it, called as a model calls it.
type desk struct {
	t       *testing.T
	entries []session.Entry
	reg     *tool.Registry
}

func newDesk(t *testing.T, entries ...session.Entry) *desk {
	t.Helper()
	d := &desk{t: t, entries: entries, reg: &tool.Registry{}}
	err := d.reg.Add(NewStep(StepPorts{
		Entries: func(context.Context) ([]session.Entry, error) { return d.entries, nil },
		Request: "task:1",
		Where: func(p string) string {
			if strings.HasPrefix(p, "/") {
				return p
			}
			return "/ws/" + strings.TrimPrefix(p, "./")
		},
		Note: func(kind string, data json.RawMessage) {
			d.entries = append(d.entries, session.Entry{Kind: session.KindNote, Name: kind, Data: data})
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) sign(step string, evidence ...string) string {
	d.t.Helper()
	raw := fmt.Sprintf(`{"step":%q,"summary":"done","evidence":[%s]}`, step, strings.Join(evidence, ","))
	args, err := d.reg.Decode(StepTool, raw)
	if err != nil {
		return "refused: " + err.Error()
	}
	t, _ := d.reg.Get(StepTool)
	text, err := t.Execute(d.t.Context(), args)
	if err != nil {
		return "refused: " + err.Error()
	}
	return text
}

func (d *desk) wants(got string, want ...string) {
	d.t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			d.t.Errorf("want %q in\n%s", w, got)
		}
	}
}

func (d *desk) facts() string { return strings.Join(Since(d.entries, "task:1").Lines(), "\n") }

func ran1(line string) string {
	b, _ := json.Marshal(map[string]string{"kind": "verification", "command": line})
	return string(b)
}

func asked(key string) session.Entry {
	return session.Entry{Kind: session.KindUser, Name: key, Message: &provider.Message{Role: provider.RoleUser, Content: "do it"}}
}

func seen(path string) session.Entry {
	data, _ := json.Marshal(tool.Seen{Path: path, Version: "v1"})
	return session.Entry{Kind: session.KindNote, Name: tool.NoteSeen, Data: data}
}

func TestOnlyWhatTheHostRecordedBacksAVerification(t *testing.T) {
	for _, c := range []struct {
		name  string
		ran   []session.Entry
		cites string
		want  string // in the report; "verified" where it is backed
	}{
		{"a command that passed", []session.Entry{bash("go test ./...", 0)}, " go test ./... ", "verified"},
		{"a part of a line", []session.Entry{bash("cd api && CI=1 timeout 60 go test ./...", 0)}, "go test ./...", "verified"},
		{"the same words, other white space", []session.Entry{bash("cd api && go  test   ./...", 0)}, "go test ./...", "verified"},
		{"a whole compound line", []session.Entry{bash("go vet ./... && go test ./...", 0)}, "go vet ./... && go test ./...", "verified"},
		{"a program that is no check", []session.Entry{bash("echo '1 2' | ./sum", 0)}, "./sum", "verified"},
		{"it failed and passed later", []session.Entry{bash("go test ./...", 1), edit("a.go"), bash("go test ./...", 0)}, "go test ./...", "verified"},
		{"looking around makes nothing stale", []session.Entry{bash("go test ./...", 0), bash("git add -A && git status; cat a.go | head -3 2>/dev/null", 0)}, "go test ./...", "verified"},
		{"it never ran", nil, "go test ./...", "not run in this task"},
		{"it was only quoted", []session.Entry{bash(`echo "go test ./..."`, 0)}, "go test ./...", "not run in this task"},
		{"a comment names it", []session.Entry{bash("true # go test ./...", 0)}, "go test ./...", "not run in this task"},
		{"a longer word", []session.Entry{bash("go test ./... -run Nothing", 0)}, "go test ./...", "not run in this task"},
		{"its last run failed", []session.Entry{bash("go test ./...", 0), bash("go test ./...", 2)}, "go test ./...", "last run failed (exit code 2)"},
		{"it was refused", []session.Entry{ran(session.Fact{Tool: "bash", Refused: true, Command: "go test ./..."})}, "go test ./...", "was refused"},
		{"its outcome is unknown", []session.Entry{ran(session.Fact{Tool: "bash", Unknown: true, Changes: true, Command: "go test ./..."})}, "go test ./...", "not run in this task"},
		{"it only started in the background", []session.Entry{ran(session.Fact{Tool: "bash", OK: true, Changes: true})}, "go test ./...", "not run in this task"},
		{"a file tool changed something since", []session.Entry{bash("go test ./...", 0), edit("a.go")}, "go test ./...", "before the last change to files"},
		{"a command may have changed something since", []session.Entry{bash("go test ./...", 0), bash("sed -i s/a/b/ a.go", 1)}, "go test ./...", "may have changed files: sed -i"},
		{"a redirection is a change", []session.Entry{bash("go test ./...", 0), bash("cat a > b", 0)}, "go test ./...", "may have changed files"},
		{"a substitution is looked into", []session.Entry{bash("go test ./...", 0), bash("echo $(rm a)", 0)}, "go test ./...", "may have changed files"},
		{"a change behind it in the same line", []session.Entry{bash("go test ./... && rm a", 0)}, "go test ./...", "may have changed files"},
		{"a change before it in the same line", []session.Entry{bash("gofmt -w . && go test ./...", 0)}, "go test ./...", "verified"},
		{"a linter that mends is a change", []session.Entry{bash("go test ./...", 0), bash("eslint --fix .", 0)}, "go test ./...", "may have changed files"},
		{"a call of unknown outcome since", []session.Entry{bash("go test ./...", 0), ran(session.Fact{Tool: "bash", Unknown: true, Changes: true, Command: "make"})}, "go test ./...", "may have changed files"},
		{"behind || true", []session.Entry{bash("go test ./... || true", 0)}, "go test ./...", "does not tell"},
		{"before a pipe", []session.Entry{bash("go test ./... | tail -3", 0)}, "go test ./...", "does not tell"},
		{"the whole line with a pipe", []session.Entry{bash("go test ./... | tail -3", 0)}, "go test ./... | tail -3", "does not tell"},
		{"the line ended before it", []session.Entry{bash("exit 0; go test ./...", 0)}, "go test ./...", "does not tell"},
		{"the line ended before it, in a part", []session.Entry{bash("test -f x && exec true; go test ./...", 0)}, "go test ./...", "does not tell"},
		{"the line ended before it, in a condition", []session.Entry{bash("if true; then exit 0; fi; go test ./...", 0)}, "go test ./...", "does not tell"},
		{"a function of its name", []session.Entry{bash("go() { true; }; go test ./...", 0)}, "go test ./...", "does not tell"},
		{"nothing of the line runs", []session.Entry{bash("set -n; go test ./...", 0)}, "go test ./...", "does not tell"},
		{"a careful line", []session.Entry{bash("set -euo pipefail; cd api && go test ./...", 0)}, "go test ./...", "verified"},
		{"a reader that writes", []session.Entry{bash("go test ./...", 0), bash("git diff --output=a.go", 0)}, "go test ./...", "may have changed files"},
		{"a sort onto itself", []session.Entry{bash("go test ./...", 0), bash("sort -uo a a", 0)}, "go test ./...", "may have changed files"},
		{"a here document", []session.Entry{bash("cat <<E\ngo test ./...\nE", 0)}, "go test ./...", "not run in this task"},
		{"a loop", []session.Entry{bash("for i in 1 2; do go test ./...; done", 0)}, "for i in 1 2; do go test ./...; done", "does not tell"},
		{"a part of a failed line", []session.Entry{bash("go vet ./... && go test ./...", 1)}, "go test ./...", "does not tell"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, append([]session.Entry{asked("task:1"), todos(Todo{"a", InProgress, 0})}, c.ran...)...)
			got := d.sign("a", ran1(c.cites))
			d.wants(got, c.want)
			if lowered := strings.Contains(got, "NOT completed"); lowered == (c.want == "verified") {
				t.Errorf("standing:\n%s", got)
			}
			list := Since(d.entries, "task:1").Todos
			if (list[0].Status == Completed) != (c.want == "verified") {
				t.Errorf("the item is %s", list[0].Status)
			}
		})
	}
}

func TestARunOfAnEarlierRequestIsNoEvidence(t *testing.T) {
	d := newDesk(t, asked("task:0"), bash("go test ./...", 0), edit("old.go"), todos(Todo{"a", InProgress, 0}), asked("task:1"))
	d.wants(d.sign("a", ran1("go test ./...")), "NOT completed", "it was not run in this task")
	d.wants(d.sign("a", `{"kind":"diff","paths":["old.go"]}`), "NOT completed")
	if got := Since(d.entries, "task:1"); len(got.Files) != 0 || len(got.Tools) != 0 {
		t.Errorf("facts of the earlier request: %+v", got)
	}
}

func TestCitedFilesMustHaveBeenSeen(t *testing.T) {
	d := newDesk(t, asked("task:1"), todos(Todo{"a", InProgress, 0}, Todo{"b", Pending, 0}), seen("/ws/read.go"), edit("calc.go"), edit("/ws/sub/x.go"))
	d.wants(d.sign("a", `{"kind":"diff","paths":["read.go"]}`), "NOT completed", "no file tool changed it")
	d.wants(d.sign("a", `{"kind":"files","paths":["read.go","other.go"]}`), "other.go: it was neither read nor changed")
	d.wants(d.facts(), "open todo: a (in progress)")
	d.wants(d.sign("a", `{"kind":"diff","paths":["./calc.go","sub/x.go"]}`, `{"kind":"files","paths":["read.go","calc.go"]}`), "completed, verified: a", "1 of 2 done; now in progress: b")
	if strings.Contains(d.facts(), "unverified") {
		t.Errorf("facts:\n%s", d.facts())
	}
}

func TestANoteNeverBacksItself(t *testing.T) {
	d := newDesk(t, asked("task:1"), todos(Todo{"look", InProgress, 0}, Todo{"test", Pending, 0}, Todo{"rest", Pending, 0}), bash("go test ./...", 0))
	d.wants(d.sign("look", `{"kind":"manual","note":"compared by eye","backed":true}`), "refused") // what it says about itself is no field
	d.wants(d.sign("look", `{"kind":"manual","note":"compared by eye"}`), "completed, unverified", "now in progress: test")
	d.wants(d.sign("test", ran1("go test ./..."), `{"kind":"manual","note":"and it looks right"}`), "completed, unverified", "1. verification go test ./...: backed")
	d.entries = append(d.entries, todos(Todo{"look", Completed, 0}, Todo{"test", Completed, 0}, Todo{"rest", Completed, 0}))
	d.wants(d.facts(), "unverified: look: on the model's word: compared by eye", "unverified: test: on the model's word: and it looks right", "completed without evidence: rest")
}

func TestALoweredClaimStandsBesideAStepThatIsCompletedAllTheSame(t *testing.T) {
	list := []Todo{{"a", InProgress, 0}}
	d := newDesk(t, asked("task:1"), todos(list...), bash("go test ./...", 1))
	d.wants(d.sign("a", ran1("go test ./...")), "NOT completed", "stays in progress")
	d.entries = append(d.entries, todos(Todo{"a", Completed, 0}))
	d.wants(d.facts(), "failed command: go test ./... (exit code 1)", "unverified: a: go test ./...: its last run failed (exit code 1)")
}

func TestAnItemThatIsOpenedAgainLosesItsSignOff(t *testing.T) {
	d := newDesk(t, asked("task:1"), todos(Todo{"a", InProgress, 0}), bash("go test ./...", 0))
	d.wants(d.sign("a", ran1("go test ./...")), "verified", "1 of 1 done")
	if got := d.facts(); got != "" {
		t.Fatalf("facts %q", got)
	}
	d.entries = append(d.entries, todos(Todo{"a", InProgress, 0}), todos(Todo{"a", Completed, 0}))
	d.wants(d.facts(), "completed without evidence: a")
}

func TestAStepOfTheSameTextNeedsItsOwnSignOff(t *testing.T) {
	d := newDesk(t, asked("task:1"), todos(Todo{"run the tests", InProgress, 0}, Todo{"run the tests", Pending, 0}), bash("go test ./...", 0))
	d.wants(d.sign("run the tests", ran1("go test ./...")), "verified")
	d.entries = append(d.entries, todos(Todo{"run the tests", Completed, 0}, Todo{"run the tests", Completed, 0}))
	d.wants(d.facts(), "completed without evidence: run the tests")
}

func TestStepsGoInOrder(t *testing.T) {
	d := newDesk(t, asked("task:1"), bash("go vet ./...", 0))
	ok := ran1("go vet ./...")
	d.wants(d.sign("one", ok), "refused: nothing was signed off: no todo is in progress")
	d.entries = append(d.entries, todos(Todo{"phase", Pending, 0}, Todo{"one", InProgress, 1}, Todo{"two", Pending, 1}, Todo{"next", Pending, 0}))
	d.wants(d.sign("two", ok), `refused: nothing was signed off: in progress is "one", and only that can be`)
	d.wants(d.sign("phase", ok), `in progress is "one"`)
	d.wants(d.sign(" one ", ok), "1 of 4 done; now in progress: two")
	d.wants(d.sign("two", ok), "now in progress: phase")
	d.wants(d.sign("phase", ok), "now in progress: next")
	d.wants(d.sign("next", ok), "4 of 4 done")
	d.wants(d.sign("next", ok), "no todo is in progress")
}

func TestEvidenceThatCitesNothingIsRefused(t *testing.T) {
	d := newDesk(t, asked("task:1"), todos(Todo{"a", InProgress, 0}))
	for item, want := range map[string]string{
		`{"kind":"verification"}`: "needs command", `{"kind":"verification","note":"x"}`: "needs command", `{"kind":"diff"}`: "needs paths",
		`{"kind":"manual"}`: "needs note", `{"kind":"manual","note":" "}`: "needs note", `{"kind":"proof","note":"x"}`: "refused",
		`{"kind":"manual","note":"x","command":"true"}`: "cites note alone", `{"kind":"verification","command":"x","paths":["a"]}`: "cites command alone",
	} {
		d.wants(d.sign("a", item), "refused", want)
	}
	d.wants(d.sign("a"), "refused")
	if len(d.entries) != 2 {
		t.Errorf("a refused call left %d entries", len(d.entries)-2)
	}
}

// Whatever ran and whatever is claimed: a verified step has a passing run behind which nothing changed.
func TestTheHostNeverRaisesAClaim(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lines := []string{"go test ./...", "go vet ./...", "go vet ./... && go test ./...", "rm x", "ls", "go test ./... | cat"}
		entries := []session.Entry{asked("task:1"), todos(Todo{"a", InProgress, 0})}
		fresh := false
		for range rapid.IntRange(0, 8).Draw(rt, "calls") {
			if rapid.Bool().Draw(rt, "edit") {
				entries, fresh = append(entries, edit("f")), false
				continue
			}
			line, code := rapid.SampledFrom(lines).Draw(rt, "line"), rapid.IntRange(0, 1).Draw(rt, "code")
			entries = append(entries, bash(line, code))
			switch {
			case line == "rm x":
				fresh = false
			case strings.Contains(line, "go test"):
				fresh = code == 0 && !strings.Contains(line, "|")
			}
		}
		f := Since(entries, "task:1")
		c := f.Adjudicate(Claim{Step: "a", Standing: Verified, Evidence: []Item{{Kind: Verification, Command: "go test ./...", Backed: true}}}, func(p string) string { return p })
		if (c.Standing == Verified) != fresh || c.Evidence[0].Backed != fresh {
			rt.Fatalf("fresh %v, adjudicated %+v", fresh, c)
		}
	})
}
