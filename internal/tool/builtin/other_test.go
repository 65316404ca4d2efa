package builtin

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"reasonix/internal/evidence"
	"reasonix/internal/sandbox"
	"reasonix/internal/tool"
)

func TestBashShowsHowTheLineEnded(t *testing.T) {
	for name, c := range map[string]struct {
		result tool.Result
		want   string
		code   int
	}{
		"success":    {tool.Result{Output: "ok\n"}, "ok\n[exit code 0]", 0},
		"failure":    {tool.Result{Output: "FAIL", ExitCode: 2}, "FAIL\n[exit code 2]", 2},
		"silence":    {tool.Result{}, "(no output, exit code 0)", 0},
		"time limit": {tool.Result{Output: "…\n", TimedOut: true, Duration: 3 * time.Second}, "…\n[stopped after 3s: the time limit was reached; exit code 124]", 124},
		"omission":   {tool.Result{Output: "head tail\n", Omitted: 7}, "head tail\n[7 bytes of output were dropped from the middle]\n[exit code 0]", 0},
	} {
		r := newRig(t, sandbox.FilesConfig{})
		r.shell.result = c.result
		tl, _ := r.reg.Get("bash")
		ctx, report := tool.WithReport(t.Context())
		got, err := tl.Execute(ctx, []byte(`{"command":"make test","timeout":3}`))
		if err != nil || got != c.want || report.ExitCode != c.code {
			t.Errorf("%s: got %q (%v), exit code %d", name, got, err, report.ExitCode)
		}
		if r.shell.got.Line != "make test" || r.shell.got.Timeout != 3*time.Second {
			t.Errorf("%s: the box got %+v", name, r.shell.got)
		}
	}
}

func TestBashIsBoundedAndPassesOnTheBoxesRefusal(t *testing.T) {
	r := newRig(t, sandbox.FilesConfig{})
	r.shell.result = tool.Result{Output: "HEAD" + strings.Repeat("y\n", 1<<20) + "TAIL", ExitCode: 1}
	out := r.ok("bash", a{"command": "yes"}, "HEAD", "TAIL", "bytes omitted")
	if !strings.HasSuffix(out, "[exit code 1]") {
		t.Error("the end of the line is lost")
	}
	r.shell.result, r.shell.err = tool.Result{}, sandbox.ErrUnavailable
	r.refused("bash", a{"command": "ls"}, "no sandbox available")
	r.refused("bash", a{"command": "  "}, "empty")
	r.refused("bash", a{"command": "ls", "disable_sandbox": true}, "unknown field") // S52
	r.refused("bash", a{"command": "ls", "timeout": "3"}, "/timeout must be integer")
}

func TestATodoListThatBreaksTheOrderIsRefusedWithTheReason(t *testing.T) {
	r := newRig(t, sandbox.FilesConfig{})
	item := func(level int, status, content string) a {
		return a{"level": level, "status": status, "content": content}
	}
	r.ok("todo_write", a{"todos": []a{item(0, "pending", "phase"), item(1, "completed", "one"), item(1, "in_progress", "two")}}, "1 of 3 done; in progress: two")
	for reason, list := range map[string][]a{
		"only one may be":             {item(0, "in_progress", "a"), item(0, "in_progress", "b")},
		"needs a level 0 phase":       {item(1, "pending", "orphan")},
		"sub-steps go in order":       {item(0, "pending", "p"), item(1, "pending", "one"), item(1, "in_progress", "two")},
		"item 1 (p): a phase stays":   {item(0, "in_progress", "p"), item(1, "pending", "one")},
		"and item 2 (one) is not":     {item(0, "completed", "p"), item(1, "in_progress", "one")},
		"content is empty":            {item(0, "pending", "  ")},
		"value must be one of 'pend":  {item(0, "doing", "a")},
		"/todos/0/level: value must ": {item(2, "pending", "a")},
	} {
		r.refused("todo_write", a{"todos": list}, reason)
	}
	r.ok("todo_write", a{"todos": []a{item(0, "in_progress", "phase"), item(1, "completed", "one"), item(1, "completed", "two")}}, "in progress: phase")
	r.ok("todo_write", a{"todos": []a{}}, "empty")
	if len(r.notes) != 3 {
		t.Fatalf("%d lists were kept, want the 3 accepted ones", len(r.notes))
	}
	todos, err := evidence.ParseTodos(r.notes[0].data)
	if err != nil || r.notes[0].kind != evidence.NoteTodos || len(todos) != 3 || todos[2].Level != 1 {
		t.Errorf("%s %v %v", r.notes[0].kind, todos, err)
	}
}

func TestAQuestionIsAnsweredByAPersonAndNeverExecuted(t *testing.T) {
	r := newRig(t, sandbox.FilesConfig{})
	tl, _ := r.reg.Get("ask")
	args, err := r.reg.Decode("ask", `{"question":"Which port?\nThe default is 8080.","options":["8080","9090"]}`)
	if err != nil {
		t.Fatal(err)
	}
	q, err := tl.(tool.Asker).Question(args)
	if err != nil || q.Kind != "question" || q.Title != "Which port?" || !strings.Contains(q.Text, "8080.") || len(q.Options) != 2 {
		t.Errorf("%+v %v", q, err)
	}
	if _, err := tl.Execute(t.Context(), args); err == nil {
		t.Error("a question was executed")
	}
	for _, bad := range []string{`{"question":""}`, `{"question":"x","options":["a","a"]}`, `{"question":"x","options":["` + strings.Repeat("a", 76) + `"]}`} {
		if _, err := r.reg.Decode("ask", bad); !errors.Is(err, tool.ErrArguments) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := tl.(tool.Asker).Question(json.RawMessage(`{"question":" "}`)); err == nil {
		t.Error("an empty question was asked")
	}
}

func TestAToolIsOfferedOnlyWhenItsPortIsThere(t *testing.T) {
	names := func(env tool.Env) string {
		r, err := tool.NewRegistry(tool.Builtins(env)...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(r.Names(), " ")
	}
	if got := names(tool.Env{}); got != "ask" {
		t.Errorf("without ports: %s", got)
	}
	if got := names(tool.Env{Shell: &shell{}}); got != "ask bash" {
		t.Errorf("with a shell: %s", got)
	}
	r := newRig(t, sandbox.FilesConfig{})
	want := "ask bash_output kill_shell wait bash delete_range delete_symbol edit_file glob grep ls move_file multi_edit notebook_edit read_file todo_write web_fetch write_file"
	if got := strings.Join(r.reg.Names(), " "); got != want {
		t.Errorf("with all ports: %s", got)
	}
	for _, n := range r.reg.Names() {
		tl, _ := r.reg.Get(n)
		readers := "ask bash_output glob grep kill_shell ls read_file todo_write wait"
		if tl.ReadOnly() != strings.Contains(" "+readers+" ", " "+n+" ") {
			t.Errorf("%s says ReadOnly %v", n, tl.ReadOnly())
		}
		if tool.ChangesWorkspace(tl) != !strings.Contains(" "+readers+" web_fetch ", " "+n+" ") { // what evidence takes for a change
			t.Errorf("%s says ChangesWorkspace %v", n, tool.ChangesWorkspace(tl))
		}
	}
}
