package flow

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"reasonix/internal/approval"
	"reasonix/internal/chat"
	"reasonix/internal/goal"
	"reasonix/internal/task"
)

// Accept is the way in for every event of every door: it returns after the effect is durable (invariant 1).
func (h *Host) Accept(ctx context.Context, e chat.Event) (chat.Outcome, error) {
	if e.Key == "" {
		return chat.Outcome{}, errors.New("accept event: it has no key")
	}
	e.Text = h.Redactor.String(strings.TrimSpace(e.Text))
	out, err := h.dispatch(ctx, e)
	if errors.Is(err, ErrDuplicate) {
		out.Kind, out.Text, err = chat.OutcomeDuplicate, "This was received before; nothing changed.", nil
	}
	if err != nil {
		return chat.Outcome{}, fmt.Errorf("accept %s event: %w", e.On, err)
	}
	h.Log.Info("event", "on", e.On, "actor", e.Actor.String(), "outcome", string(out.Kind), "task", out.TaskID)
	return out, nil
}

func (h *Host) dispatch(ctx context.Context, e chat.Event) (chat.Outcome, error) {
	switch e.Verb {
	case chat.VerbIgnore:
		return h.record(ctx, e, chat.OutcomeIgnored, e.Text, e.On == "schedule")
	case chat.VerbPress:
		return h.press(ctx, e)
	case chat.VerbStop:
		return h.stop(ctx, e)
	case chat.VerbPosture:
		return h.posture(ctx, e)
	case chat.VerbStatus:
		return h.status(ctx, e)
	case chat.VerbHelp:
		return h.record(ctx, e, chat.OutcomeInfo, h.helpText(e), true)
	}
	return h.request(ctx, e)
}

// request opens a task, steers the live one of the conversation, or follows up on the last.
func (h *Host) request(ctx context.Context, e chat.Event) (chat.Outcome, error) {
	conversation := conversationOf(e)
	live, err := h.Ledger.Live(ctx, conversation)
	switch {
	case err == nil && e.On == "schedule":
		return h.record(ctx, e, chat.OutcomeIgnored, fmt.Sprintf("skipped: task %s of the slot before is still %s", live.ID, live.State), true)
	case err == nil:
		return h.steer(ctx, e, live)
	case !errors.Is(err, ErrUnknown):
		return chat.Outcome{}, err
	}
	res := task.Resolve(h.Routes, h.People, e)
	last, err := h.Ledger.Last(ctx, conversation)
	if err != nil && !errors.Is(err, ErrUnknown) {
		return chat.Outcome{}, err
	}
	follows := err == nil && e.On != "schedule"
	if res.Route == nil && !(res.Unmatched && follows && h.mayFollow(res, last)) {
		return h.refuse(ctx, e, res)
	}
	if e.Text == "" {
		return h.record(ctx, e, chat.OutcomeRefused, "Say what to do after the command, for example: "+strings.TrimSpace(e.Command+" make the failing test pass")+".", true)
	}
	t := h.newTask(e, res, conversation)
	if follows && (res.Route == nil || res.Route.Name == last.Spec.Route) {
		t = h.followUp(t, last)
	}
	if why := takeGoal(&t); why != "" {
		return h.record(ctx, e, chat.OutcomeRefused, why, true)
	}
	t, err = h.Ledger.Open(ctx, Opening{EventKey: e.Key, Task: t, Posts: h.redacted(ackPosts(t))})
	if errors.Is(err, ErrBusy) { // another event of the conversation was faster
		return h.steer(ctx, e, t)
	}
	return chat.Outcome{Kind: chat.OutcomeOpened, TaskID: t.ID, Text: "Task " + t.ID + " is queued."}, err
}

// mayFollow: only a known person who could have asked continues a conversation; a bot never does.
func (h *Host) mayFollow(res task.Resolution, last task.Task) bool {
	return res.Requester.Role.AtLeast(task.RoleUser) && !res.Requester.Actor.Bot && last.Spec.Route != ""
}

