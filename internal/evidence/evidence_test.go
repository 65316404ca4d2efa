package evidence

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"reasonix/internal/chat"
	"reasonix/internal/provider"
	"reasonix/internal/session"
)

func ran(f session.Fact) session.Entry {
	return session.Entry{Kind: session.KindResult, Fact: &f, Message: &provider.Message{Role: provider.RoleTool, Content: "text\nmore"}}
}

func bash(line string, code int) session.Entry {
	return ran(session.Fact{Tool: "bash", OK: code == 0, Changes: true, Command: line, ExitCode: code})
}

func edit(path string) session.Entry {
	return ran(session.Fact{Tool: "edit_file", OK: true, Changes: true, Paths: []string{path}})
}

func todos(list ...Todo) session.Entry {
	data, err := json.Marshal(TodoList{list})
	if err != nil {
		panic(err)
	}
	return session.Entry{Kind: session.KindNote, Name: NoteTodos, Data: data}
}

func signedOff(c Claim) session.Entry {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return session.Entry{Kind: session.KindNote, Name: NoteStep, Data: data}
}

func TestAReceiptShowsWhatSpeaksAgainstAClaim(t *testing.T) {
	f := Collect([]session.Entry{
		{Kind: session.KindUser, Message: &provider.Message{Role: provider.RoleUser, Content: "fix it"}},
		todos(Todo{"old", Pending, 0}),
		bash("go test ./...", 1),
		edit("calc.go"),
		ran(session.Fact{Tool: "edit_file", OK: false, Changes: true, Paths: []string{"never.go"}}),
		ran(session.Fact{Tool: "bash", OK: true, Command: "go test ./...", Approved: "lead", Digest: "abc"}),
		bash("rm build", 1),
		bash("ls nowhere", 2), bash("ls nowhere", 0),
		ran(session.Fact{Tool: "bash", Refused: true, Command: "git push"}),
		ran(session.Fact{Tool: "bash", Refused: true, Command: "git push"}),
		ran(session.Fact{Tool: "bash", Unknown: true, Command: "deploy.sh"}),
		todos(Todo{"fix", Completed, 0}, Todo{"write docs", InProgress, 0}),
		{Kind: session.KindNote, Name: NoteTodos, Data: json.RawMessage(`broken`)},
		{Kind: session.KindNote, Name: "seen", Data: json.RawMessage(`{}`)},
	})
	want := []string{
		"outcome unknown: bash deploy.sh",
		"failed command: rm build (exit code 1)",
		"may have changed files after this check passed: go test ./..., then rm build",
		"open todo: write docs (in progress)",
		"refused: bash git push",
		"completed without evidence: fix",
	}
	if got := f.Lines(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	var r chat.ReceiptView
	f.Fill(&r)
	if got := fmt.Sprint(r.Tools); got != "[{bash 5 (3 failed)} {edit_file 2 (1 failed)}]" {
		t.Errorf("tools %s", got)
	}
	if got := fmt.Sprint(r.Checks); got != "[{go test ./... passed, before the last change}]" {
		t.Errorf("checks %s", got)
	}
	if got := fmt.Sprint(r.Approvals, f.Files); got != "[lead approved bash abc] [calc.go]" {
		t.Errorf("approvals and files %s", got)
	}
	if len(f.Refusals) != 2 || f.Refusals[0].Reason != "text" {
		t.Errorf("refusals %+v", f.Refusals)
	}
}

func TestACleanRunHasNothingToSay(t *testing.T) {
	f := Collect([]session.Entry{edit("a"), bash("go vet ./... && go test ./...", 0), bash("git diff | head -5 > /dev/null", 0),
		todos(Todo{"a", InProgress, 0}), signedOff(Claim{Step: "a", Standing: Verified}), todos(Todo{"a", Completed, 0})})
	if got := f.Lines(); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got := Collect(nil).Lines(); len(got) != 0 {
		t.Errorf("an empty session: %v", got)
	}
	if got := Collect([]session.Entry{edit("a")}).Lines(); len(got) != 1 || !strings.Contains(got[0], "no check was run") {
		t.Errorf("changes without a check: %v", got)
	}
}

func TestWhatALineProvesAboutItsChecks(t *testing.T) {
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"go test ./...", 0, "go test ./...: passed"},
		{"go test ./...", 1, "go test ./...: failed (exit code 1)"},
		{"cd api && go test -run 'X y' ./...", 1, "go test -run 'X y' ./...: failed (exit code 1)"},
		{"go build ./... && go test ./...", 1, "go build ./...: ran; its outcome is not proven|go test ./...: ran; its outcome is not proven"},
		{"go build ./... && go test ./...", 0, "go build ./...: passed|go test ./...: passed"},
		{"go test ./... | tail -5", 0, "go test ./...: ran; its outcome is not proven"},
		{"go test ./... || true", 0, "go test ./...: ran; its outcome is not proven"},
		{"go test ./...; echo done", 0, "go test ./...: ran; its outcome is not proven"},
		{"! go test ./...", 0, "go test ./...: ran; its outcome is not proven"},
		{"go test ./... &", 0, "go test ./...: ran; its outcome is not proven"},
		{"(cd x && npm run test:unit)", 0, "npm run test:unit: passed"},
		{"CI=1 timeout -k 5 60 npx vitest run", 0, "vitest run: passed"},
		{"time make check", 2, "make check: failed (exit code 2)"},
		{"./gradlew --quiet test", 0, "./gradlew --quiet test: passed"},
		{"python3 -m pytest -q", 0, "python3 -m pytest -q: passed"},
		{"npm run start", 0, ""}, {"go run .", 0, ""}, {"python -m http.server", 0, ""}, {"echo go test", 0, ""}, {"make", 0, ""},
		{"if (", 0, ""}, {strings.Repeat("(", 20_000), 0, ""}, {"", 0, ""}, {"timeout 5", 0, ""}, {"$X test", 0, ""},
	} {
		var got []string
		for _, k := range Collect([]session.Entry{bash(c.line, c.code)}).Checks {
			got = append(got, k.Command+": "+k.Words())
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%.60s → %d: got %q, want %q", c.line, c.code, strings.Join(got, "|"), c.want)
		}
	}
}

