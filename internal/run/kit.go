package run

import (
	"context"
	"fmt"
	"slices"

	"reasonix/internal/agent"
	"reasonix/internal/session"
	"reasonix/internal/tool"
)

// Kit is what the built-in tools of a run act through.
type Kit struct {
	Files   tool.Files
	Shell   tool.Shell // nil: bash is not offered
	Enabled []string   // empty: all
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
	var known []string
	reg := &tool.Registry{}
	for _, t := range tool.Builtins(tool.Env{Files: k.Files, Shell: k.Shell, Note: s.Notebook.Note, Versions: seen}) {
		known = append(known, t.Name())
		if len(k.Enabled) > 0 && !slices.Contains(k.Enabled, t.Name()) {
			continue
		}
		if err := reg.Add(t); err != nil {
			return fmt.Errorf("offer tools: %w", err)
		}
	}
	for _, name := range k.Enabled {
		if !slices.Contains(known, name) && (name != "bash" || k.Shell != nil) {
			return fmt.Errorf("tools.enabled names %q; the built-ins are %v", name, known)
		}
	}
	s.Tools = reg
	if k.Files != nil {
		s.Resolve = k.Files.Resolve
	}
	return nil
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
