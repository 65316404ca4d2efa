package builtin

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/sandbox"
	"reasonix/internal/tool"
)

// rig is one run over a real workspace: the tools are called as the model calls them, through the registry's decoding.
type rig struct {
	t     *testing.T
	dir   string
	env   tool.Env
	reg   *tool.Registry
	notes []note
	shell *shell
	jobs  *jobs
}

type note struct {
	kind string
	data json.RawMessage
}

func newRig(t *testing.T, c sandbox.FilesConfig) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), shell: &shell{}, jobs: &jobs{}}
	c.Workspace = r.dir
	files, err := sandbox.NewFiles(c)
	if err != nil {
		t.Fatal(err)
	}
	r.env = tool.Env{Files: files, Shell: r.shell, Background: r.jobs, Web: http.DefaultClient, Versions: tool.NewVersions(),
		Note: func(kind string, data json.RawMessage) { r.notes = append(r.notes, note{kind, data}) }}
	if r.reg, err = tool.NewRegistry(tool.Builtins(r.env)...); err != nil {
		t.Fatal(err)
	}
	return r
}

// call runs one call with the decoding that every call goes through.
func (r *rig) call(name, args string) (string, error) {
	r.t.Helper()
	decoded, err := r.reg.Decode(name, args)
	if err != nil {
		return "", err
	}
	t, _ := r.reg.Get(name)
	out, err := t.Execute(r.t.Context(), decoded)
	if len(out) > tool.MaxContent {
		r.t.Errorf("%s answered %d bytes", name, len(out))
	}
	return out, err
}

// ok calls and wants success with every one of the texts.
func (r *rig) ok(name string, args any, want ...string) string {
	r.t.Helper()
	out, err := r.call(name, toJSON(r.t, args))
	if err != nil {
		r.t.Fatalf("%s %v: %v", name, args, err)
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			r.t.Errorf("%s %v: %q is missing in\n%s", name, args, w, out)
		}
	}
	return out
}

// refused calls and wants an error with every one of the texts.
func (r *rig) refused(name string, args any, want ...string) {
	r.t.Helper()
	out, err := r.call(name, toJSON(r.t, args))
	if err == nil {
		r.t.Errorf("%s %v was let through: %s", name, args, out)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			r.t.Errorf("%s %v: the refusal says %q, not %q", name, args, err, w)
		}
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (r *rig) put(rel, content string) {
	r.t.Helper()
	p := filepath.Join(r.dir, filepath.FromSlash(rel))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// holds wants the file to have that content now.
func (r *rig) holds(rel, want string) {
	r.t.Helper()
	got, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(rel)))
	if err != nil || string(got) != want {
		r.t.Errorf("%s holds %q, want %q (%v)", rel, got, want, err)
	}
}

// shell stands for the box.
type shell struct {
	got    tool.Command
	result tool.Result
	err    error
}

func (s *shell) Run(_ context.Context, c tool.Command) (tool.Result, error) {
	s.got = c
	return s.result, s.err
}

type a = map[string]any
