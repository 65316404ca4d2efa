package flow

import (
	"strings"
	"testing"

	"reasonix/internal/task"
)

// Where the box is not the full one, everybody who looks at a task sees it.
func TestTheKindOfBoxStandsBesideATask(t *testing.T) {
	for box, want := range map[string]string{"": "Box: workspace of this task, network off", "reduced (landlock)": "Box: reduced (landlock), workspace of this task, network off"} {
		h := &Host{Options: Options{Box: box}}
		if got := h.statusText(task.Task{ID: "t", State: task.Running}, nil, nil); !strings.Contains(got, want) {
			t.Errorf("status says %q, want %q", got, want)
		}
		shown := false
		for _, f := range h.viewOf(task.Task{}, nil, nil).Controls {
			shown = shown || f.Label+": "+f.Value == want
		}
		if !shown {
			t.Errorf("the console does not show %q", want)
		}
	}
}
