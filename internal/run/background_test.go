package run_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/provider"
	"reasonix/internal/run"
	"reasonix/internal/session"
	"reasonix/internal/tool"
	_ "reasonix/internal/tool/builtin"
)

func TestTheModelIsToldOnceWhatWasEndedBetweenAttempts(t *testing.T) {
	log, err := session.OpenFile(filepath.Join(t.TempDir(), "s.jsonl"), true)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	note := func(n tool.ShellNote) session.Entry {
		data, _ := json.Marshal(n)
		return session.Entry{Kind: session.KindNote, Name: tool.NoteShell, Data: data}
	}
	add := func(e ...session.Entry) {
		t.Helper()
		if err := log.Append(context.Background(), e...); err != nil {
			t.Fatal(err)
		}
	}
	fill := func() run.Spec {
		t.Helper()
		s := run.Spec{Session: log}
		if err := (run.Kit{}).Fill(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := fill(); len(s.Notes) != 0 {
		t.Errorf("a new session: %+v", s.Notes)
	}
	add(note(tool.ShellNote{ID: "shell_1", Command: "serve"}), note(tool.ShellNote{ID: "shell_2", Command: "watch"}), note(tool.ShellNote{ID: "shell_1", Ended: true}))
	s := fill()
	if len(s.Notes) != 1 || !strings.Contains(s.Notes[0].Text, "shell_2: watch") || strings.Contains(s.Notes[0].Text, "serve") {
		t.Fatalf("%+v", s.Notes)
	}
	add(note(tool.ShellNote{ID: "shell_3", Command: "new"})) // an approved call of the next attempt, before the turn boundary
	add(session.Entry{Kind: session.KindUser, Name: s.Notes[0].Key, Message: &provider.Message{Role: provider.RoleUser, Content: s.Notes[0].Text}})
	if s = fill(); len(s.Notes) != 1 || !strings.Contains(s.Notes[0].Text, "shell_3: new") || strings.Contains(s.Notes[0].Text, "watch") {
		t.Errorf("%+v", s.Notes)
	}
}
