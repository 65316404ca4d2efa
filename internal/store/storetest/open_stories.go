package storetest

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"reasonix/internal/approval"
	"reasonix/internal/chat"
	"reasonix/internal/flow"
	"reasonix/internal/task"
)

var openStories = map[string]func(*testing.T, *world){
	"TestInvariant01_FiveDeliveriesAtOnceMakeOneTask": func(t *testing.T, w *world) {
		var wg sync.WaitGroup
		ids, fresh := make([]string, 5), make([]bool, 5)
		for i := range 5 {
			wg.Go(func() {
				tk, err := w.Open(w.ctx, opening("delivery-1", "1"))
				if err != nil && !errors.Is(err, flow.ErrDuplicate) {
					t.Error(err)
				}
				ids[i], fresh[i] = tk.ID, err == nil
			})
		}
		wg.Wait()
		if first := slices.Index(fresh, true); first < 0 || slices.Contains(fresh[first+1:], true) {
			t.Fatalf("not exactly one delivery was the first: %v", fresh)
		}
		if len(slices.Compact(ids)) != 1 || ids[0] == "" {
			t.Fatalf("the deliveries were told different tasks: %v", ids)
		}
		if tasks, _ := w.Tasks(w.ctx, chat.TaskFilter{}); len(tasks) != 1 {
			t.Fatalf("%d tasks, want 1", len(tasks))
		}
		if posts, _ := w.Posts(w.ctx, ids[0]); len(posts) != 1 {
			t.Fatalf("%d acknowledgements, want 1", len(posts))
		}
	},
	"TestInvariant01_AnEventThatCommittedSurvivesTheCrash": func(t *testing.T, w *world) {
		first, err := w.Open(w.ctx, opening("delivery-1", "1"))
		must(t, err)
		w.crash(t)
		again, err := w.Open(w.ctx, opening("delivery-1", "1"))
		wantErr(t, err, flow.ErrDuplicate)
		if again.ID != first.ID {
			t.Fatalf("the second delivery was told task %s, want %s", again.ID, first.ID)
		}
		if posts, _ := w.Posts(w.ctx, first.ID); len(posts) != 1 || posts[0].Message.Text != "on it" {
			t.Fatalf("posts after the crash: %+v", posts)
		}
	},
	"ARefusedArrowLeavesNothing": func(t *testing.T, w *world) {
		live := w.opened(t, "1")
		o := opening("delivery-2", "1")
		got, err := w.Open(w.ctx, o)
		wantErr(t, err, flow.ErrBusy)
		if got.ID != live.ID {
			t.Fatalf("busy names task %s, want the live one %s", got.ID, live.ID)
		}
		if posts, _ := w.Posts(w.ctx, o.Task.ID); len(posts) != 0 {
			t.Fatalf("the refused task posted: %+v", posts)
		}
		wantErr(t, w.Record(w.ctx, flow.Recording{EventKey: "delivery-2", Kind: chat.OutcomeRefused, Reason: "busy"}), nil)
		_, err = w.Open(w.ctx, o)
		wantErr(t, err, flow.ErrDuplicate)
	},
	"AnEventWithoutAKeyIsRefused": func(t *testing.T, w *world) {
		if _, err := w.Open(w.ctx, opening("", "1")); err == nil {
			t.Fatal("an event without a key was taken")
		}
	},
	"AFollowUpOpensWhenTheFirstHasEnded": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		must(t, w.Finish(w.ctx, flow.Finishing{Held: c.Held(), State: task.Completed, Result: "done"}))
		last, err := w.Last(w.ctx, c.Task.Conversation)
		must(t, err)
		o := opening("reply-1", "1")
		o.Task.Parent, o.Task.SessionID = last.ID, last.SessionID
		second, err := w.Open(w.ctx, o)
		must(t, err)
		live, err := w.Live(w.ctx, c.Task.Conversation)
		must(t, err)
		if live.ID != second.ID || live.Parent != c.Task.ID || live.SessionID != c.Task.SessionID {
			t.Fatalf("the live task is %+v", live)
		}
	},
	"ReplyingWhileItLivesLeavesTextInTheInboxOnce": func(t *testing.T, w *world) {
		tk, _ := w.parked(t, "1", 1)
		reply := flow.Steering{EventKey: "reply-1", TaskID: tk.ID, Actor: "slack:U1", Text: "use the new API\x00\n✓",
			Posts: []flow.NewPost{notice(tk.ID, "heard:1", tk.Place, "noted")}}
		must(t, w.Steer(w.ctx, reply))
		wantErr(t, w.Steer(w.ctx, reply), flow.ErrDuplicate)
		wantState(t, w.task(t, tk.ID), task.Parked)
		items, err := w.Inbox(w.ctx, tk.ID)
		must(t, err)
		if len(items) != 1 || items[0].Text != "use the new API\x00\n✓" || items[0].Actor != "slack:U1" || items[0].At.IsZero() {
			t.Fatalf("inbox: %+v", items)
		}
	},
	"SteeringATaskThatEndedIsRefused": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		must(t, w.Finish(w.ctx, flow.Finishing{Held: c.Held(), State: task.Failed, Failure: "no"}))
		wantErr(t, w.Steer(w.ctx, flow.Steering{EventKey: "r", TaskID: c.Task.ID, Text: "more"}), flow.ErrState)
		wantErr(t, w.Steer(w.ctx, flow.Steering{EventKey: "r", TaskID: "task_none", Text: "more"}), flow.ErrUnknown)
	},
	"StoppingAParkedTaskEndsItAndClosesItsAsks": func(t *testing.T, w *world) {
		tk, asks := w.parked(t, "1", 2)
		stop := flow.Cancelling{EventKey: "stop-1", TaskID: tk.ID, By: "slack:U1",
			Posts: []flow.NewPost{notice(tk.ID, "stopped", tk.Place, "stopped")}}
		got, err := w.Cancel(w.ctx, stop)
		must(t, err)
		wantState(t, got, task.Cancelled)
		if got.CancelBy != "slack:U1" || got.Ended.IsZero() {
			t.Fatalf("cancelled by %q at %v", got.CancelBy, got.Ended)
		}
		for _, a := range asks {
			if a, _ := w.Ask(w.ctx, a.ID); a.State != approval.StateCancelled {
				t.Fatalf("ask is %s", a.State)
			}
		}
		again, err := w.Cancel(w.ctx, stop)
		wantErr(t, err, flow.ErrDuplicate)
		wantState(t, again, task.Cancelled)
		_, err = w.Cancel(w.ctx, flow.Cancelling{EventKey: "stop-2", TaskID: tk.ID})
		wantErr(t, err, flow.ErrState)
		if posts, _ := w.Posts(w.ctx, tk.ID); posts[len(posts)-1].Key != "stopped" {
			t.Fatalf("posts: %+v", posts)
		}
	},
	"StoppingARunningTaskTellsItsWorker": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		got, err := w.Cancel(w.ctx, flow.Cancelling{EventKey: "stop", TaskID: c.Task.ID, By: "slack:U1",
			Posts: []flow.NewPost{notice(c.Task.ID, "stopped", c.Task.Place, "stopped")}})
		must(t, err)
		wantState(t, got, task.Running)
		seen, err := w.Renew(w.ctx, c.Held(), long)
		must(t, err)
		if seen.CancelBy != "slack:U1" {
			t.Fatalf("the worker sees CancelBy %q", seen.CancelBy)
		}
		if posts, _ := w.Posts(w.ctx, c.Task.ID); len(posts) != 1 {
			t.Fatalf("a task that did not end at once posted its end: %+v", posts)
		}
	},
	"AStopThatMeetsAParkingAsksNobody": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		_, err := w.Cancel(w.ctx, flow.Cancelling{EventKey: "stop", TaskID: c.Task.ID, By: "slack:U1"})
		must(t, err)
		ask := newAsk(c.Task.ID)
		must(t, w.Park(w.ctx, flow.Parking{Held: c.Held(), Reason: approval.KindApproval, Asks: []approval.Ask{ask}}))
		wantState(t, w.task(t, c.Task.ID), task.Queued)
		_, err = w.Ask(w.ctx, ask.ID)
		wantErr(t, err, flow.ErrUnknown)
		next, err := w.Claim(w.ctx, c.Task.ID, "host-a", long)
		must(t, err)
		if next.Task.CancelBy != "slack:U1" {
			t.Fatalf("the next attempt sees CancelBy %q", next.Task.CancelBy)
		}
	},
	"AlteringKeepsWhatIsNotTheCallersToChange": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		change := func(tk *task.Task) error {
			tk.Spec.Posture, tk.State, tk.Fence, tk.ID = "auto", task.Completed, 99, "other"
			return nil
		}
		got, err := w.Alter(w.ctx, "posture-1", c.Task.ID, change, nil)
		must(t, err)
		if got.Spec.Posture != "auto" || got.State != task.Running || got.Fence != c.Task.Fence || got.ID != c.Task.ID {
			t.Fatalf("altered: %+v", got)
		}
		_, err = w.Alter(w.ctx, "posture-1", c.Task.ID, change, nil)
		wantErr(t, err, flow.ErrDuplicate)
		no := errors.New("not allowed")
		_, err = w.Alter(w.ctx, "posture-2", c.Task.ID, func(tk *task.Task) error { tk.Title = "x"; return no }, nil)
		wantErr(t, err, no)
		if w.task(t, c.Task.ID).Title == "x" {
			t.Fatal("a refused change was stored")
		}
	},
	"RetryQueuesWhatFailedAndNothingElse": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		_, err := w.Retry(w.ctx, "retry-0", c.Task.ID, nil)
		wantErr(t, err, flow.ErrState)
		must(t, w.Finish(w.ctx, flow.Finishing{Held: c.Held(), State: task.Failed, Failure: "no network"}))
		got, err := w.Retry(w.ctx, "retry-1", c.Task.ID, nil)
		must(t, err)
		wantState(t, got, task.Queued)
		if got.Failure != "" || !got.Ended.IsZero() {
			t.Fatalf("the retried task still shows its end: %+v", got)
		}
		_, err = w.Retry(w.ctx, "retry-1", c.Task.ID, nil)
		wantErr(t, err, flow.ErrDuplicate)
		again, err := w.Claim(w.ctx, c.Task.ID, "host-a", long)
		must(t, err)
		if again.Task.Fence <= c.Task.Fence {
			t.Fatalf("fence %d after %d", again.Task.Fence, c.Task.Fence)
		}
		must(t, w.Finish(w.ctx, flow.Finishing{Held: again.Held(), State: task.Completed}))
		_, err = w.Retry(w.ctx, "retry-2", c.Task.ID, nil)
		wantErr(t, err, flow.ErrState)
	},
	"RetryWaitsForALiveTaskInTheConversation": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		must(t, w.Finish(w.ctx, flow.Finishing{Held: c.Held(), State: task.Failed}))
		w.opened(t, "1")
		_, err := w.Retry(w.ctx, "retry", c.Task.ID, nil)
		wantErr(t, err, flow.ErrBusy)
	},
	"WhatIsIgnoredIsCounted": func(t *testing.T, w *world) {
		for _, key := range []string{"bot-1", "bot-2", "bot-2"} {
			err := w.Record(w.ctx, flow.Recording{EventKey: key, Kind: chat.OutcomeIgnored, Reason: "from a bot"})
			if err != nil && !errors.Is(err, flow.ErrDuplicate) {
				t.Fatal(err)
			}
		}
		w.opened(t, "1")
		counted, err := w.Counted(w.ctx)
		must(t, err)
		if counted["ignored: from a bot"] != 2 || counted["opened"] != 1 || counted["duplicate"] != 1 {
			t.Fatalf("counted %v", counted)
		}
	},
}
