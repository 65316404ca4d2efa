package task

import (
	"errors"
	"testing"
)

// The table is written out in full, so that a transition added by accident is seen.
func TestTransitionAllowsWhatIsDrawnAndNothingElse(t *testing.T) {
	states := []State{Queued, Running, Parked, Completed, Failed, Cancelled, Expired}
	want := map[State]string{
		//           qrpcfxe: queued running parked completed failed cancelled expired
		Queued:    ".X...X.",
		Running:   "XXXXXXX",
		Parked:    "X....XX",
		Completed: ".......",
		Failed:    "X......",
		Cancelled: "X......",
		Expired:   "X......",
	}
	for from, row := range want {
		for i, to := range states {
			err := Transition(from, to)
			if (err == nil) != (row[i] == 'X') {
				t.Errorf("%s to %s: %v, the drawing says %c", from, to, err, row[i])
			}
			var te *TransitionError
			if err != nil && !errors.As(err, &te) {
				t.Errorf("%s to %s: error is no *TransitionError: %v", from, to, err)
			}
		}
	}
	if Transition("dreaming", Running) == nil {
		t.Error("an unknown state led somewhere")
	}
}
