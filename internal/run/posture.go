package run

import (
	"context"
	"fmt"
)

// notePosture records the posture where it begins and wherever it changed.
func (d *drive) notePosture(ctx context.Context) error {
	now := d.spec.Standing.Posture()
	if now == "" || now == d.noted {
		return nil
	}
	n := PostureNote{From: d.noted, To: now}
	if d.noted != "" && d.spec.PostureBy != nil {
		n.By = d.spec.PostureBy()
	}
	if err := d.loop.Note(ctx, NotePosture, n); err != nil {
		return fmt.Errorf("record the posture: %w", err)
	}
	return nil
}
