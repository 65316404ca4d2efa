package goal

import (
	"fmt"
	"regexp"
	"strings"
)

// Section names of a task contract (Spec, section 3.7).
var sectionNames = []string{"Context", "Request", "Output format", "Constraints", "Pause policy"}

var heading = regexp.MustCompile(`(?i)^\s{0,3}(?:#{1,6}\s*|\*\*)?(context|request|output format|constraints|pause policy)(?:\*\*)?\s*(?::\s*(?:\*\*)?|#*\s*$)`)

// Sections lists which parts of a task contract the objective names, in the order of the contract.
func Sections(objective string) []string {
	found := map[string]bool{}
	for _, line := range strings.Split(objective, "\n") {
		if m := heading.FindStringSubmatch(line); m != nil {
			found[strings.ToLower(m[1])] = true
		}
	}
	var out []string
	for _, name := range sectionNames {
		if found[strings.ToLower(name)] {
			out = append(out, name)
		}
	}
	return out
}

// Block is the user message that opens a goal: the objective and how to work on it. It stands in the conversation and not in
// the system prompt, so that the prompt cache of the prefix survives another goal.
func Block(goalID, objective string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[goal %s] Work on this objective until it is done, over as many turns as it takes.\n\n", goalID)
	b.WriteString("----- objective -----\n")
	b.WriteString(strings.TrimSpace(objective))
	b.WriteString("\n----- end of objective -----\n\n")
	if s := Sections(objective); len(s) > 0 {
		fmt.Fprintf(&b, "Its sections (%s) are the boundary of your work. ", strings.Join(s, ", "))
	} else {
		b.WriteString("It names no sections: infer a light contract (request, output, constraints) from it and from the workspace. ")
	}
	b.WriteString("Pause only for an irreversible or externally visible operation, a change of scope, or information that only a person has; " +
		"meet ordinary uncertainty with a sensible default and report it as an assumption. " +
		"The goal is complete when the request, the output format, the constraints and the checks that matter are met, or named as unverified. " +
		"End your work with update_goal: continue, complete or blocked.")
	return b.String()
}
