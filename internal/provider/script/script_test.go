package script

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"reasonix/internal/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const fixTest = `
name = "fix the failing test"

[[step]]
asked = ['(?i)test']
say = "I run the tests first."
  [[step.calls]]
  tool = "bash"
  args = { command = "go test ./..." }

[[step]]
expect = ['FAIL:? (?P<test>\w+)', '(?P<file>\w+_test\.go):(?P<line>\d+)']
say = "${test} fails in ${file}, line ${line}; home is $${HOME}."
  [[step.calls]]
  tool = "edit_file"
  args = { path = "${file}", edits = [{ old = "a ${test}", new = "b" }], n = 3 }
  [[step.or]]
  expect = ['denied by']
  say = "You said no, so nothing was changed."
  end = true

[[step]]
expect = ['(?i)edited']
say = "Edited."
`

func play(t *testing.T, p provider.Provider, tools []string, messages ...provider.Message) (string, []provider.ToolCall) {
	t.Helper()
	req := provider.Request{Messages: messages}
	for _, n := range tools {
		req.Tools = append(req.Tools, provider.ToolSchema{Name: n})
	}
	ch, err := p.Stream(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var text string
	var calls []provider.ToolCall
	for c := range ch {
		text += c.Text
		if c.Type == provider.ChunkToolCall {
			calls = append(calls, *c.ToolCall)
		}
		if c.Err != nil {
			t.Fatal(c.Err)
		}
	}
	return text, calls
}

func scripted(t *testing.T, text string) provider.Provider {
	t.Helper()
	p, err := New(provider.Config{Name: "demo", Extra: map[string]any{"scenario": text}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func user(s string) provider.Message { return provider.Message{Role: provider.RoleUser, Content: s} }
func assistant(s string) provider.Message {
	return provider.Message{Role: provider.RoleAssistant, Content: s}
}
func result(s string) provider.Message { return provider.Message{Role: provider.RoleTool, Content: s} }

func TestAScenarioWorksWithWhatTheToolsReallyReturned(t *testing.T) {
	p := scripted(t, fixTest)
	story := []provider.Message{user("fix the test")}
	text, calls := play(t, p, nil, story...)
	if text != "I run the tests first." || calls[0].Name != "bash" || calls[0].Arguments != `{"command":"go test ./..."}` {
		t.Fatalf("%q %+v", text, calls)
	}
	story = append(story, assistant(text), result("--- FAIL: TestAdd\n add_test.go:12: got 3"))
	text, calls = play(t, p, nil, story...)
	if text != "TestAdd fails in add_test.go, line 12; home is ${HOME}." {
		t.Fatalf("%q", text)
	}
	var args map[string]any
	if err := json.Unmarshal([]byte(calls[0].Arguments), &args); err != nil || args["path"] != "add_test.go" ||
		args["edits"].([]any)[0].(map[string]any)["old"] != "a TestAdd" {
		t.Fatalf("%s", calls[0].Arguments)
	}
	story = append(story, assistant(text), result("edited add_test.go"))
	if text, calls = play(t, p, nil, story...); text != "Edited." || calls != nil {
		t.Fatalf("%q %+v", text, calls)
	}
	story = append(story, assistant(text), user("and now?"))
	if text, _ = play(t, p, nil, story...); !strings.Contains(text, "no further step") {
		t.Fatalf("%q", text)
	}
}

func TestWhatWasNotExpectedIsToldAndNeverCalledASuccess(t *testing.T) {
	p := scripted(t, fixTest)
	story := []provider.Message{user("fix the test"), assistant("I run the tests first."), result("bash: go: command not found")}
	text, calls := play(t, p, []string{"bash", "update_goal"}, story...)
	if !strings.Contains(text, "step 2 of 3") || !strings.Contains(text, "command not found") {
		t.Fatalf("%q", text)
	}
	if len(calls) != 1 || calls[0].Name != "update_goal" || !strings.Contains(calls[0].Arguments, `"status":"blocked"`) {
		t.Fatalf("%+v", calls)
	}
	if _, calls := play(t, p, []string{"bash"}, story...); calls != nil {
		t.Fatalf("without update_goal: %+v", calls)
	}
	// The step stays: once the results fit, the scenario goes on.
	story = append(story, assistant(text), result("FAIL TestX x_test.go:1"))
	if text, _ := play(t, p, nil, story...); !strings.HasPrefix(text, "TestX fails") {
		t.Fatalf("%q", text)
	}
	if text, _ := play(t, p, nil, user("write a poem")); !strings.Contains(text, "answers only requests like") {
		t.Fatalf("%q", text)
	}
}

func TestAnAlternativeIsTakenWhenItsPatternsMatch(t *testing.T) {
	p := scripted(t, fixTest)
	story := []provider.Message{user("test"), assistant("x"), result("denied by lead: no")}
	text, calls := play(t, p, nil, story...)
	if text != "You said no, so nothing was changed." || calls != nil {
		t.Fatalf("%q", text)
	}
	story = append(story, assistant(text), result("edited"))
	if text, _ := play(t, p, nil, story...); !strings.Contains(text, "no further step") {
		t.Fatalf("behind the end: %q", text)
	}
}

func TestCallIdsAreNeverUsedTwice(t *testing.T) {
	p := scripted(t, "[[step]]\nsay='a'\n[[step.calls]]\ntool='x'\n[[step.calls]]\ntool='x'\n[[step]]\n[[step.calls]]\ntool='x'\n")
	_, first := play(t, p, nil, user("u"))
	_, second := play(t, p, nil, user("u"), assistant("a"), result("r"), result("r"))
	if first[0].ID == first[1].ID || first[0].ID == second[0].ID || first[0].Arguments != "{}" {
		t.Fatalf("%+v %+v", first, second)
	}
}

func TestABadScenarioIsRefusedWithItsPlace(t *testing.T) {
	cases := []struct{ text, want string }{
		{"", "set either path or scenario"},
		{"name = 'x'", "scenario: the scenario has no step"},
		{"[[step]]\nsay = 'x'\n\n[[step]]\nsey = 'y'", `scenario:5: unknown key "step.sey"`},
		{"[[step]]\nsay = 'x\n", "scenario:2: "},
		{"[[step]]\nsay='x'\n[[step]]\nsay='x'\nexpect=['(']", "scenario:3: step 2: expect: pattern 1"},
		{"[[step]]\nsay='${what}'", "scenario:1: step 1: ${what} was captured by no pattern"},
		{"[[step]]\nend=true", "step 1: it neither says nor calls"},
		{"[[step]]\nsay='x'\n[[step.or]]\nexpect=['[']\nsay='y'", "step 1, alternative 1: expect"},
		{"[[step]]\n[[step.calls]]\nargs={a=1}", "names no tool"},
		{"{\"step\":[\n{\"say\":\"x\",\n\"sey\":1}]}", "scenario:3: json: unknown field"},
		{"{\"step\":[{\"say\":5}]}", "scenario:1: "},
		{"{\"step\":[{\"say\":\"x\"}]} {}", "something follows"},
	}
	for _, c := range cases {
		_, err := New(provider.Config{Name: "demo", Extra: map[string]any{"scenario": c.text}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
	for _, extra := range []map[string]any{{"scenario": 5}, {"scenario": "x", "pace": "soon"}, {"speed": "x"}, {"path": "/missing.toml"}} {
		if _, err := New(provider.Config{Name: "demo", Extra: extra}); err == nil {
			t.Errorf("%v must be refused", extra)
		}
	}
}

func TestAScenarioComesFromAFileInTOMLOrJSON(t *testing.T) {
	for name, text := range map[string]string{"a.toml": "[[step]]\nsay = 'hi'", "a.json": `{"name":"x","step":[{"say":"hi","calls":[{"tool":"ls","args":{"n":1}}]}]}`} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := New(provider.Config{Name: "demo", Extra: map[string]any{"path": path, "pace": "1ms"}})
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := play(t, p, nil, user("x")); text != "hi" {
			t.Errorf("%s says %q", name, text)
		}
	}
}

func TestCancellingStopsThePlay(t *testing.T) {
	p, err := New(provider.Config{Name: "demo", Extra: map[string]any{"scenario": "[[step]]\nsay = 'a long text that takes its time'", "pace": "10s"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ch, err := p.Stream(ctx, provider.Request{Messages: []provider.Message{user("x")}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for range ch {
	}
}

func FuzzScenario(f *testing.F) {
	f.Add([]byte(fixTest))
	f.Add([]byte(`{"step":[{"say":"${a}","expect":["(?P<a>x)"]}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := parse("f", raw)
		if err != nil {
			return
		}
		s.next([]provider.Message{user("x"), assistant("y"), result("z")}, nil)
	})
}
