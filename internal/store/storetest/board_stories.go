package storetest

import (
	"testing"

	"reasonix/internal/chat"
	"reasonix/internal/flow"
	"reasonix/internal/task"
)

var boardStories = map[string]func(*testing.T, *world){
	"TasksAreListedNewestFirst": func(t *testing.T, w *world) {
		first, second := w.opened(t, "1"), w.opened(t, "2")
		parked, _ := w.parked(t, "3", 1)
		all, err := w.Tasks(w.ctx, chat.TaskFilter{})
		must(t, err)
		if len(all) != 3 || all[0].ID != parked.ID || all[2].ID != first.ID {
			t.Fatalf("order: %v", all)
		}
		queued, err := w.Tasks(w.ctx, chat.TaskFilter{State: string(task.Queued), Limit: 1})
		must(t, err)
		if len(queued) != 1 || queued[0].ID != second.ID {
			t.Fatalf("queued: %v", queued)
		}
		here, err := w.Tasks(w.ctx, chat.TaskFilter{Conversation: first.Conversation})
		must(t, err)
		if len(here) != 1 || here[0].ID != first.ID {
			t.Fatalf("in the conversation: %v", here)
		}
	},
	"ATaskComesBackAsItWasOpened": func(t *testing.T, w *world) {
		o := opening("k", "1")
		o.Task.Sources = []chat.Source{{Title: "issue", Text: "it fails"}}
		o.Task.Target = &chat.Target{Number: 7, IsPR: true}
		_, err := w.Open(w.ctx, o)
		must(t, err)
		got := w.task(t, o.Task.ID)
		if got.Prompt != o.Task.Prompt || got.Spec.Posture != "ask" || got.Sources[0].Text != "it fails" || got.Target.Number != 7 ||
			got.Requester != o.Task.Requester || got.Place != o.Task.Place || got.Created.IsZero() || got.WorkspaceID != o.Task.WorkspaceID {
			t.Fatalf("task: %+v", got)
		}
	},
	"LiveAndLastOfAConversation": func(t *testing.T, w *world) {
		_, err := w.Live(w.ctx, "nowhere")
		wantErr(t, err, flow.ErrUnknown)
		_, err = w.Last(w.ctx, "nowhere")
		wantErr(t, err, flow.ErrUnknown)
		var ended []string
		for range 2 {
			c := w.claimed(t, "1")
			must(t, w.Finish(w.ctx, flow.Finishing{Held: c.Held(), State: task.Completed}))
			ended = append(ended, c.Task.ID)
		}
		live := w.opened(t, "1")
		got, err := w.Live(w.ctx, live.Conversation)
		must(t, err)
		last, err := w.Last(w.ctx, live.Conversation)
		must(t, err)
		if got.ID != live.ID || last.ID != ended[1] {
			t.Fatalf("live %s, last %s", got.ID, last.ID)
		}
	},
	"AsksAreListedNewestFirst": func(t *testing.T, w *world) {
		_, asks := w.parked(t, "1", 2)
		_, others := w.parked(t, "2", 1)
		_, err := w.Decide(w.ctx, "press", asks[0].ID, answerBy("lead", "allow"))
		must(t, err)
		all, err := w.Asks(w.ctx, "", false)
		must(t, err)
		if len(all) != 3 || all[0].ID != others[0].ID || all[2].ID != asks[0].ID {
			t.Fatalf("all: %v", all)
		}
		open, err := w.Asks(w.ctx, asks[0].TaskID, true)
		must(t, err)
		if len(open) != 1 || open[0].ID != asks[1].ID {
			t.Fatalf("open: %v", open)
		}
	},
	"WhoWatchesATaskHearsOfEveryKindOfChange": func(t *testing.T, w *world) {
		tk := w.opened(t, "1")
		other := w.Changed("task_other")
		changes := map[string]func(){
			"reply":  func() { must(t, w.Steer(w.ctx, flow.Steering{EventKey: newID("e"), TaskID: tk.ID, Text: "x"})) },
			"cancel": func() { _, err := w.Cancel(w.ctx, flow.Cancelling{EventKey: newID("e"), TaskID: tk.ID}); must(t, err) },
		}
		for _, name := range []string{"reply", "cancel"} {
			ch := w.Changed(tk.ID)
			changes[name]()
			receive(t, ch, name)
		}
		select {
		case <-other:
			t.Fatal("a change of one task was told to those who watch another")
		default:
		}
	},
	"AnUnknownTaskIsNamed": func(t *testing.T, w *world) {
		_, err := w.Task(w.ctx, "task_none")
		wantErr(t, err, flow.ErrUnknown)
		_, err = w.Ask(w.ctx, "ask_none")
		wantErr(t, err, flow.ErrUnknown)
	},
}
