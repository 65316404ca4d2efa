package run_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/agent"
	"reasonix/internal/hook"
	"reasonix/internal/permission"
	"reasonix/internal/run"
	"reasonix/internal/testkit/modeld"
)

func (d *desk) hooks(list ...hook.Hook) *run.Hooks {
	d.t.Helper()
	r, err := hook.New(list, hook.Options{Dir: d.dir})
	if err != nil {
		d.t.Fatal(err)
	}
	return &run.Hooks{Runner: r, Dir: d.dir, TaskID: "task_1", SessionID: d.log.ID(), Standing: run.NewStanding("ask", false)}
}

func TestAnAllowingHookAnswersOnlyWhatTheFallbackAsks(t *testing.T) {
	d := newDesk(t, nil)
	allows := d.hooks(hook.Hook{Event: hook.PermissionRequest, Command: `cat > asked.json; echo '{"decision":"allow","reason":"known command"}'`})
	rules := run.Rules{
		Policy:    permission.NewPolicy(permission.Config{Ask: []permission.Rule{{Text: "Bash(make:*)"}}, Deny: []permission.Rule{{Text: "Bash(rm:*)"}}}),
		Situation: permission.Situation{Posture: permission.PostureAsk, Surface: permission.Attended},
	}.WithHooks(allows)
	for line, want := range map[string]permission.Verdict{
		"go test ./...":    permission.Allow,    // the fallback asks
		"make all":         permission.Ask,      // a rule asks
		"rm -rf x":         permission.Deny,     // a rule denies
		"$(cat line)":      permission.AskHuman, // only a person may answer
		"python3 -c 'x=1'": permission.AskHuman,
	} {
		got := rules.Judge(t.Context(), permission.Call{Tool: "bash", Args: []byte(`{"command":` + quote(line) + `}`), Root: d.dir})
		if got.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", line, got.Verdict, got.Reason, want)
		}
	}
	seen, err := os.ReadFile(filepath.Join(d.dir, "asked.json"))
	if err != nil || !strings.Contains(string(seen), `"task_id":"task_1"`) || !strings.Contains(string(seen), `"posture":"ask"`) || !strings.Contains(string(seen), d.log.ID()) {
		t.Errorf("the hook saw %s, %v", seen, err)
	}
	outside := rules.Judge(t.Context(), permission.Call{Tool: "write_file", Args: []byte(`{"path":"/etc/x","content":""}`), Root: d.dir})
	if outside.Verdict != permission.Ask || outside.Kind != permission.KindWrite {
		t.Errorf("a write outside the roots: %+v", outside)
	}
}

func quote(s string) string { return `"` + s + `"` }

func TestABlockingHookIsANoBeforePeopleAreAsked(t *testing.T) {
	d := newDesk(t, nil)
	rules := run.Rules{Policy: permission.NewPolicy(permission.Config{}), Situation: permission.Situation{Surface: permission.Attended}}.
		WithHooks(d.hooks(hook.Hook{Event: hook.PermissionRequest, Command: "echo 'not at night' >&2; exit 2"}))
	got := rules.Judge(t.Context(), permission.Call{Tool: "bash", Args: []byte(`{"command":"go test"}`), Root: d.dir})
	if got.Verdict != permission.Deny || !strings.Contains(got.Reason, "not at night") {
		t.Fatalf("%+v", got)
	}
}

func TestHooksAroundTheRequestAndItsMessages(t *testing.T) {
	d := newDesk(t, plays(modeld.Turn{Text: "hello"}))
	s := d.spec(run.ModeRun)
	s.Hooks = d.hooks(hook.Hook{Event: hook.UserPromptSubmit, Command: `if grep -q password; then echo 'no passwords' >&2; exit 2; fi; echo 'the branch is frozen'`})
	s.Inbox = func(context.Context) ([]agent.Steer, error) {
		return []agent.Steer{{Key: "inbox:1", Text: "my password is x"}}, nil
	}
	d.drive(agent.StopDone, s)
	m := d.server.Requests()[0].Messages
	if got := m[1].Text(); !strings.Contains(got, "mend it\n\n[hook] the branch is frozen") {
		t.Errorf("request %q", got)
	}
	if got := m[2].Text(); strings.Contains(got, "my password") || !strings.Contains(got, "withheld") || !strings.Contains(got, "no passwords") {
		t.Errorf("message %q", got)
	}
}
