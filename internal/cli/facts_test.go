package cli_test

import (
	"strings"
	"testing"

	"reasonix/internal/testkit/githubd"
	"reasonix/internal/testkit/modeld"
)

// boaster keeps a todo list, signs one step off with what it did, fails to sign off another with what it did not do, ticks the rest off itself, and
// reports that everything is done and tested.
func boaster(r modeld.Request) modeld.Turn {
	todo := func(content, status string) map[string]any {
		return map[string]any{"content": content, "status": status}
	}
	list := func(a, b, c string) modeld.Call {
		return modeld.Call{Name: "todo_write", Args: map[string]any{"todos": []any{todo("write NOTES.md", a), todo("run the tests", b), todo("update the docs", c)}}}
	}
	sign := func(step string, evidence ...map[string]any) modeld.Call {
		return modeld.Call{Name: "complete_step", Args: map[string]any{"step": step, "summary": "done", "evidence": evidence}}
	}
	write := modeld.Call{Name: "write_file", Args: map[string]any{"path": "NOTES.md", "content": "a note\n"}}
	report := modeld.Turn{Text: "Everything is done and all tests pass."}
	if r.Offers("update_goal") {
		report.Calls = []modeld.Call{{Name: "update_goal", Args: map[string]any{"status": "complete", "summary": report.Text}}}
	}
	turns := []modeld.Turn{
		{Calls: []modeld.Call{list("in_progress", "pending", "pending"), write, sign("write NOTES.md", map[string]any{"kind": "diff", "paths": []string{"NOTES.md"}})}},
		{Calls: []modeld.Call{sign("run the tests", map[string]any{"kind": "verification", "command": "go test ./..."})}},
		{Calls: []modeld.Call{list("completed", "completed", "completed")}},
		report,
	}
	n := 0
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	return turns[min(n, len(turns)-1)]
}

const (
	boast    = "Everything is done and all tests pass."
	lowered  = "unverified: run the tests: go test ./...: it was not run in this task"
	unsigned = "completed without evidence: update the docs"
)

func TestTheResultShowsWhatTheHostCannotVouchForBesideTheModelsWord(t *testing.T) {
	w := newWorld(t, boaster, func(w *world) { w.mode = "goal" })
	w.comment("dev", "/reasonix fix write the notes")
	w.eventually("the result", func() bool { return w.said(boast) == 1 })
	final := ""
	for _, c := range w.github.BotComments() {
		if strings.Contains(c.Body, boast) {
			final = c.Body
		}
	}
	for _, want := range []string{lowered, "files were changed and no check was run", unsigned} {
		if !strings.Contains(final, want) {
			t.Errorf("the final comment lacks %q:\n%s", want, final)
		}
	}
	if strings.Contains(final, "unverified: write NOTES.md") {
		t.Errorf("a step that the receipts back is called unverified:\n%s", final)
	}
	out, code := w.cli("bot", "tasks", "show", taskIn(w.github.BotComments()))
	if code != 0 || !strings.Contains(out, lowered) || !strings.Contains(out, unsigned) {
		t.Errorf("tasks show: %d\n%s", code, out)
	}

	out, code = w.cli("run", "-y", "--dir", t.TempDir(), "write the notes")
	if code != 0 || !strings.Contains(out, boast) || !strings.Contains(out, "The host notes:\n  "+lowered) || !strings.Contains(out, "\n  "+unsigned) {
		t.Errorf("run: %d\n%s", code, out)
	}
	out, code = w.cli("run", "-y", "--dir", t.TempDir(), "--output-format", "json", "write the notes")
	if code != 0 || !strings.Contains(out, `"host_facts":["`+lowered+`"`) {
		t.Errorf("run --output-format json: %d\n%s", code, out)
	}
	if out, code = w.cli("permission", "explain", "--tool", "complete_step", "--args", `{"step":"a","summary":"b","evidence":[{"kind":"manual","note":"c"}]}`); code != 0 || !strings.Contains(out, "allow") {
		t.Errorf("explain: %d\n%s", code, out)
	}
}

func taskIn(comments []githubd.Comment) string {
	for _, c := range comments {
		if i := strings.Index(c.Body, "task_"); i >= 0 {
			return strings.FieldsFunc(c.Body[i:], func(r rune) bool { return r == '`' || r == ' ' || r == '\n' || r == '.' })[0]
		}
	}
	return ""
}
