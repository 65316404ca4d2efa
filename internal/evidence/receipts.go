package evidence

import (
	"encoding/json"
	"maps"
	"strings"

	"reasonix/internal/session"
	"reasonix/internal/tool"
)

// receipts are what citations are checked against.
type receipts struct {
	runs    map[string]lastRun // by line, and by the text of a simple command in one
	order   int
	read    map[string]bool // files that the model was shown, as resolved
	written map[string]bool // files that file tools changed, as the fact names them
}

// lastRun is how a command ended when it ran last.
type lastRun struct {
	outcome Outcome
	exit    int
	stale   bool
	after   string // the command that may have changed files since; empty: file tools did
	order   int
}

func newReceipts() receipts {
	return receipts{runs: map[string]lastRun{}, read: map[string]bool{}, written: map[string]bool{}}
}

func (r *receipts) file(data json.RawMessage) {
	var s tool.Seen
	if json.Unmarshal(data, &s) == nil && s.Version != "" {
		r.read[s.Path] = true
	}
}

func (r *receipts) changed(f session.Fact) {
	for _, p := range f.Paths {
		r.written[p] = true
	}
}

// ran notes each simple command of the line, and the line itself.
func (r *receipts) ran(line string, l read, f session.Fact) {
	r.order++
	for _, p := range l.parts {
		r.runs[p.text] = lastRun{outcome: outcomeOf(p, f), exit: f.ExitCode, stale: l.changedBehind(p), after: short(line), order: r.order}
	}
	if len(l.parts) == 1 && l.parts[0].text == line {
		return
	}
	r.runs[line] = lastRun{outcome: lineOutcome(l, f), exit: f.ExitCode, order: r.order}
}

// lineOutcome is what the exit code tells about a whole line: nothing, when it hides a check or the end of its last command.
func lineOutcome(l read, f session.Fact) Outcome {
	if !f.OK {
		return Failed
	}
	if !l.ok || l.opaque || len(l.parts) == 0 || !l.parts[len(l.parts)-1].proves {
		return Unproven
	}
	for _, p := range l.parts {
		if p.check && !p.proves {
			return Unproven
		}
	}
	return Passed
}

func (r *receipts) stale(command string) {
	for text, run := range r.runs {
		if !run.stale {
			run.stale, run.after = true, command
			r.runs[text] = run
		}
	}
}

// run finds the newest run of a cited command: the line as it is, or a simple command that is it, word for word.
func (r *receipts) run(cited string) (lastRun, bool) {
	cited = strings.TrimSpace(cited)
	run, ok := r.runs[cited]
	if l := readLine(cited); l.ok && !l.opaque && len(l.parts) == 1 {
		if p, there := r.runs[l.parts[0].text]; there && p.order > run.order {
			return p, true
		}
	}
	return run, ok
}

// resolved are the paths as where gives them.
func resolved(paths map[string]bool, where func(string) string) map[string]bool {
	out := maps.Clone(paths)
	for p := range paths {
		out[where(p)] = true
	}
	return out
}
