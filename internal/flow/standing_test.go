package flow_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"reasonix/internal/budget"
	"reasonix/internal/chat"
	"reasonix/internal/provider"
	"reasonix/internal/session"
	"reasonix/internal/task"
)

// again deploys n times, one call a message, and then reports.
func again(n int) *model {
	return &model{turn: func(_ context.Context, msgs []provider.Message) (string, []provider.ToolCall, error) {
		done := 0
		for _, m := range msgs {
			if m.Role == provider.RoleTool {
				done++
			}
		}
		if done >= n {
			return "Done.", nil, nil
		}
		return "I deploy.", []provider.ToolCall{{ID: fmt.Sprintf("call-%d", len(msgs)), Name: "deploy", Arguments: `{"to":"prod"}`}}, nil
	}}
}

func (h *house) setPosture(p string) chat.Outcome {
	return h.say("BOSS", func(e *chat.Event) { e.Verb, e.Text = chat.VerbPosture, p })
}

func (h *house) notes(id, name string) []string {
	h.t.Helper()
	got, err := h.host.Ledger.Task(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	entries, err := h.host.Ledger.Transcript(id, got.SessionID, 0).Entries(h.t.Context(), 0)
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if e.Kind == session.KindNote && e.Name == name {
			out = append(out, string(e.Data))
		}
	}
	return out
}

func TestAPostureChangeCountsAtTheNextTurnOfARunningTaskAndIsInTheTranscript(t *testing.T) {
	h := newHouse(t, func(h *house) {
		h.route.Posture, h.shop.model, h.shop.deploy.hold = "auto", again(2), make(chan struct{})
	})
	out := h.ask("DEV", "deploy twice")
	<-h.shop.deploy.started
	h.setPosture("ask")
	close(h.shop.deploy.hold)
	ask := h.openAsk(out.TaskID) // the second call is asked, in the same attempt
	if got := h.shop.deploy.effects.Load(); got != 1 {
		t.Fatalf("%d effects", got)
	}
	parked := h.state(out.TaskID, task.Parked)
	if parked.Attempts != 1 {
		t.Errorf("%d attempts", parked.Attempts)
	}
	want := `{"to":"auto"} {"from":"auto","to":"ask","by":"boss"}`
	if got := strings.Join(h.notes(out.TaskID, "posture"), " "); got != want {
		t.Fatalf("notes %s, want %s", got, want)
	}
	h.restart()
	h.press("LEAD", ask.ID, "allow")
	h.state(out.TaskID, task.Completed)
	if got := strings.Join(h.notes(out.TaskID, "posture"), " "); got != want {
		t.Errorf("after a restart: %s", got)
	}
	// A follow-up starts with the posture of its route.
	next := h.say("DEV", func(e *chat.Event) { e.Text = "and again" })
	if got := h.state(next.TaskID, task.Completed); got.Spec.Posture != "auto" {
		t.Errorf("the follow-up has the posture %s", got.Spec.Posture)
	}
}

func TestAGrantLastsAcrossARestartUntilItIsRevoked(t *testing.T) {
	h := newHouse(t)
	first := h.ask("DEV", "deploy")
	if got := h.say("DEV", func(e *chat.Event) { e.Verb = chat.VerbStatus }).Text; !strings.Contains(got, "Contract: inferred from the request") {
		t.Errorf("status: %s", got)
	}
	h.press("LEAD", h.openAsk(first.TaskID).ID, "allow-always")
	h.state(first.TaskID, task.Completed)

	h.restart()
	second := h.ask("DEV", "deploy again")
	h.state(second.TaskID, task.Completed) // nobody was asked
	h.door.find(t, chat.KindResult, "deploy again")
	if h.door.count(chat.KindAsk) != 1 {
		t.Fatalf("%d asks", h.door.count(chat.KindAsk))
	}
	grants, err := h.host.Ledger.Grants(t.Context(), "", "")
	if err != nil || len(grants) != 1 || grants[0].Rule != "deploy" || grants[0].By != "lead" || grants[0].Route != "fix" {
		t.Fatalf("grants %+v, %v", grants, err)
	}
	if err := h.host.Ledger.RevokeGrant(t.Context(), grants[0].ID); err != nil {
		t.Fatal(err)
	}
	h.restart()
	third := h.ask("DEV", "deploy once more")
	h.openAsk(third.TaskID)
	if h.shop.deploy.effects.Load() != 2 {
		t.Errorf("%d effects", h.shop.deploy.effects.Load())
	}
}

func TestAGrantForOneTaskEndsWithIt(t *testing.T) {
	h := newHouse(t, func(h *house) { h.shop.model = again(2) })
	first := h.ask("DEV", "deploy twice")
	h.press("LEAD", h.openAsk(first.TaskID).ID, "allow-session")
	h.restart()
	h.state(first.TaskID, task.Completed)
	h.door.find(t, chat.KindResult, "deploy twice")
	if h.shop.deploy.effects.Load() != 2 || h.door.count(chat.KindAsk) != 1 {
		t.Fatalf("%d effects, %d asks", h.shop.deploy.effects.Load(), h.door.count(chat.KindAsk))
	}
	h.shop.model = deployer()
	second := h.ask("DEV", "deploy again")
	h.openAsk(second.TaskID)
}