func TestTodoRules(t *testing.T) {
	ok := [][]Todo{
		nil,
		{{"a", InProgress, 0}, {"b", Pending, 0}},
		{{"p", Pending, 0}, {"one", Completed, 1}, {"two", InProgress, 1}, {"q", Pending, 0}},
		{{"p", Completed, 0}, {"one", Completed, 1}, {"q", InProgress, 0}, {"r", Pending, 0}, {"x", Pending, 1}},
		{{"p", InProgress, 0}, {"one", Completed, 1}},
	}
	for _, list := range ok {
		if err := CheckTodos(list); err != nil {
			t.Errorf("%v: %v", list, err)
		}
	}
	many := make([]Todo, MaxTodos+1)
	for want, list := range map[string][]Todo{
		"only one may be":  {{"a", InProgress, 0}, {"p", Pending, 0}, {"one", InProgress, 1}},
		"level 0 phase":    {{"x", Pending, 1}},
		"go in order":      {{"p", Pending, 0}, {"one", InProgress, 1}, {"two", Completed, 1}},
		"stays pending":    {{"p", Completed, 0}, {"one", Pending, 1}},
		"level 2":          {{"x", Pending, 2}},
		"level -1":         {{"x", Pending, -1}},
		"is empty":         {{"\t", Pending, 0}},
		"longer than":      {{strings.Repeat("x", MaxTodoText+1), Pending, 0}},
		`status "started"`: {{"x", "started", 0}},
		"more than 100":    many,
	} {
		if err := CheckTodos(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

func TestALongListIsCutAndCounted(t *testing.T) {
	var entries []session.Entry
	for i := range 50 {
		entries = append(entries, ran(session.Fact{Tool: "bash", Refused: true, Command: fmt.Sprint("push ", i)}))
	}
	var r chat.ReceiptView
	Collect(entries).Fill(&r)
	if len(r.HostFacts) != maxLines+1 || r.HostFacts[maxLines] != "… and 30 more" {
		t.Errorf("%d lines, the last %q", len(r.HostFacts), r.HostFacts[len(r.HostFacts)-1])
	}
	var many []Todo
	for i := range 9 {
		many = append(many, Todo{fmt.Sprint("item ", i), Completed, 0})
	}
	if got := Collect([]session.Entry{todos(many...)}).Lines(); len(got) != 1 || got[0] != "completed without evidence: item 0; item 1; item 2 and 6 more" {
		t.Errorf("%q", got)
	}
}

func TestACommandThatCouldNotRunHasNoExitCode(t *testing.T) {
	f := Collect([]session.Entry{
		{Kind: session.KindUser, Message: &provider.Message{Role: provider.RoleUser, Content: "fix it"}},
		ran(session.Fact{Tool: "bash", OK: false, Command: "touch a"}),
	})
	if got, want := strings.Join(f.Lines(), "\n"), "failed command: touch a (it ended without an exit code)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
