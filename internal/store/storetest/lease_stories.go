package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"reasonix/internal/approval"
	"reasonix/internal/chat"
	"reasonix/internal/flow"
	"reasonix/internal/session"
	"reasonix/internal/task"
)

// over is a lease that has ended by the time it is looked at.
const over = -time.Second

var leaseStories = map[string]func(*testing.T, *world){
	"ALiveLeaseIsRespected": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		if c.Task.State != task.Running || c.Task.Fence != 1 || c.Task.Attempts != 1 || c.Task.Host != "host-a" {
			t.Fatalf("claim: %+v", c.Task)
		}
		_, err := w.Claim(w.ctx, c.Task.ID, "host-b", long)
		wantErr(t, err, flow.ErrLeased)
		_, err = w.Claim(w.ctx, "task_none", "host-b", long)
		wantErr(t, err, flow.ErrUnknown)
	},
	"TestInvariant03_AWorkerWithoutALiveLeaseWritesNothing": func(t *testing.T, w *world) {
		tk := w.opened(t, "1")
		stale, err := w.Claim(w.ctx, tk.ID, "host-a", over)
		must(t, err)
		wantFenced(t, w, "expired, not yet taken over", stale)
		heir, err := w.Claim(w.ctx, tk.ID, "host-b", long)
		must(t, err)
		wantFenced(t, w, "taken over", stale)
		must(t, w.Finish(w.ctx, flow.Finishing{Held: heir.Held(), State: task.Completed, Result: "done by b"}))
		wantFenced(t, w, "finished by the heir", stale)
		wantFenced(t, w, "the heir itself, after its end", heir)
	},
	"TestInvariant03_TwentyWorkersAtOnceGetOneLease": func(t *testing.T, w *world) {
		tk := w.opened(t, "1")
		got := make(chan bool, 20)
		for i := range 20 {
			go func() {
				_, err := w.Claim(w.ctx, tk.ID, fmt.Sprint("host-", i), long)
				got <- err == nil
			}()
		}
		claims := 0
		for range 20 {
			if receive(t, got, "a claim") {
				claims++
			}
		}
		if claims != 1 {
			t.Fatalf("%d workers hold the task", claims)
		}
	},
	"RenewingKeepsALeaseAlive": func(t *testing.T, w *world) {
		tk := w.opened(t, "1")
		c, err := w.Claim(w.ctx, tk.ID, "host-a", time.Minute)
		must(t, err)
		got, err := w.Renew(w.ctx, c.Held(), 2*long)
		must(t, err)
		if !got.LeaseUntil.After(c.Task.LeaseUntil.Add(long)) {
			t.Fatalf("lease until %s", got.LeaseUntil)
		}
		if woken, err := w.Sweep(w.ctx, time.Now().Add(long)); err != nil || len(woken) != 0 {
			t.Fatalf("the sweep woke %v: %v", woken, err)
		}
	},
	"YieldingQueuesTheTaskAgain": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		must(t, w.Yield(w.ctx, c.Held(), flow.Progress{}))
		wantState(t, w.task(t, c.Task.ID), task.Queued)
		again, err := w.Claim(w.ctx, c.Task.ID, "host-b", long)
		must(t, err)
		if again.Task.Fence != 2 || again.Task.Attempts != 2 {
			t.Fatalf("claim: %+v", again.Task)
		}
	},
	"SpendingAddsUpOverAttempts": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		var p flow.Progress
		p.Spent.Tokens, p.Spent.Cost, p.Spent.Steps, p.Spent.Time, p.Usage.Output = 10, 20, 1, time.Second, 7
		must(t, w.Yield(w.ctx, c.Held(), p))
		c, err := w.Claim(w.ctx, c.Task.ID, "host-a", long)
		must(t, err)
		must(t, w.Finish(w.ctx, flow.Finishing{Held: c.Held(), Progress: p, State: task.Completed}))
		got := w.task(t, c.Task.ID)
		if got.Spent.Tokens != 20 || got.Spent.Cost != 40 || got.Spent.Steps != 2 || got.Spent.Time != 2*time.Second || got.Usage.Output != 14 {
			t.Fatalf("spent %+v, usage %+v", got.Spent, got.Usage)
		}
	},
	"FinishingStoresWhatTheTaskShowsForItself": func(t *testing.T, w *world) {
		tk, asks := w.parked(t, "1", 1)
		_, err := w.Decide(w.ctx, "press", asks[0].ID, answerBy("lead", "allow"))
		must(t, err)
		c, err := w.Claim(w.ctx, tk.ID, "host-a", long)
		must(t, err)
		must(t, w.Finish(w.ctx, flow.Finishing{Held: c.Held(), State: task.Completed, Result: "fixed", Diff: "--- a\n+++ b\n",
			Receipt: &chat.ReceiptView{AskedBy: "ada"}, Posts: []flow.NewPost{notice(tk.ID, "result", tk.Place, "fixed")}}))
		w.crash(t)
		got := w.task(t, tk.ID)
		wantState(t, got, task.Completed)
		if got.Result != "fixed" || got.Diff == "" || got.Receipt.AskedBy != "ada" || got.Ended.IsZero() || got.Host != "" {
			t.Fatalf("finished task: %+v", got)
		}
		if posts, _ := w.Posts(w.ctx, tk.ID); len(posts) != 2 || posts[1].Key != "result" {
			t.Fatalf("posts: %+v", posts)
		}
	},
	"FinishingWithAStateThatIsNoEndIsRefused": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		wantErr(t, w.Finish(w.ctx, flow.Finishing{Held: c.Held(), State: task.Parked}), flow.ErrState)
	},
	"PublishingKeepsTheIntentThenTheOutcome": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		must(t, w.Publish(w.ctx, c.Held(), task.Published{Branch: "fix", HeadSHA: "abc"}))
		w.crash(t)
		if p := w.task(t, c.Task.ID).Published; p == nil || p.Branch != "fix" || p.Done {
			t.Fatalf("intent: %+v", p)
		}
		must(t, w.Publish(w.ctx, c.Held(), task.Published{Branch: "fix", HeadSHA: "abc", Pushed: true, Done: true, PR: chat.Ref{ID: "7"}}))
		if p := w.task(t, c.Task.ID).Published; p.PR.ID != "7" || !p.Done {
			t.Fatalf("outcome: %+v", p)
		}
	},
	"TheInboxIsEmptiedByItsWorkerOnly": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		other := w.claimed(t, "2")
		must(t, w.Steer(w.ctx, flow.Steering{EventKey: "r1", TaskID: c.Task.ID, Text: "one"}))
		must(t, w.Steer(w.ctx, flow.Steering{EventKey: "r2", TaskID: c.Task.ID, Text: "two"}))
		items, err := w.Inbox(w.ctx, c.Task.ID)
		must(t, err)
		must(t, w.Consumed(w.ctx, other.Held(), []int64{items[0].ID}))
		if left, _ := w.Inbox(w.ctx, c.Task.ID); len(left) != 2 {
			t.Fatalf("another task emptied the inbox: %+v", left)
		}
		must(t, w.Consumed(w.ctx, c.Held(), []int64{items[0].ID}))
		if left, _ := w.Inbox(w.ctx, c.Task.ID); len(left) != 1 || left[0].Text != "two" {
			t.Fatalf("left: %+v", left)
		}
	},
	"TheSweepFindsTheTaskOfADeadWorker": func(t *testing.T, w *world) {
		tk := w.opened(t, "1")
		w.parked(t, "2", 1)
		ran := make(chan int, 10)
		w.work(t, "host-b", 1, func(id string) error {
			c, err := w.Claim(w.ctx, id, "host-b", over) // and the worker dies
			if err == nil && id != tk.ID {
				t.Errorf("task %s ran", id)
			}
			ran <- c.Task.Attempts
			return err
		})
		for want := 1; want <= 3; want++ {
			if got := receive(t, ran, "an attempt"); got != want {
				t.Fatalf("attempt %d, want %d", got, want)
			}
			if want == 3 {
				return
			}
			woken, err := w.Sweep(w.ctx, time.Now())
			must(t, err)
			if !slices.Equal(woken, []string{tk.ID}) {
				t.Fatalf("the sweep woke %v", woken)
			}
		}
	},
	"TheSweepLeavesALiveLeaseAndAWaitingJobAlone": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		w.opened(t, "2")
		if woken, err := w.Sweep(w.ctx, time.Now()); err != nil || len(woken) != 0 {
			t.Fatalf("the sweep woke %v: %v", woken, err)
		}
		if _, err := w.Sweep(w.ctx, c.Task.LeaseUntil.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
	},
}

