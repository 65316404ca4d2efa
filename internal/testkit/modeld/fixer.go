package modeld

import (
	"fmt"
	"regexp"
	"strings"
)

// Fixer is a brain that mends one line: it reads the file through read_file, computes its edit from the content that came back,
// edits through edit_file, runs the test through bash and finishes. It looks at every result and never claims what it did not see.
type Fixer struct {
	File string
	Bug  *regexp.Regexp // finds the broken part in the file's content
	Fix  string         // its replacement, with $1 as in Regexp.Expand
	Test string         // command line whose output must match Pass
	Pass *regexp.Regexp
}

// lineMark is the number that read_file may put before a line.
var lineMark = regexp.MustCompile(`^\s*\d+(?:→|\||:|\t)\s?`)

// Turn is the Brain.
func (f Fixer) Turn(r Request) Turn {
	step, results := 0, r.Results()
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			step++
		}
	}
	last := strings.Join(results, "\n")
	switch step {
	case 0:
		return Turn{Text: "I read " + f.File + ".", Calls: []Call{{Name: "read_file", Args: map[string]any{"path": f.File}}}}
	case 1:
		return f.edit(r, last)
	case 2:
		if strings.HasPrefix(last, "error") || strings.HasPrefix(last, "blocked") || strings.HasPrefix(last, "denied") {
			return f.stop(r, "the edit did not happen: "+last)
		}
		return Turn{Text: "The edit is made; I run the test.", Calls: []Call{{Name: "bash", Args: map[string]any{"command": f.Test}}}}
	case 3:
		if !f.Pass.MatchString(last) {
			return f.stop(r, "the test did not pass: "+last)
		}
		return f.done(r)
	}
	return Turn{Text: "Done: the test passes."}
}

func (f Fixer) edit(r Request, content string) Turn {
	for _, line := range strings.Split(content, "\n") {
		line = lineMark.ReplaceAllString(line, "")
		if !f.Bug.MatchString(line) {
			continue
		}
		fixed := f.Bug.ReplaceAllString(line, f.Fix)
		return Turn{Text: fmt.Sprintf("I found %q.", strings.TrimSpace(line)), Calls: []Call{{Name: "edit_file",
			Args: map[string]any{"path": f.File, "old_string": strings.TrimSpace(line), "new_string": strings.TrimSpace(fixed)}}}}
	}
	return f.stop(r, "the bug is not in what read_file returned: "+content)
}

func (f Fixer) stop(r Request, why string) Turn {
	t := Turn{Text: "I stop: " + why}
	if r.Offers("update_goal") {
		t.Calls = []Call{{Name: "update_goal", Args: map[string]any{"status": "blocked", "reason": why}}}
	}
	return t
}

func (f Fixer) done(r Request) Turn {
	t := Turn{Text: "Done: the test passes."}
	if r.Offers("update_goal") {
		t.Calls = []Call{{Name: "update_goal", Args: map[string]any{"status": "complete", "summary": "mended " + f.File + "; the test passes"}}}
	}
	return t
}
