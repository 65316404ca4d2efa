package run

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"reasonix/internal/agent"
	"reasonix/internal/evidence"
	"reasonix/internal/session"
	"reasonix/internal/tool"
)

// Kit is what the built-in tools of a run act through.
type Kit struct {
	Files      tool.Files
	Shell      tool.Shell           // nil: bash is not offered
	Background tool.Background      // nil: nothing runs in the background
	Web        *http.Client         // nil: the task has no network
	Enabled    []string             // empty: all
	Runs       func(id string) bool // background commands that go on from an attempt to the next; nil: none does
}

// Fill offers the built-ins in the spec, whose session must be set: what the model has read before is known from it. An enabled name that
// no built-in has is an error that lists the known ones.
func (k Kit) Fill(ctx context.Context, s *Spec) error {
	if s.Notebook == nil {
		s.Notebook = &agent.Notebook{}
	}
	seen, err := seenFiles(ctx, s.Session)
	if err != nil {
		return err
	}
	shells, err := openShells(ctx, s.Session)
	if err != nil {
		return err
	}
	if n := endedNote(shells, k.Runs); n.Text != "" {
		s.Notes = append(s.Notes, n)
	}
	var known []string
	reg := &tool.Registry{}
	for _, t := range tool.Builtins(tool.Env{Files: k.Files, Shell: k.Shell, Background: k.Background, Web: k.Web, Shells: shells, Note: s.Notebook.Note, Versions: seen}) {
		known = append(known, t.Name())
		if len(k.Enabled) > 0 && !slices.Contains(k.Enabled, t.Name()) {
			continue
		}
		if err := reg.Add(t); err != nil {
			return fmt.Errorf("offer tools: %w", err)
		}
	}
	known = append(known, evidence.StepTool)
	s.SignOff = len(k.Enabled) == 0 || slices.Contains(k.Enabled, evidence.StepTool)
	if _, todos := reg.Get("todo_write"); s.SignOff && !todos {
		return fmt.Errorf("tools.enabled names %s without todo_write, whose items it signs off: name both", evidence.StepTool)
	}
	for _, name := range k.Enabled {
		if !slices.Contains(known, name) && !k.withheld(name) {
			return fmt.Errorf("tools.enabled names %q; the built-ins are %v", name, known)
		}
	}
	s.Tools = reg
	if k.Files != nil {
		s.Resolve = k.Files.Resolve
	}
	return nil
}

// withheld: the tool exists, and its port is not there.
func (k Kit) withheld(name string) bool {
	switch name {
	case "bash":
		return k.Shell == nil
	case "web_fetch":
		return k.Web == nil
	case "bash_output", "kill_shell", "wait":
		return k.Background == nil
	}
	return false
}

// openShells reads which background commands the model believes to be running: at the start of an attempt none does, because
// they ended with the one before, however that ended.
func openShells(ctx context.Context, log session.Log) (tool.Shells, error) {
	var s tool.Shells
	entries, err := log.Entries(ctx, 0)
	if err != nil {
		return s, fmt.Errorf("read what ran before: %w", err)
	}
	for _, e := range entries {
		if id, ok := strings.CutPrefix(e.Name, endedKey); ok && e.Kind == session.KindUser {
			s.Told(id)
		}
		if e.Kind == session.KindNote && e.Name == tool.NoteShell {
			if err := s.Recall(e.Data); err != nil {
				return s, fmt.Errorf("read what ran before: %w", err)
			}
		}
	}
	return s, nil
}

const endedKey = "ended:"

// endedNote tells the model once what was ended; the key is that of the last command, so a later one is told anew.
func endedNote(s tool.Shells, runs func(string) bool) agent.Steer {
	var open []tool.ShellNote
	for _, n := range s.Open() {
		if runs == nil || !runs(n.ID) {
			open = append(open, n)
		}
	}
	if len(open) == 0 {
		return agent.Steer{}
	}
	var b strings.Builder
	b.WriteString("The host: these background commands were ended when the task stopped here. Start again what you still need.")
	for _, n := range open {
		fmt.Fprintf(&b, "\n- %s: %s", n.ID, n.Command)
	}
	return agent.Steer{Key: endedKey + open[len(open)-1].ID, Text: b.String()}
}

// seenFiles are the versions of files that earlier attempts of the session read or wrote.
func seenFiles(ctx context.Context, log session.Log) (*tool.Versions, error) {
	seen := tool.NewVersions()
	entries, err := log.Entries(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("read what was seen before: %w", err)
	}
	for _, e := range entries {
		if e.Kind != session.KindNote || e.Name != tool.NoteSeen {
			continue
		}
		if err := seen.Recall(e.Data); err != nil {
			return nil, err
		}
	}
	return seen, nil
}
