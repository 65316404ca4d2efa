package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"reasonix/internal/approval"
	"reasonix/internal/chat"
	"reasonix/internal/provider"
	"reasonix/internal/run"
	"reasonix/internal/session"
	"reasonix/internal/task"
	"reasonix/internal/tool"
)

// planner tries to deploy before it has a plan, presents one, and deploys once the answer lets it. A rejected plan is presented again.
func planner() *model {
	call := func(n int, name, args string) []provider.ToolCall {
		return []provider.ToolCall{{ID: fmt.Sprintf("call-%d", n), Name: name, Arguments: args}}
	}
	return &model{turn: func(_ context.Context, msgs []provider.Message) (string, []provider.ToolCall, error) {
		n, last := len(msgs), msgs[len(msgs)-1]
		switch {
		case last.Role == provider.RoleUser:
			return "I try.", call(n, "deploy", `{"to":"prod"}`), nil
		case strings.HasPrefix(last.Content, "deployed"):
			return "Done: " + last.Content, nil, nil
		case strings.Contains(last.Content, "The plan is approved"):
			return "I carry it out.", call(n, "deploy", `{"to":"prod"}`), nil
		}
		return "I plan.", call(n, run.PlanTool, `{"plan":"# The plan\n\n1. deploy to prod\n2. look at it"}`), nil
	}}
}

func planHouse(t *testing.T, change ...func(*house)) *house {
	return newHouse(t, append([]func(*house){func(h *house) { h.route.Mode, h.shop.model = task.ModePlan, planner() }}, change...)...)
}

func (h *house) results(id string) string {
	h.t.Helper()
	got, err := h.host.Ledger.Task(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	entries, err := h.host.Ledger.Transcript(id, got.SessionID, 0).Entries(h.t.Context(), 0)
	if err != nil {
		h.t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		if e.Kind == session.KindResult {
			fmt.Fprintf(&b, "%s: %s\n", e.Fact.Tool, e.Message.Content)
		}
	}
	return b.String()
}

func TestNothingIsChangedUntilAPersonApprovesThePlanAndTheWindowOutlivesARestart(t *testing.T) {
	h := planHouse(t)
	out := h.ask("DEV", "deploy the fix")
	ask := h.openAsk(out.TaskID)
	if ask.Kind != approval.KindPlan || ask.Blocks[0].Text != "# The plan\n\n1. deploy to prod\n2. look at it" {
		t.Fatalf("the ask: %+v", ask)
	}
	if got := h.results(out.TaskID); !strings.Contains(got, "deploy: blocked: plan mode") || h.shop.deploy.effects.Load() != 0 {
		t.Fatalf("before the approval: %s", got)
	}
	card := h.door.find(t, chat.KindAsk, "Approve the plan?")
	var choices []string
	for _, b := range card.Buttons {
		choices = append(choices, b.Choice)
	}
	if strings.Join(choices, " ") != "approve approve-changes reject" {
		t.Fatalf("choices %v", choices)
	}
	if got := h.say("DEV", func(e *chat.Event) { e.Verb = chat.VerbStatus }); !strings.Contains(got.Text, "it waits for approval") {
		t.Errorf("status: %s", got.Text)
	}

	h.restart()
	if got := h.press("DEV", ask.ID, "approve"); got.Kind != chat.OutcomeRefused {
		t.Fatalf("the requester approves the plan: %+v", got)
	}
	h.press("LEAD", ask.ID, "approve")
	done := h.state(out.TaskID, task.Completed)
	if h.shop.deploy.effects.Load() != 1 || done.Result != "Done: deployed" {
		t.Fatalf("effects %d, result %q", h.shop.deploy.effects.Load(), done.Result)
	}
	if h.door.count(chat.KindAsk) != 1 {
		t.Errorf("%d asks: the window must answer the ordinary fallback", h.door.count(chat.KindAsk))
	}
	view, err := h.host.Task(t.Context(), out.TaskID)
	if err != nil || !strings.Contains(view.Controls[0].Value, "approved by lead") {
		t.Errorf("controls %+v, %v", view.Controls, err)
	}

	// What follows plans anew: the window closed with the task.
	again := h.say("DEV", func(e *chat.Event) { e.Text = "and once more" })
	second := h.openAsk(again.TaskID)
	if second.Kind != approval.KindPlan || h.shop.deploy.effects.Load() != 1 {
		t.Fatalf("the follow-up: %+v, effects %d", second, h.shop.deploy.effects.Load())
	}
}

func TestAPlanIsRejectedThenApprovedWithChanges(t *testing.T) {
	h := planHouse(t)
	out := h.ask("DEV", "deploy the fix")
	first := h.openAsk(out.TaskID)
	if got := h.press("LEAD", first.ID, "approve-changes"); got.Kind != chat.OutcomeRefused || !strings.Contains(got.Text, "needs a text") {
		t.Fatalf("changes without a text: %+v", got)
	}
	h.pressWith("LEAD", first.ID, "deny", "look at staging first") // the word of doors without buttons
	h.door.find(t, chat.KindAsk, "Approve the plan?")
	h.restart()
	second := h.openAsk(out.TaskID)
	if second.ID == first.ID {
		t.Fatal("the rejected plan was not presented again")
	}
	if got := h.results(out.TaskID); !strings.Contains(got, "rejected by lead. Change it and present it again.\nlook at staging first") {
		t.Fatalf("results: %s", got)
	}
	h.pressWith("MATE", second.ID, "allow", "only half of it")
	h.state(out.TaskID, task.Completed)
	if got := h.results(out.TaskID); !strings.Contains(got, "approved by mate with changes:\nonly half of it") || h.shop.deploy.effects.Load() != 1 {
		t.Fatalf("results: %s", got)
	}
}

func TestNoPostureApprovesAPlan(t *testing.T) {
	for _, posture := range []string{"auto", "yolo"} {
		h := planHouse(t, func(h *house) { h.route.Posture = posture })
		out := h.ask("DEV", "deploy the fix")
		if ask := h.openAsk(out.TaskID); ask.Kind != approval.KindPlan || h.shop.deploy.effects.Load() != 0 {
			t.Errorf("%s: %+v", posture, ask)
		}
	}
}

func TestAHeadlessPlanEndsOnThePlan(t *testing.T) {
	h := planHouse(t, func(h *house) { h.route.Headless, h.route.Asks = true, task.Asks{} })
	out := h.ask("DEV", "deploy the fix")
	done := h.state(out.TaskID, task.Completed)
	if h.shop.deploy.effects.Load() != 0 || !strings.Contains(done.Result, "1. deploy to prod") || !strings.Contains(done.Result, "Nothing was changed") {
		t.Fatalf("result %q", done.Result)
	}
}

// asking is a tool that asks a person.
type asking struct{}

func (asking) Name() string        { return "ask" }
func (asking) Description() string { return "asks" }
func (asking) ReadOnly() bool      { return true }
func (asking) Schema() json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
}
func (asking) Execute(context.Context, json.RawMessage) (string, error) {
	return "", errors.New("never runs")
}
func (asking) Question(json.RawMessage) (tool.Question, error) {
	return tool.Question{Kind: "question", Title: "Which?", Text: "Which version?"}, nil
}

