package run

import (
	"context"
	"fmt"
	"path/filepath"

	"reasonix/internal/agent"
	"reasonix/internal/evidence"
	"reasonix/internal/session"
)

// offerSteps adds complete_step, which reads the transcript of this very run.
func (d *drive) offerSteps() error {
	if _, there := d.spec.Tools.Get(evidence.StepTool); there {
		return fmt.Errorf("%w: %s is offered by the host itself, leave it out of the tools", ErrSpec, evidence.StepTool)
	}
	if d.spec.Notebook == nil {
		d.spec.Notebook = &agent.Notebook{}
	}
	return d.spec.Tools.Add(evidence.NewStep(evidence.StepPorts{
		Entries: func(ctx context.Context) ([]session.Entry, error) { return d.spec.Session.Entries(ctx, 0) },
		Request: d.spec.PromptKey, Where: d.where, Note: d.spec.Notebook.Note,
	}))
}

// where is the real path that a citation names, spelled like the paths that the file tools note.
func (d *drive) where(path string) string {
	if d.spec.Resolve != nil {
		return d.spec.Resolve(path)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(d.spec.WorkDir, path)
	}
	return filepath.Clean(path)
}
