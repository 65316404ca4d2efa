package tool

import "context"

// Report is what the host learns about one call beside the text that the model reads. Only the call's own goroutine writes it.
type Report struct {
	ExitCode int      // of a command; not 0 means that it failed, although the tool itself worked
	Paths    []string // what the call really touched; empty: what Pather says
	// Open: the call only started its command, so nothing is known about how it ends. Command is what ended, when that is not in the
	// call's own arguments.
	Open    bool
	Live    bool // the call looked at a background command that still runs
	Command string
}

type reportKey struct{}

// WithReport gives a context in which a tool can report, and the report to read after Execute returned.
func WithReport(ctx context.Context) (context.Context, *Report) {
	r := &Report{}
	return context.WithValue(ctx, reportKey{}, r), r
}

// ReportFrom is the report of the call that runs in ctx; outside of a call it is one that nobody reads.
func ReportFrom(ctx context.Context) *Report {
	if r, ok := ctx.Value(reportKey{}).(*Report); ok {
		return r
	}
	return &Report{}
}