func (h *Host) newTask(e chat.Event, res task.Resolution, conversation string) task.Task {
	now := h.Now().UTC()
	t := task.Task{
		ID: task.NewID("task"), Conversation: conversation, Place: e.Place, State: task.Queued, Requester: res.Requester,
		Title: task.Title(e.Text), Prompt: e.Text, Sources: e.Context, Target: e.Target,
		SessionID: task.NewID("session"), Created: now, Updated: now,
	}
	t.WorkspaceID, t.Branch = t.ID, "reasonix/"+strings.TrimPrefix(t.ID, "task_")
	if res.Route != nil {
		t.Spec = res.Route.Spec(e, res.Requester)
	}
	if e.On == "schedule" && t.Spec.AskPlace != nil {
		t.Place = *t.Spec.AskPlace
	}
	return t
}

// followUp continues the conversation's last task on its session, workspace and branch.
func (h *Host) followUp(t, last task.Task) task.Task {
	if t.Spec.Route == "" {
		t.Spec = h.asRouted(last.Spec)
	}
	t.Parent, t.SessionID, t.WorkspaceID, t.Branch = last.ID, last.SessionID, last.WorkspaceID, last.Branch
	return t
}

// asRouted undoes what held for one task alone: /goal and a posture that an administrator set.
func (h *Host) asRouted(s task.Spec) task.Spec {
	for _, r := range h.Routes {
		if r.Name == s.Route {
			s.Mode, s.Posture, s.PostureBy = r.Mode, r.Posture, ""
		}
	}
	return s
}

// takeGoal reads a leading /goal: the task works on an objective until it is done. A plan route keeps its boundary.
func takeGoal(t *task.Task) (refusal string) {
	objective, ok := goal.Command(t.Prompt)
	switch {
	case !ok:
		return ""
	case objective == "":
		return "Say the objective after /goal."
	case t.Spec.Mode == task.ModePlan:
		return "This route plans first, so /goal is not available here. Ask without it, or on a route with mode = \"run\"."
	}
	t.Spec.Mode, t.Prompt, t.Title = task.ModeGoal, objective, task.Title(objective)
	return ""
}

// conversationOf is where at most one task is live. All moments of a schedule share one, unless they may overlap.
func conversationOf(e chat.Event) string {
	if e.Slot != nil && e.Slot.Overlap != chat.OverlapAllow {
		return "schedule\x1f" + e.Slot.Schedule
	}
	return e.Place.Key()
}

func (h *Host) steer(ctx context.Context, e chat.Event, live task.Task) (chat.Outcome, error) {
	if person, role := h.People.Who(e.Actor); person == "" || !role.AtLeast(task.RoleUser) || e.Actor.Bot {
		return h.record(ctx, e, chat.OutcomeRefused, fmt.Sprintf("%s is not known to this host, so the message does not reach the task. An administrator can add you under [[people]].", e.Actor), false)
	}
	if e.Text == "" {
		return h.record(ctx, e, chat.OutcomeIgnored, "empty message", false)
	}
	text := "Noted. The task reads it at its next step."
	if live.State == task.Parked {
		text = "Noted. The task waits for an answer to its open request and reads this when it goes on."
	}
	err := h.Ledger.Steer(ctx, Steering{EventKey: e.Key, TaskID: live.ID, Actor: e.Actor.String(), Text: e.Text, Posts: h.told(e, text)})
	if errors.Is(err, ErrState) { // it ended meanwhile: the next round opens a follow-up
		return h.request(ctx, e)
	}
	return chat.Outcome{Kind: chat.OutcomeSteered, TaskID: live.ID, Text: text}, err
}

// refuse tells an actor that no task is opened. Where nothing was addressed to the host, it only counts.
func (h *Host) refuse(ctx context.Context, e chat.Event, res task.Resolution) (chat.Outcome, error) {
	addressed := e.Command != "" || strings.HasSuffix(e.On, ".mention") || e.On == "console" || e.On == "cli"
	if res.Unmatched && !addressed {
		return h.record(ctx, e, chat.OutcomeIgnored, "not addressed to the host: "+e.On, false)
	}
	return h.record(ctx, e, chat.OutcomeRefused, res.Refusal, addressed && !e.Actor.Bot)
}

