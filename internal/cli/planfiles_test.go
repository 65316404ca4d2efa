package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"reasonix/internal/config"
	"reasonix/internal/run"
	"reasonix/internal/session"
	"reasonix/internal/task"
	"reasonix/internal/tool"
	_ "reasonix/internal/tool/builtin"
	"reasonix/internal/workspace"
)

// Before a plan is approved the file tools themselves cannot write. The gate is not asked here: this is what holds when it is wrong.
func TestWithoutAGateNoFileIsWrittenBeforeThePlanIsApproved(t *testing.T) {
	for name, equip := range map[string]func(*testing.T, bool) (run.Spec, string){"terminal": terminalFiles, "bot": botFiles} {
		t.Run(name, func(t *testing.T) {
			for _, plan := range []bool{true, false} {
				s, dir := equip(t, plan)
				if err := os.WriteFile(filepath.Join(dir, "old.txt"), []byte("a - b\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				for call, args := range map[string]string{
					"write_file": `{"path":"new.txt","content":"x"}`,
					"edit_file":  `{"path":"old.txt","old_string":"a - b","new_string":"a + b"}`,
					"move_file":  `{"source_path":"old.txt","destination_path":"moved.txt"}`,
				} {
					err := execute(t, s, call, args)
					if plan && !errors.Is(err, tool.ErrReadOnly) || !plan && err != nil && call != "edit_file" {
						t.Errorf("plan %v: %s: %v", plan, call, err)
					}
				}
				if _, err := os.Stat(filepath.Join(dir, "new.txt")); (err != nil) != plan {
					t.Errorf("plan %v: new.txt: %v", plan, err)
				}
			}
		})
	}
}

func execute(t *testing.T, s run.Spec, name, args string) error {
	t.Helper()
	decoded, err := s.Tools.Decode(name, args)
	if err != nil {
		t.Fatal(err)
	}
	tl, _ := s.Tools.Get(name)
	_, err = tl.Execute(t.Context(), decoded)
	return err
}

func terminalFiles(t *testing.T, plan bool) (run.Spec, string) {
	t.Helper()
	home, dir := t.TempDir(), t.TempDir()
	a := &app{out: io.Discard, errs: io.Discard, getenv: func(k string) string { return map[string]string{"REASONIX_HOME": home, "HOME": home}[k] }}
	log, err := session.OpenFile(filepath.Join(home, "s.jsonl"), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	var cfg config.Config
	cfg.Sandbox.Bash = "off"
	st, err := a.openStation(t.Context(), cfg, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	s, err := st.equip(t.Context(), equipment{log: log, standing: run.NewStanding("yolo", plan)})
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func botFiles(t *testing.T, plan bool) (run.Spec, string) {
	t.Helper()
	data := t.TempDir()
	spaces, err := workspace.Open(data, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &workshop{spaces: spaces, log: slog.New(slog.DiscardHandler), data: data, home: t.TempDir(), models: map[string]model{}}
	w.model = func(string) (model, error) { return model{}, nil }
	b, err := w.Prepare(t.Context(), task.Task{ID: "task_1", WorkspaceID: "ws_1", Branch: "work"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	log, err := session.OpenFile(filepath.Join(t.TempDir(), "s.jsonl"), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	s := run.Spec{Session: log, Standing: run.NewStanding("yolo", plan)}
	if err := b.Equip(context.Background(), &s); err != nil {
		t.Fatal(err)
	}
	return s, b.(*bench).space.Dir
}