// wantFenced tries every write that a worker can do.
func wantFenced(t *testing.T, w *world, when string, c flow.Claim) {
	t.Helper()
	before := w.task(t, c.Task.ID)
	posts := []flow.NewPost{notice(c.Task.ID, newID("stale"), c.Task.Place, "from beyond")}
	_, renewErr := w.Renew(w.ctx, c.Held(), long)
	log := w.Transcript(c.Task.ID, c.Task.SessionID, c.Task.Fence)
	for name, err := range map[string]error{
		"renew":   renewErr,
		"publish": w.Publish(w.ctx, c.Held(), task.Published{Branch: "stale"}),
		"park":    w.Park(w.ctx, flow.Parking{Held: c.Held(), Asks: []approval.Ask{newAsk(c.Task.ID)}, Posts: posts}),
		"yield":   w.Yield(w.ctx, c.Held(), flow.Progress{}),
		"finish":  w.Finish(w.ctx, flow.Finishing{Held: c.Held(), State: task.Failed, Posts: posts}),
		"consume": w.Consumed(w.ctx, c.Held(), []int64{1}),
		"append":  log.Append(w.ctx, session.Entry{Kind: session.KindNote, Name: "stale"}),
	} {
		if err == nil {
			t.Errorf("%s: %s went through", when, name)
			continue
		}
		wantErr(t, err, flow.ErrFenced)
	}
	after := w.task(t, c.Task.ID)
	entries, err := log.Entries(w.ctx, 0)
	must(t, err)
	all, err := w.Posts(w.ctx, c.Task.ID)
	must(t, err)
	if after.State != before.State || after.Fence != before.Fence || after.Published != nil || len(entries) != 0 || len(all) != 1 {
		t.Fatalf("%s: a stale worker left traces: %+v, %d entries, %d posts", when, after, len(entries), len(all))
	}
}
