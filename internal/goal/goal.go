// Package goal decides after a turn whether a saved objective goes on: continue, complete, blocked or out of budget.
package goal

import "strings"

// Disposition is what the model reports through update_goal.
type Disposition string

// The dispositions (Spec, section 3.7; Chapter, "Goal continues a saved objective").
const (
	Continue Disposition = "continue"
	Complete Disposition = "complete"
	Blocked  Disposition = "blocked"
)

// Report is one call of update_goal. It is the model's word; host facts stand beside it and are never rewritten by it.
type Report struct {
	Disposition Disposition `json:"status"`
	Summary     string      `json:"summary,omitempty"`
	Next        string      `json:"next_action,omitempty"`
	Reason      string      `json:"reason,omitempty"`
	GoalID      string      `json:"goal_id,omitempty"`
}

// Command reads "/goal <objective>" at the very start of a request. ok without an objective: somebody forgot it.
func Command(text string) (objective string, ok bool) {
	t := strings.TrimSpace(text)
	rest, found := strings.CutPrefix(t, "/goal")
	if !found || (rest != "" && !strings.ContainsAny(rest[:1], " \t\r\n")) {
		return "", false
	}
	return strings.TrimSpace(rest), true
}