// record makes an event without a task durable. tell says whether the actor is told in the place when the door has no private way.
func (h *Host) record(ctx context.Context, e chat.Event, kind chat.OutcomeKind, reason string, tell bool) (chat.Outcome, error) {
	r := Recording{EventKey: e.Key, Kind: kind, Reason: reason, Actor: e.Actor.String()}
	if tell {
		r.Posts = h.told(e, reason)
	}
	out := chat.Outcome{Kind: kind, Text: reason}
	if kind == chat.OutcomeIgnored && !tell {
		out.Text = ""
	}
	return out, h.Ledger.Record(ctx, r)
}

// told is the public reply where a door cannot tell the actor privately. For actors nobody knows it is posted once per
// conversation, so that two programs cannot talk to each other for ever (invariant 10).
func (h *Host) told(e chat.Event, text string) []NewPost {
	place := h.replyPlace(e)
	door, ok := h.Doors[place.Connection]
	clock := e.On == "schedule" // nobody is there to be told privately
	if !ok || text == "" || (door.Capabilities().Private && !clock) {
		return nil
	}
	key := "reply:" + e.Key
	if person, _ := h.People.Who(e.Actor); person == "" && !clock {
		key = "stranger:" + e.Place.Key() + ":" + e.Actor.Kind + ":" + e.Actor.ID
	}
	m := chat.Message{Kind: chat.KindNotice, Text: text}
	if !clock {
		m.Mentions = []chat.Actor{e.Actor}
	}
	return h.redacted([]NewPost{{Key: key, Place: place, Message: m}})
}

// replyPlace is where an event is answered: a schedule has no place of its own and reports where its route's asks go.
func (h *Host) replyPlace(e chat.Event) chat.Place {
	for _, r := range h.Routes {
		if e.On == "schedule" && r.Name == e.Route && r.Asks.To != nil {
			return *r.Asks.To
		}
	}
	return e.Place
}

// press turns an answer, by whatever means it came, into a decision.
func (h *Host) press(ctx context.Context, e chat.Event) (chat.Outcome, error) {
	if e.Press == nil {
		return chat.Outcome{}, errors.New("press without an answer")
	}
	person, role := h.People.Who(e.Actor)
	by := approval.Presser{Actor: e.Actor, Person: person, Role: string(role)}
	now := h.Now().UTC()
	p := *e.Press
	p.Text = h.Redactor.String(p.Text)
	if e.Actor.Bot {
		return h.record(ctx, e, chat.OutcomeRefused, "Programs may not answer requests.", false)
	}
	judged, err := h.Ledger.Decide(ctx, e.Key, p.AskID, func(a approval.Ask, t task.Task) Judged {
		j := decided(approval.Judge(a, by, p, now), t)
		if j.Verdict.Kind != approval.Accepted && j.Verdict.Kind != approval.Counted {
			j.Posts = append(j.Posts, h.told(e, j.Verdict.Reason)...)
		}
		j.Posts = h.redacted(j.Posts)
		return j
	})
	if errors.Is(err, ErrUnknown) {
		return h.record(ctx, e, chat.OutcomeRefused, fmt.Sprintf("There is no request %s. Look at the open ones with `reasonix bot asks`.", p.AskID), true)
	}
	kind := chat.OutcomeRefused
	if v := judged.Verdict.Kind; v == approval.Accepted || v == approval.Counted {
		kind = chat.OutcomeAnswered
	}
	return chat.Outcome{Kind: kind, TaskID: judged.Verdict.Ask.TaskID, Text: judged.Verdict.Reason}, err
}