func TestAHeadlessTaskDecidesItself(t *testing.T) {
	h := newHouse(t, func(h *house) {
		h.route.Headless, h.route.Asks, h.shop.extra = true, task.Asks{}, asking{}
		h.shop.model = &model{turn: func(_ context.Context, msgs []provider.Message) (string, []provider.ToolCall, error) {
			if last := msgs[len(msgs)-1]; last.Role == provider.RoleTool {
				return "Assumed the newest, because " + last.Content, nil, nil
			}
			return "", []provider.ToolCall{{ID: "q", Name: "ask", Arguments: "{}"}}, nil
		}}
	})
	out := h.ask("DEV", "choose")
	if got := h.state(out.TaskID, task.Completed); !strings.Contains(got.Result, "nobody can be asked here") {
		t.Fatalf("%q", got.Result)
	}
}

func TestAQuorumApprovesAPlanAsItStands(t *testing.T) {
	h := planHouse(t, func(h *house) { h.route.Asks.Quorum = 2 })
	out := h.ask("DEV", "deploy the fix")
	ask := h.openAsk(out.TaskID)
	if got := h.pressWith("LEAD", ask.ID, "approve-changes", "mine"); got.Kind != chat.OutcomeRefused {
		t.Fatalf("changes of one: %+v", got)
	}
	h.press("LEAD", ask.ID, "approve")
	if h.openAsk(out.TaskID); h.shop.deploy.effects.Load() != 0 {
		t.Fatal("one of two was enough")
	}
	h.press("MATE", ask.ID, "allow")
	h.state(out.TaskID, task.Completed)
}
