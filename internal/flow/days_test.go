package flow_test

import (
	"slices"
	"strings"
	"testing"

	"reasonix/internal/approval"
	"reasonix/internal/budget"
	"reasonix/internal/chat"
	"reasonix/internal/task"
)

// A call of the double uses 110 tokens.

func TestTheDaysBudgetParksWithARaiseForTheDay(t *testing.T) {
	h := newHouse(t, func(h *house) {
		h.route.Posture, h.shop.model, h.route.DayLimits = "auto", again(2), budget.Limits{Tokens: 200}
	})
	first := h.ask("DEV", "deploy twice") // three calls, two of which fit
	ask := h.openAsk(first.TaskID)
	if ask.Kind != approval.KindBudget || !strings.Contains(ask.Text, "the route fix") || !strings.Contains(ask.Fields[1].Value, "220 of 200 tokens") {
		t.Fatalf("the ask: %+v", ask)
	}
	if got := h.press("LEAD", ask.ID, "continue"); got.Kind != chat.OutcomeAnswered {
		t.Fatalf("%+v", got)
	}
	still := h.openAsk(first.TaskID) // nothing was raised: it stops at the same point
	h.restart()
	h.press("LEAD", still.ID, "raise")
	h.state(first.TaskID, task.Completed)
	if h.shop.deploy.effects.Load() != 2 {
		t.Errorf("%d effects", h.shop.deploy.effects.Load())
	}
	// The raise holds for everybody on that day, also after a restart: 330 of 400 are used.
	h.restart()
	h.shop.model = again(4) // the follow-up sees the two calls of before
	second := h.ask("DEV", "deploy twice more")
	full := h.openAsk(second.TaskID)
	if !strings.Contains(full.Fields[1].Value, "440 of 400 tokens") || !strings.Contains(full.Choices[0].Label, "600 tokens") {
		t.Errorf("the second ask: %+v %+v", full.Fields, full.Choices)
	}
}

func TestAHeadlessTaskFailsAtTheDaysBudget(t *testing.T) {
	h := newHouse(t, func(h *house) {
		h.route.Posture, h.shop.model, h.route.DayLimits = "auto", again(2), budget.Limits{Tokens: 150}
		h.route.Headless, h.route.Asks = true, task.Asks{}
	})
	out := h.ask("DEV", "deploy twice")
	if got := h.state(out.TaskID, task.Failed); !strings.Contains(got.Failure, "budget of the day") {
		t.Fatalf("%q", got.Failure)
	}
}

func TestTheTaskIsChargedToTheBotItsRouteAndItsPerson(t *testing.T) {
	h := newHouse(t, func(h *house) {
		h.route.Posture, h.route.DayLimits, h.day = "auto", budget.Limits{Tokens: 1000}, budget.Limits{Cost: 5_000_000}
		h.people = append(task.People(nil), crew...)
		h.people[3].DayLimits = budget.Limits{Tokens: 500}
	})
	out := h.ask("DEV", "deploy")
	h.state(out.TaskID, task.Completed)
	_, accounts, spent, err := h.host.Today(t.Context())
	if err != nil || len(accounts) != 3 {
		t.Fatalf("%v, %v", accounts, err)
	}
	for _, a := range accounts {
		if s := spent[a.Name]; s.Spent.Tokens != 220 || s.Spent.Cost == 0 || s.Spent.Steps != 2 || s.Held.Tokens != 0 {
			t.Errorf("%s: %+v", a.Name, s)
		}
	}
}

// What counts for the whole host is an administrator's: an approver may look again or end the task, and is told why he may not raise it.
func TestOnlyAnAdministratorRaisesTheBudgetOfTheWholeBot(t *testing.T) {
	h := newHouse(t, func(h *house) {
		h.route.Posture, h.shop.model, h.day = "auto", again(2), budget.Limits{Tokens: 200}
		h.route.Asks.Quorum = 2 // one administrator is enough all the same
	})
	out := h.ask("DEV", "deploy twice")
	ask := h.openAsk(out.TaskID)
	if !strings.Contains(ask.Text, "only an administrator may raise it") || !slices.Contains(ask.Rules.Approvers, "boss") {
		t.Fatalf("the ask: %q, approvers %v", ask.Text, ask.Rules.Approvers)
	}
	for _, choice := range []string{"raise", "allow"} {
		if got := h.press("LEAD", ask.ID, choice); got.Kind != chat.OutcomeRefused || !strings.Contains(got.Text, "is for administrators") {
			t.Fatalf("an approver's %s: %+v", choice, got)
		}
	}
	h.press("LEAD", ask.ID, "continue")
	still := h.openAsk(out.TaskID)
	h.restart()
	h.press("BOSS", still.ID, "raise")
	h.state(out.TaskID, task.Completed)
}

func TestWithoutAnAdministratorNoRaiseOfTheWholeBotIsOffered(t *testing.T) {
	h := newHouse(t, func(h *house) {
		h.route.Posture, h.shop.model, h.day = "auto", again(2), budget.Limits{Tokens: 200}
		h.people = append(task.People(nil), crew[0], crew[1], crew[3])
	})
	ask := h.openAsk(h.ask("DEV", "deploy twice").TaskID)
	if !strings.Contains(ask.Text, "nobody under [[people]] is one") || len(ask.Choices) != 2 || ask.Choices[0].ID != "continue" {
		t.Fatalf("the ask: %q %+v", ask.Text, ask.Choices)
	}
}
