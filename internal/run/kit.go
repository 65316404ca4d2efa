package run

import (
	"fmt"
	"slices"

	"reasonix/internal/agent"
	"reasonix/internal/tool"
)

// Kit is what the built-in tools of a run act through.
type Kit struct {
	Files   tool.Files
	Shell   tool.Shell // nil: bash is not offered
	Enabled []string   // empty: all
}

// Fill offers the built-ins in the spec. An enabled name that no built-in has is an error that lists the known ones.
func (k Kit) Fill(s *Spec) error {
	if s.Notebook == nil {
		s.Notebook = &agent.Notebook{}
	}
	var known []string
	reg := &tool.Registry{}
	for _, t := range tool.Builtins(tool.Env{Files: k.Files, Shell: k.Shell, Note: s.Notebook.Note}) {
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
