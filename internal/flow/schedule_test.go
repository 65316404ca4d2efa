package flow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reasonix/internal/chat"
	"reasonix/internal/task"
)

// slot is the event that the clock's door makes of one moment of a schedule.
func slot(at time.Time) chat.Event {
	stamp := at.UTC().Format(time.RFC3339)
	return chat.Event{
		Key: "schedule:deps:" + stamp, On: "schedule", Route: "nightly", Text: "deploy the updates", Actor: chat.Actor{Kind: "schedule", ID: "deps"},
		Place: chat.Place{Connection: "schedule", Kind: "schedule", Channel: "deps", Thread: stamp},
		Slot:  &chat.Slot{Schedule: "deps", At: at, Overlap: chat.OverlapSkip},
	}
}

func TestAScheduledTaskReportsAndAsksWhereItsRouteSays(t *testing.T) {
	h := newHouse(t, func(h *house) {
		h.route.Name, h.route.On, h.route.Match = "nightly", "schedule", task.Match{}
		h.route.Asks.To = &chat.Place{Connection: "chat", Kind: "slack", Channel: "C-ENG"}
	})
	night := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	for range 3 { // two hosts and a restart may all emit the same moment
		if _, err := h.host.Accept(t.Context(), slot(night)); err != nil {
			t.Fatal(err)
		}
	}
	tasks, err := h.host.Ledger.Tasks(t.Context(), chat.TaskFilter{})
	if err != nil || len(tasks) != 1 {
		t.Fatalf("%d tasks of one moment, %v", len(tasks), err)
	}
	card := h.door.find(t, chat.KindAsk, "")
	h.door.mu.Lock()
	for _, p := range h.door.posts {
		if p.Place.Channel != "C-ENG" {
			t.Errorf("%s went to %v", p.Key, p.Place)
		}
	}
	h.door.mu.Unlock()

	next, err := h.host.Accept(t.Context(), slot(night.Add(24*time.Hour)))
	if err != nil || next.Kind != chat.OutcomeIgnored {
		t.Fatalf("the next night while the first still waits: %+v, %v", next, err)
	}
	h.door.find(t, chat.KindNotice, "skipped")

	h.press("LEAD", card.AskID, "allow")
	h.state(tasks[0].ID, task.Completed)
	third, err := h.host.Accept(t.Context(), slot(night.Add(48*time.Hour)))
	if err != nil || third.Kind != chat.OutcomeOpened {
		t.Fatalf("the night after: %+v, %v", third, err)
	}
	fresh, err := h.host.Ledger.Task(t.Context(), third.TaskID)
	if err != nil || fresh.Parent != "" || strings.Contains(fmt.Sprint(fresh.SessionID), tasks[0].SessionID) {
		t.Errorf("a scheduled task continues the night before: %+v", fresh)
	}
}
