// Package goal decides after a turn whether a saved objective goes on: continue, complete, blocked or out of budget.
package goal

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
