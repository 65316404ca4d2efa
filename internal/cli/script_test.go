package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"reasonix/internal/testkit/modeld"
)

// TestScripts runs the txtar scripts of testdata/script: what a person types, and what the terminal shows.
func TestScripts(t *testing.T) {
	need(t, "bwrap")
	model, err := modeld.Start(scripted)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	bin := filepath.Join(t.TempDir(), "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	wrapper := "#!/bin/sh\n" + asChild + "=1 exec '" + self + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "reasonix"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv("REASONIX_HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("MODEL_URL", model.URL)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"expand": expand, "code": code},
	})
}

// expand FILE replaces $NAME in a file of the script.
func expand(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	text := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	ts.Check(os.WriteFile(path, []byte(text), 0o600))
}

// code N COMMAND...: the command must leave that exit code.
func code(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec("sh", append([]string{"-c", `want=$1; shift; "$@"; got=$?; [ "$got" = "$want" ] || { echo "exit code $got, want $want" >&2; exit 1; }`, "sh"}, args...)...)
	if err != nil {
		ts.Fatalf("%v", err)
	}
}

// scripted is a model whose turn depends on the request's first words and on what the tools returned.
func scripted(r modeld.Request) modeld.Turn {
	if strings.Contains(allPrompts(r), "chat: ") {
		return talker(r)
	}
	results := r.Results()
	prompt := lastPrompt(r)
	has := func(s string) bool { return strings.Contains(prompt, s) }
	call := func(name string, args map[string]any) modeld.Turn {
		return modeld.Turn{Text: "I use " + name + ".", Calls: []modeld.Call{{Name: name, Args: args}}}
	}
	switch {
	case has("carry out the plan") && strings.Contains(strings.Join(results, " "), "nobody decided on this plan"):
		return call("write_file", map[string]any{"path": "new.txt", "content": "hello\n"})
	case has("plan it") && len(results) == 0:
		return call("bash", map[string]any{"command": "touch sneaked.txt"})
	case has("plan it"):
		return call("exit_plan_mode", map[string]any{"plan": "Step one: write new.txt. " + strings.Join(results, " ")})
	case has("get stuck"), has("You reported blocked"):
		return call("update_goal", map[string]any{"status": "blocked", "reason": []string{"No key!", "no  key", "NO KEY."}[answered(r)%3]})
	case has("reach it") && len(results) == 0:
		return call("update_goal", map[string]any{"status": "complete", "summary": "It is reached."})
	case len(results) > 0:
		return modeld.Turn{Text: "It returned: " + results[len(results)-1]}
	case has("write a file"):
		return call("write_file", map[string]any{"path": "new.txt", "content": "hello\n"})
	case has("run a command"):
		return call("bash", map[string]any{"command": "echo from-the-box; id -u >/dev/null"})
	case has("show the limits"):
		return call("bash", map[string]any{"command": "ulimit -n; ulimit -t; cat /proc/self/comm"})
	case has("ask me"):
		return call("ask", map[string]any{"question": "Which version?"})
	case has("never stop"):
		return call("ls", map[string]any{"path": "."})
	}
	return modeld.Turn{Text: "Hello from the model."}
}

func allPrompts(r modeld.Request) string {
	var b strings.Builder
	for _, m := range r.Messages {
		if m.Role == "user" {
			b.WriteString(m.Text())
		}
	}
	return b.String()
}

// answered counts the results in the conversation.
func answered(r modeld.Request) (n int) {
	for _, m := range r.Messages {
		if m.Role == "tool" {
			n++
		}
	}
	return n
}

func lastPrompt(r modeld.Request) string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == "user" {
			return r.Messages[i].Text()
		}
	}
	return ""
}
