package evidence

import (
	"fmt"
	"slices"
	"strings"

	"reasonix/internal/chat"
)

// Lines are the facts that a reader should see beside a claim, worst first; empty when nothing speaks against it.
func (f Facts) Lines() []string {
	var out []string
	for _, u := range f.Unknown {
		out = append(out, "outcome unknown: "+u)
	}
	for _, c := range f.FailedCommands() {
		if f.passedLater(c.Line) {
			continue
		}
		how := fmt.Sprintf("exit code %d", c.ExitCode)
		if c.ExitCode == 0 {
			how = "it ended without an exit code" // the tool failed: it could not be run, or did not end
		}
		out = append(out, fmt.Sprintf("failed command: %s (%s)", short(c.Line), how))
	}
	for _, c := range f.Claims {
		out = append(out, short("unverified: "+c.Step+": "+c.Weakest()))
	}
	for _, k := range f.Checks {
		switch {
		case k.Outcome != Passed || !k.Stale:
		case k.After == "":
			out = append(out, "files changed after this check passed: "+short(k.Command))
		default:
			out = append(out, short("may have changed files after this check passed: "+short(k.Command)+", then "+k.After))
		}
	}
	if len(f.Files) > 0 && len(f.Checks) == 0 && !f.checked {
		out = append(out, "files were changed and no check was run")
	}
	for _, t := range Open(f.Todos) {
		out = append(out, fmt.Sprintf("open todo: %s (%s)", short(t.Content), strings.ReplaceAll(string(t.Status), "_", " ")))
	}
	for _, r := range f.Refusals {
		if line := short(strings.TrimSpace("refused: " + r.Tool + " " + r.What)); !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	if len(f.Unsigned) > 0 {
		out = append(out, short("completed without evidence: "+some(f.Unsigned, 3)))
	}
	return out
}

// some joins the first few texts and counts the rest.
func some(texts []string, most int) string {
	if len(texts) <= most {
		return strings.Join(texts, "; ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], "; "), len(texts)-most)
}

// passedLater tells whether a failed command is a check that passed since, perhaps as a part of another line.
func (f Facts) passedLater(line string) bool {
	return slices.ContainsFunc(f.Checks, func(k Check) bool {
		return k.Outcome == Passed && k.Command == strings.TrimSpace(line)
	})
}

// maxLines bounds how many facts a receipt lists; a final post shows fewer.
const maxLines = 20

// Shown keeps the first lines and counts the rest: they stand worst first.
func Shown(lines []string, most int) []string {
	if len(lines) <= most {
		return lines
	}
	return append(lines[:most:most], fmt.Sprintf("… and %d more", len(lines)-most))
}

// Fill puts the facts into a receipt; usage, sources and commits are the caller's.
func (f Facts) Fill(r *chat.ReceiptView) {
	for _, t := range f.Tools {
		n := fmt.Sprint(t.Calls)
		if t.Failed > 0 {
			n += fmt.Sprintf(" (%d failed)", t.Failed)
		}
		r.Tools = append(r.Tools, chat.Field{Label: t.Tool, Value: n})
	}
	for _, k := range f.Checks {
		r.Checks = append(r.Checks, chat.Field{Label: short(k.Command), Value: k.Words()})
	}
	for _, a := range f.Approvals {
		r.Approvals = append(r.Approvals, strings.TrimSpace(fmt.Sprintf("%s approved %s %s", a.By, a.Tool, a.Digest)))
	}
	r.HostFacts = append(r.HostFacts, Shown(f.Lines(), maxLines)...)
}
