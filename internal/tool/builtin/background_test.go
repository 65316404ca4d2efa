package builtin

import (
	"context"
	"strings"
	"testing"
	"time"

	"reasonix/internal/sandbox"
	"reasonix/internal/tool"
)

// jobs stands for the box's background.
type jobs struct {
	started map[string]tool.Command
	list    []tool.Glimpse
	err     error
	waited  time.Duration
}

func (j *jobs) Start(id string, c tool.Command) error {
	if j.started == nil {
		j.started = map[string]tool.Command{}
	}
	j.started[id] = c
	return j.err
}

func (j *jobs) one(id string) (tool.Glimpse, error) {
	for _, g := range j.list {
		if g.ID == id {
			return g, nil
		}
	}
	return tool.Glimpse{}, tool.ErrNoCommand
}

func (j *jobs) Look(id string, _ int) (tool.Glimpse, error) { return j.one(id) }
func (j *jobs) Kill(id string) (tool.Glimpse, error)        { return j.one(id) }
func (j *jobs) Wait(_ context.Context, _ []string, d time.Duration) ([]tool.Glimpse, error) {
	j.waited = d
	return j.list, nil
}

func TestABackgroundCommandIsStartedReadWaitedForAndEnded(t *testing.T) {
	r := newRig(t, sandbox.FilesConfig{})
	r.ok("bash", a{"command": "serve", "run_in_background": true}, "started shell_1")
	r.ok("bash", a{"command": "watch", "run_in_background": true, "timeout": 5}, "started shell_2")
	if r.jobs.started["shell_1"].Line != "serve" || r.jobs.started["shell_2"].Timeout != 5*time.Second || r.shell.got.Line != "" {
		t.Errorf("started: %+v; run in the foreground: %q", r.jobs.started, r.shell.got.Line)
	}
	r.jobs.list = []tool.Glimpse{{ID: "shell_1", Line: "serve", Running: true, Output: "listening", Age: 3 * time.Second}, {ID: "shell_2", Line: "watch", ExitCode: 2, Age: time.Second}}
	r.ok("bash_output", a{"id": "shell_1"}, "listening\n[shell_1 runs since 3s]")
	r.ok("bash_output", a{"id": "shell_2"}, "(nothing new)\n[shell_2 ended after 1s with exit code 2]")
	r.ok("wait", a{}, "shell_1 runs", "shell_2 ended")
	if r.jobs.waited != time.Minute {
		t.Errorf("waited %v", r.jobs.waited)
	}
	r.ok("kill_shell", a{"id": "shell_2"}, "shell_2 ended")
	r.refused("bash_output", a{"id": "shell_9"}, "no such background command")
	r.refused("kill_shell", a{}, "id")
	r.refused("wait", a{"timeout": 301}, "timeout")
	r.jobs.err = tool.ErrTooMany
	r.refused("bash", a{"command": "more", "run_in_background": true}, "too many")
	r.jobs.err = nil
	r.ok("bash", a{"command": "again", "run_in_background": true}, "started shell_3") // a refused start takes no id
	var told []string
	for _, n := range r.notes {
		if n.kind == tool.NoteShell {
			told = append(told, string(n.data))
		}
	}
	if len(told) < 4 || !strings.Contains(told[0], `"command":"serve"`) || !strings.Contains(strings.Join(told, "\n"), `{"id":"shell_2","ended":true}`) {
		t.Errorf("notes: %v", told)
	}
}

func TestWhatWasOnlyStartedIsNoPassedCheck(t *testing.T) {
	r := newRig(t, sandbox.FilesConfig{})
	bash, _ := r.reg.Get("bash")
	ctx, report := tool.WithReport(t.Context())
	if _, err := bash.Execute(ctx, []byte(`{"command":"go test ./...","run_in_background":true}`)); err != nil || !report.Open {
		t.Errorf("report %+v, %v", report, err)
	}
	r.jobs.list = []tool.Glimpse{{ID: "shell_1", Line: "go test ./...", ExitCode: 1}}
	wait, _ := r.reg.Get("wait")
	ctx, report = tool.WithReport(t.Context())
	if _, err := wait.Execute(ctx, []byte(`{}`)); err != nil || report.ExitCode != 1 || report.Command != "go test ./..." {
		t.Errorf("report %+v, %v", report, err)
	}
}

func TestWithoutABackgroundNothingIsOffered(t *testing.T) {
	r := newRig(t, sandbox.FilesConfig{})
	env := r.env
	env.Background = nil
	reg, err := tool.NewRegistry(tool.Builtins(env)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bash_output", "kill_shell", "wait"} {
		if _, ok := reg.Get(name); ok {
			t.Errorf("%s is offered", name)
		}
	}
	bash, _ := reg.Get("bash")
	if _, err := bash.Execute(t.Context(), []byte(`{"command":"x","run_in_background":true}`)); err == nil || !strings.Contains(err.Error(), "background") {
		t.Errorf("%v", err)
	}
}
