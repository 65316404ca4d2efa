package task

import (
	"fmt"
	"slices"
)

// TransitionError names a step that docs/state-machine.md does not draw.
type TransitionError struct {
	From, To State
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("a task cannot go from %s to %s", e.From, e.To)
}

// drawn holds every transition there is; running to running is another worker taking over an expired lease, and the ends
// but completed can be queued again by a retry.
var drawn = map[State][]State{
	Queued:    {Running, Cancelled},
	Running:   {Running, Parked, Queued, Completed, Failed, Cancelled, Expired},
	Parked:    {Queued, Cancelled, Expired},
	Completed: {},
	Failed:    {Queued},
	Cancelled: {Queued},
	Expired:   {Queued},
}

// Transition returns a *TransitionError unless the step is drawn.
func Transition(from, to State) error {
	if slices.Contains(drawn[from], to) {
		return nil
	}
	return &TransitionError{From: from, To: to}
}
