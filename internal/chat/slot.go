package chat

import (
	"fmt"
	"time"
)

// Slot is the moment of a schedule that an event stands for. The door emits every slot that is due; whether a task starts
// is decided where live tasks are known.
type Slot struct {
	Schedule string
	At       time.Time // UTC
	Overlap  string    // OverlapSkip or OverlapAllow
	Missed   int       // slots that passed unseen before this one, this one included when it is made up for
}

// What happens when a slot is due while the task of an earlier slot still lives.
const (
	OverlapSkip  = "skip"
	OverlapAllow = "allow"
)

// Start tells whether the slot's task may start when live tasks of the same schedule exist; if not, the reason is for people.
func (s Slot) Start(live int) (ok bool, reason string) {
	if live == 0 || s.Overlap == OverlapAllow {
		return true, ""
	}
	return false, fmt.Sprintf("schedule %s: the run of %s is left out, because an earlier one is not finished (overlap = skip)", s.Schedule, s.At.UTC().Format(time.RFC3339))
}
