package cli

import (
	"context"
	"fmt"

	"reasonix/internal/evidence"
	"reasonix/internal/redact"
	"reasonix/internal/session"
)

// Facts that a run shows at its end.
const maxFacts = 20

// hostFacts are what speaks against the model's word, worst first. They are shown also after the run was interrupted.
func hostFacts(ctx context.Context, log session.Log, request string, secrets *redact.Redactor) []string {
	entries, err := log.Entries(context.WithoutCancel(ctx), 0)
	if err != nil {
		return []string{"the transcript could not be read: " + err.Error()}
	}
	lines := evidence.Shown(evidence.Since(entries, request).Lines(), maxFacts)
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = secrets.String(l)
	}
	return out
}

// noteFacts prints them beside the result, on standard error: standard output is the model's text alone.
func (a *app) noteFacts(r result) {
	if len(r.HostFacts) == 0 {
		return
	}
	fmt.Fprintln(a.errs, "\nThe host notes:")
	for _, l := range r.HostFacts {
		fmt.Fprintln(a.errs, "  "+visible(l))
	}
}
