package flow

import (
	"fmt"
	"strings"

	"reasonix/internal/chat"
	"reasonix/internal/task"
)

// helpText lists what can be said in the place of the event.
func (h *Host) helpText(e chat.Event) string {
	kind, _, _ := strings.Cut(e.On, ".")
	var b strings.Builder
	b.WriteString("Ask for work, and it becomes a task; reply in the same thread to steer it. ")
	for _, r := range h.Routes {
		if strings.HasPrefix(r.On, kind) && r.Match.Command != "" {
			fmt.Fprintf(&b, "`%s <what to do>` starts %s. ", r.Match.Command, r.Name)
		}
	}
	b.WriteString("`status` tells how it stands, `stop` ends it, `approve ID`, `deny ID` and `answer ID TEXT` answer a request, `posture ask|auto|yolo` (administrators) changes how approvals resolve.")
	return b.String()
}

// statusText shows the controls side by side, so that nobody takes one for another.
func statusText(t task.Task) string {
	state := string(t.State)
	if t.State == task.Parked {
		state += " (" + string(t.Reason) + ")"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Task %s: %s. ", t.ID, state)
	for _, f := range controls(t) {
		fmt.Fprintf(&b, "%s: %s. ", f.Label, f.Value)
	}
	fmt.Fprintf(&b, "Spent: %d model calls, %d tokens.", t.Spent.Steps, t.Spent.Tokens)
	return b.String()
}

// controls are the questions that must not be mistaken for each other.
func controls(t task.Task) []chat.Field {
	who := strings.Join(t.Spec.Asks.Approvers, ", ")
	if t.Spec.Headless {
		who = "nobody (headless: an ask becomes a refusal)"
	}
	network := "off"
	if t.Spec.Network {
		network = "through the host's proxy"
	}
	return []chat.Field{
		{Label: "Mode", Value: string(t.Spec.Mode)},
		{Label: "Posture", Value: t.Spec.Posture},
		{Label: "Who may answer", Value: who},
		{Label: "Box", Value: "workspace of this task, network " + network},
	}
}