func TestAGoalGoesOnAfterARestartAndItsEndShowsWhatTheHostSaw(t *testing.T) {
	h := newHouse(t, func(h *house) {
		h.route.Posture = "ask"
		h.shop.model = &model{turn: func(_ context.Context, msgs []provider.Message) (string, []provider.ToolCall, error) {
			last := msgs[len(msgs)-1]
			switch {
			case last.Role == provider.RoleUser:
				return "I deploy.", []provider.ToolCall{{ID: fmt.Sprintf("d-%d", len(msgs)), Name: "deploy", Arguments: `{"to":"prod"}`}}, nil
			case last.Role == provider.RoleTool && !strings.HasPrefix(last.Content, "reported"):
				return "", []provider.ToolCall{{ID: fmt.Sprintf("g-%d", len(msgs)), Name: "update_goal", Arguments: `{"status":"complete","summary":"All is deployed and verified."}`}}, nil
			}
			return "over", nil, nil
		}}
	})
	if got := h.ask("DEV", "/goal"); got.Kind != chat.OutcomeRefused {
		t.Fatalf("/goal without an objective: %+v", got)
	}
	out := h.ask("DEV", "/goal ship it\nConstraints: by noon")
	ask := h.openAsk(out.TaskID)
	if got := h.state(out.TaskID, task.Parked); got.Spec.Mode != task.ModeGoal || got.Prompt != "ship it\nConstraints: by noon" {
		t.Fatalf("mode %s, prompt %q", got.Spec.Mode, got.Prompt)
	}
	h.restart()
	status := h.say("DEV", func(e *chat.Event) { e.Verb = chat.VerbStatus }).Text
	view, err := h.host.Task(t.Context(), out.TaskID)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Mode: goal. ", "Posture: ask. ", "Contract: as the request says under Constraints. ", "Permission: the host's rules. ", "Box: workspace of this task"} {
		label, value, _ := strings.Cut(strings.TrimSuffix(want, ". "), ": ")
		shown := slices.ContainsFunc(view.Controls, func(f chat.Field) bool { return f.Label == label && strings.HasPrefix(f.Value, value) })
		if !strings.Contains(status, want) || !shown {
			t.Errorf("status lacks %q: %s\non the page: %+v", want, status, view.Controls)
		}
	}
	h.press("LEAD", ask.ID, "deny")
	done := h.state(out.TaskID, task.Completed)
	if done.Result != "All is deployed and verified." {
		t.Errorf("result %q", done.Result)
	}
	final := h.door.find(t, chat.KindResult, "All is deployed")
	facts := ""
	for _, f := range final.Fields {
		if f.Label == "The host notes" {
			facts = f.Value
		}
	}
	if !strings.Contains(facts, "refused: deploy") {
		t.Errorf("beside the model's word stands %q", facts)
	}
	next := h.say("DEV", func(e *chat.Event) { e.Text = "thanks, and now?" })
	if got, err := h.host.Ledger.Task(t.Context(), next.TaskID); err != nil || got.Spec.Mode != task.ModeRun {
		t.Errorf("the follow-up has the mode %s, %v", got.Spec.Mode, err)
	}
}

func TestARaisedBudgetLastsAcrossARestart(t *testing.T) {
	h := newHouse(t, func(h *house) {
		h.route.Posture, h.shop.model, h.route.Limits = "auto", again(3), budget.Limits{Tokens: 150}
	})
	out := h.ask("DEV", "deploy thrice")
	ask := h.openAsk(out.TaskID)
	h.restart()
	h.press("LEAD", ask.ID, "raise")
	h.state(out.TaskID, task.Completed)
	if h.shop.deploy.effects.Load() != 3 {
		t.Errorf("%d effects", h.shop.deploy.effects.Load())
	}
}

// Tasks of one conversation share a transcript, and each has a receipt of its own.
func TestAFollowUpsReceiptBeginsWithItsRequest(t *testing.T) {
	h := newHouse(t)
	first := h.ask("DEV", "deploy")
	h.press("LEAD", h.openAsk(first.TaskID).ID, "deny")
	if r := h.state(first.TaskID, task.Completed).Receipt; len(r.HostFacts) != 1 || r.HostFacts[0] != "refused: deploy" {
		t.Fatalf("the first receipt: %+v", r)
	}
	next := h.say("DEV", func(e *chat.Event) { e.Text = "and now?" })
	h.press("LEAD", h.openAsk(next.TaskID).ID, "allow")
	done := h.state(next.TaskID, task.Completed)
	if strings.Contains(strings.Join(done.Receipt.HostFacts, " "), "refused") || len(done.Receipt.Tools) != 1 || done.Receipt.Tools[0].Value != "1" {
		t.Errorf("the follow-up's receipt: %+v", done.Receipt)
	}
}
