package flow

import (
	"fmt"
	"strings"

	"reasonix/internal/approval"
	"reasonix/internal/chat"
	"reasonix/internal/goal"
	"reasonix/internal/task"
)

// helpText lists what can be said in the place of the event.
func (h *Host) helpText(e chat.Event) string {
	kind, _, _ := strings.Cut(e.On, ".")
	var b strings.Builder
	b.WriteString("Ask for work, and it becomes a task; reply in the same thread to steer it. A request that begins with `/goal` is an objective that is worked on until it is done. ")
	for _, r := range h.Routes {
		if strings.HasPrefix(r.On, kind) && r.Match.Command != "" {
			fmt.Fprintf(&b, "`%s <what to do>` starts %s. ", r.Match.Command, r.Name)
		}
	}
	b.WriteString("`status` tells how it stands, `stop` ends it, `approve ID`, `deny ID` and `answer ID TEXT` answer a request (a plan: `approve ID CHANGES` approves with changes, `deny ID WHY` rejects), `posture ask|auto|yolo` (administrators) changes how approvals resolve.")
	return b.String()
}

// statusText shows the controls side by side, so that nobody takes one for another.
func (h *Host) statusText(t task.Task, asks []approval.Ask, grants []Grant) string {
	state := string(t.State)
	if t.State == task.Parked {
		state += " (" + string(t.Reason) + ")"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Task %s: %s. ", t.ID, state)
	for _, f := range h.controls(t, asks, grants) {
		fmt.Fprintf(&b, "%s: %s. ", f.Label, f.Value)
	}
	fmt.Fprintf(&b, "Spent: %d model calls, %d tokens.", t.Spent.Steps, t.Spent.Tokens)
	return b.String()
}

// controls are the questions that must not be mistaken for each other.
func (h *Host) controls(t task.Task, asks []approval.Ask, grants []Grant) []chat.Field {
	who := strings.Join(t.Spec.Asks.Approvers, ", ")
	if t.Spec.Headless {
		who = "nobody (headless: an ask becomes a refusal)"
	}
	network := "off"
	if t.Spec.Network {
		network = "through the host's proxy"
	}
	return []chat.Field{
		{Label: "Mode", Value: modeText(t, asks)},
		{Label: "Posture", Value: postureOf(t)},
		{Label: "Contract", Value: contractOf(t)},
		{Label: "Permission", Value: permissionOf(grants)},
		{Label: "Who may answer", Value: who},
		{Label: "Box", Value: h.boxWords() + "workspace of this task, network " + network},
	}
}

// contractOf says what the boundary of the work was read from (Chapter, "task contract"). It grants nothing.
func contractOf(t task.Task) string {
	if s := goal.Sections(t.Prompt); len(s) > 0 {
		return "as the request says under " + strings.Join(s, ", ")
	}
	return "inferred from the request, which names no sections"
}

// permissionOf counts what people granted on top of the configured rules.
func permissionOf(grants []Grant) string {
	var always, here int
	for _, g := range grants {
		if g.TaskID == "" {
			always++
			continue
		}
		here++
	}
	s := "the host's rules"
	if here > 0 {
		s += fmt.Sprintf(", %d granted for this task", here)
	}
	if always > 0 {
		s += fmt.Sprintf(", %d granted for the route", always)
	}
	return s
}

// boxWords names the kind of box where it is not the full one.
func (h *Host) boxWords() string {
	if h.Box == "" {
		return ""
	}
	return h.Box + ", "
}

// modeText names the mode and, for a plan, where it stands. asks are those of the task, newest first.
func modeText(t task.Task, asks []approval.Ask) string {
	if t.Spec.Mode != task.ModePlan {
		return string(t.Spec.Mode)
	}
	for _, a := range asks {
		switch {
		case a.Kind != approval.KindPlan:
		case a.State == approval.StateOpen:
			return "plan (it waits for approval; nothing is changed until then)"
		case a.Answer != nil && (a.Answer.Choice == choiceApprove || a.Answer.Choice == choiceChanges):
			return "plan (approved by " + a.Answer.Person + "; its window is open until the task ends)"
		case a.Answer != nil:
			return "plan (turned down; nothing is changed until a plan is approved)"
		}
	}
	return "plan (no plan yet; nothing is changed until one is approved)"
}

func postureOf(t task.Task) string {
	if t.Spec.PostureBy != "" {
		return t.Spec.Posture + ", set by " + t.Spec.PostureBy
	}
	return t.Spec.Posture
}