// stop ends the conversation's live task, or the one that the text names.
func (h *Host) stop(ctx context.Context, e chat.Event) (chat.Outcome, error) {
	live, err := h.liveOf(ctx, e)
	if errors.Is(err, ErrUnknown) && e.Text != "" {
		return h.record(ctx, e, chat.OutcomeRefused, fmt.Sprintf("There is no task %s; `reasonix bot tasks` lists them.", e.Text), true)
	}
	if errors.Is(err, ErrUnknown) {
		return h.record(ctx, e, chat.OutcomeInfo, "Nothing is running here.", true)
	}
	if err != nil {
		return chat.Outcome{}, err
	}
	person, role := h.People.Who(e.Actor)
	mayStop := person != "" && (person == live.Spec.Asks.Requester || role.AtLeast(task.RoleApprover))
	if !mayStop {
		return h.record(ctx, e, chat.OutcomeRefused, fmt.Sprintf("%s may not stop this task. %s, an approver or an administrator may.", e.Actor, live.Spec.Asks.Requester), true)
	}
	t, err := h.Ledger.Cancel(ctx, Cancelling{EventKey: e.Key, TaskID: live.ID, By: person, Posts: h.redacted(cancelPosts(live, person))})
	if errors.Is(err, ErrState) {
		return h.record(ctx, e, chat.OutcomeInfo, "The task has ended already.", true)
	}
	text := "Stopped."
	if t.State == task.Running {
		text = "Stopping: what runs is being ended."
	}
	return chat.Outcome{Kind: chat.OutcomeCancelled, TaskID: live.ID, Text: text}, err
}

func (h *Host) liveOf(ctx context.Context, e chat.Event) (task.Task, error) {
	if e.Text != "" { // the terminal names the task
		return h.Ledger.Task(ctx, e.Text)
	}
	return h.Ledger.Live(ctx, conversationOf(e))
}

// posture switches how approvals resolve in the live task; only an administrator may.
func (h *Host) posture(ctx context.Context, e chat.Event) (chat.Outcome, error) {
	live, err := h.Ledger.Live(ctx, conversationOf(e))
	if errors.Is(err, ErrUnknown) {
		return h.record(ctx, e, chat.OutcomeInfo, "Nothing is running here whose posture could change.", true)
	}
	if err != nil {
		return chat.Outcome{}, err
	}
	person, role := h.People.Who(e.Actor)
	if person == "" || role != task.RoleAdmin {
		return h.record(ctx, e, chat.OutcomeRefused, "Only an administrator may change the posture of a task.", true)
	}
	text := fmt.Sprintf("Posture %s from the task's next step on, set by %s.", e.Text, person)
	_, err = h.Ledger.Alter(ctx, e.Key, live.ID, func(t *task.Task) error {
		t.Spec.Posture, t.Spec.PostureBy = e.Text, person
		return nil
	}, h.told(e, text))
	return chat.Outcome{Kind: chat.OutcomeInfo, TaskID: live.ID, Text: text}, err
}

func (h *Host) status(ctx context.Context, e chat.Event) (chat.Outcome, error) {
	if person, _ := h.People.Who(e.Actor); person == "" {
		return h.record(ctx, e, chat.OutcomeRefused, fmt.Sprintf("%s is not known to this host. An administrator can add you under [[people]].", e.Actor), true)
	}
	t, err := h.Ledger.Live(ctx, conversationOf(e))
	if errors.Is(err, ErrUnknown) {
		t, err = h.Ledger.Last(ctx, conversationOf(e))
	}
	if errors.Is(err, ErrUnknown) {
		return h.record(ctx, e, chat.OutcomeInfo, "No task has run here.", true)
	}
	if err != nil {
		return chat.Outcome{}, err
	}
	asks, err := h.Ledger.Asks(ctx, t.ID, false)
	if err != nil {
		return chat.Outcome{}, err
	}
	grants, err := h.Ledger.Grants(ctx, t.Spec.Route, t.ID)
	if err != nil {
		return chat.Outcome{}, err
	}
	out, err := h.record(ctx, e, chat.OutcomeInfo, h.statusText(t, asks, grants), true)
	out.TaskID = t.ID
	return out, err
}
