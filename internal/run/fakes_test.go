package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"reasonix/internal/agent"
	"reasonix/internal/permission"
	"reasonix/internal/provider"
	_ "reasonix/internal/provider/openai"
	"reasonix/internal/run"
	"reasonix/internal/session"
	"reasonix/internal/testkit/modeld"
	"reasonix/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gate asks for the tools named, and allows the rest.
type gate map[string]permission.Verdict

func (g gate) Judge(_ context.Context, c permission.Call) permission.Decision {
	if v, ok := g[c.Tool]; ok {
		return permission.Decision{Verdict: v, Reason: c.Tool + " needs " + string(v)}
	}
	return permission.Decision{Verdict: permission.Allow}
}
func (gate) Digest() string                  { return "rules" }
func (gate) Offers(permission.Call) []string { return nil }

// fn is a tool over a folder.
type fn struct {
	name, schema string
	read         bool
	do           func(ctx context.Context, a map[string]string) (string, error)
}

func (f fn) Name() string            { return f.name }
func (f fn) Description() string     { return f.name }
func (f fn) Schema() json.RawMessage { return json.RawMessage(f.schema) }
func (f fn) ReadOnly() bool          { return f.read }
func (f fn) Execute(ctx context.Context, raw json.RawMessage) (string, error) {
	var a map[string]string
	if err := json.Unmarshal(raw, &a); err != nil {
		return "", err
	}
	return f.do(ctx, a)
}

func schema(fields ...string) string {
	var props []string
	for _, f := range fields {
		props = append(props, fmt.Sprintf(`%q:{"type":"string"}`, f))
	}
	return `{"type":"object","additionalProperties":false,"properties":{` + strings.Join(props, ",") + `}}`
}

// workshop is a folder with a bug and the tools to mend it.
func workshop(t testing.TB, dir string) *tool.Registry {
	t.Helper()
	r := &tool.Registry{}
	for _, f := range []fn{
		{"read_file", schema("path"), true, func(_ context.Context, a map[string]string) (string, error) {
			b, err := os.ReadFile(filepath.Join(dir, a["path"]))
			return string(b), err
		}},
		{"edit_file", schema("path", "old_string", "new_string"), false, func(ctx context.Context, a map[string]string) (string, error) {
			path := filepath.Join(dir, a["path"])
			b, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			if strings.Count(string(b), a["old_string"]) != 1 {
				return "", errors.New("old_string is not there exactly once")
			}
			tool.ReportFrom(ctx).Paths = []string{a["path"]}
			return "edited", os.WriteFile(path, []byte(strings.Replace(string(b), a["old_string"], a["new_string"], 1)), 0o600)
		}},
		{"bash", schema("command"), false, func(ctx context.Context, a map[string]string) (string, error) {
			c := exec.CommandContext(ctx, "sh", "-c", a["command"])
			c.Dir = dir
			out, err := c.CombinedOutput()
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				tool.ReportFrom(ctx).ExitCode = exit.ExitCode()
				return string(out), nil
			}
			return string(out), err
		}},
	} {
		if err := r.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// desk is one session on disk with a model behind a real HTTP endpoint.
type desk struct {
	t      *testing.T
	dir    string
	log    session.Log
	server *modeld.Server
	model  provider.Provider
}

func newDesk(t *testing.T, brain modeld.Brain) *desk {
	t.Helper()
	s, err := modeld.Start(brain)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	p, err := provider.New("openai", provider.Config{Name: "double", BaseURL: s.URL, Model: "m", Client: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	log, err := session.OpenFile(filepath.Join(t.TempDir(), "s.jsonl"), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return &desk{t: t, dir: t.TempDir(), log: log, server: s, model: p}
}

func (d *desk) spec(mode string) run.Spec {
	return run.Spec{Session: d.log, Provider: d.model, Mode: mode, System: "You mend code.", Prompt: "mend it", PromptKey: "p1",
		Tools: workshop(d.t, d.dir), Gate: gate{}, WorkDir: d.dir}
}

func (d *desk) drive(want agent.Stop, s run.Spec) run.Outcome {
	d.t.Helper()
	out, err := run.Drive(d.t.Context(), s)
	if err != nil {
		d.t.Fatalf("%v (refused histories: %v)", err, d.server.Refusals())
	}
	if out.Stop != want {
		d.t.Fatalf("stopped with %q %q, want %q", out.Stop, out.Text, want)
	}
	return out
}

func (d *desk) entries() []session.Entry {
	d.t.Helper()
	e, err := d.log.Entries(context.Background(), 0)
	if err != nil {
		d.t.Fatal(err)
	}
	return e
}

func allow(p agent.Pending) agent.Answer {
	return agent.Answer{CallID: p.CallID, AskID: "a", Choice: "allow", By: "lead", Digest: p.Digest}
}

// plays answers with turns in order.
func plays(turns ...modeld.Turn) modeld.Brain {
	return func(modeld.Request) modeld.Turn {
		if len(turns) == 0 {
			return modeld.Turn{Text: "nothing left"}
		}
		next := turns[0]
		turns = turns[1:]
		return next
	}
}

func report(status, text string) modeld.Call {
	field := map[string]string{"continue": "next_action", "complete": "summary", "blocked": "reason"}[status]
	return modeld.Call{Name: "update_goal", Args: map[string]string{"status": status, field: text}}
}
