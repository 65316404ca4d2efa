package storetest

import (
	"testing"
	"time"

	"reasonix/internal/approval"
	"reasonix/internal/chat"
	"reasonix/internal/flow"
)

var slackOnly = []string{"slack"}

// due takes what is due of slack, for an hour.
func (w *world) due(t *testing.T, hold time.Duration) []flow.Queued {
	t.Helper()
	due, err := w.Due(w.ctx, slackOnly, 10, hold)
	must(t, err)
	return due
}

func wantKeys(t *testing.T, due []flow.Queued, keys ...string) {
	t.Helper()
	var got []string
	for _, q := range due {
		got = append(got, q.Key)
	}
	if len(got) != len(keys) {
		t.Fatalf("due are %q, want %q", got, keys)
	}
	for i := range keys {
		if got[i] != keys[i] {
			t.Fatalf("due are %q, want %q", got, keys)
		}
	}
}

// say puts posts into the outbox, as a recorded event does.
func (w *world) say(t *testing.T, posts ...flow.NewPost) {
	t.Helper()
	must(t, w.Record(w.ctx, flow.Recording{EventKey: newID("evt"), Kind: chat.OutcomeInfo, Posts: posts}))
}

func post(key, thread string) flow.NewPost {
	return notice("", key, slackThread(thread), "text of "+key)
}

var outboxStories = map[string]func(*testing.T, *world){
	"TestInvariant07_APlaceGetsItsPostsInOrder": func(t *testing.T, w *world) {
		w.say(t, post("a1", "A"), post("a2", "A"), post("b1", "B"))
		w.say(t, post("a3", "A"))
		due := w.due(t, long)
		wantKeys(t, due, "a1", "b1")
		if due[0].Tries != 0 || due[0].Uncertain || due[0].Message.Text != "text of a1" || due[0].Place.Thread != "A" {
			t.Fatalf("taken: %+v", due[0])
		}
		wantKeys(t, w.due(t, long))
		must(t, w.Sent(w.ctx, "a1", chat.Ref{Connection: "slack", ID: "m1"}))
		wantKeys(t, w.due(t, long), "a2")
	},
	"TestInvariant07_AFailureHoldsUpItsPlaceAndNoOther": func(t *testing.T, w *world) {
		w.say(t, post("a1", "A"), post("a2", "A"), post("b1", "B"), post("b2", "B"))
		wantKeys(t, w.due(t, long), "a1", "b1")
		must(t, w.Delay(w.ctx, "a1", time.Now().Add(long), "429: slow down", false))
		must(t, w.Sent(w.ctx, "b1", chat.Ref{ID: "m"}))
		wantKeys(t, w.due(t, long), "b2")
		must(t, w.Delay(w.ctx, "a1", time.Now().Add(-time.Second), "try now", false))
		due := w.due(t, long)
		wantKeys(t, due, "a1")
		if due[0].Tries != 1 || due[0].Uncertain || due[0].Cause != "try now" {
			t.Fatalf("second try: %+v", due[0])
		}
	},
	"TestInvariant07_AKeyIsPostedOnce": func(t *testing.T, w *world) {
		w.say(t, post("a1", "A"))
		second := post("a1", "A")
		second.Message.Text = "another text"
		w.say(t, second)
		due := w.due(t, long)
		wantKeys(t, due, "a1")
		if due[0].Message.Text != "text of a1" {
			t.Fatalf("the second post replaced the first: %q", due[0].Message.Text)
		}
		must(t, w.Sent(w.ctx, "a1", chat.Ref{ID: "m1"}))
		w.say(t, second)
		wantKeys(t, w.due(t, long))
	},
	"TestInvariant07_ASenderThatDiedLeavesAnUncertainPost": func(t *testing.T, w *world) {
		w.say(t, post("a1", "A"))
		wantKeys(t, w.due(t, -time.Second), "a1") // taken, and the sender dies
		w.crash(t)
		due := w.due(t, long)
		wantKeys(t, due, "a1")
		if !due[0].Uncertain || due[0].Tries != 1 {
			t.Fatalf("taken again: %+v", due[0])
		}
		must(t, w.Delay(w.ctx, "a1", time.Now().Add(-time.Second), "not found on the platform", false))
		if due = w.due(t, long); due[0].Uncertain {
			t.Fatal("a post that was looked up and not found is still uncertain")
		}
		must(t, w.Delay(w.ctx, "a1", time.Now().Add(-time.Second), "timeout", true))
		if due = w.due(t, long); !due[0].Uncertain {
			t.Fatal("a post whose sending timed out is certain")
		}
	},
	"TestInvariant07_WhatCannotBePostedStaysVisible": func(t *testing.T, w *world) {
		tk := w.opened(t, "A")
		key := "ack:" + tk.ID
		edit := notice(tk.ID, "edit", tk.Place, "done")
		edit.Edits = key
		late := edit
		late.Key, late.Edits = "late edit", "edit"
		w.say(t, edit, late, notice(tk.ID, "next", tk.Place, "next"))
		wantKeys(t, w.due(t, long), key)
		must(t, w.Dead(w.ctx, key, "channel is archived"))
		posts, err := w.Posts(w.ctx, tk.ID)
		must(t, err)
		for i, want := range []string{"channel is archived", "the post that it edits was given up: channel is archived",
			"the post that it edits was given up: channel is archived"} {
			if posts[i].State != "dead" || posts[i].Cause != want {
				t.Fatalf("post %d: %s, %q", i, posts[i].State, posts[i].Cause)
			}
		}
		wantKeys(t, w.due(t, long), "next")
		orphan := notice(tk.ID, "orphan", tk.Place, "x")
		orphan.Edits = "never made"
		w.say(t, orphan)
		if posts, _ = w.Posts(w.ctx, tk.ID); posts[4].State != "dead" || posts[4].Cause == "" {
			t.Fatalf("an edit of nothing: %+v", posts[4])
		}
	},
	"AnEditWaitsForThePostItEdits": func(t *testing.T, w *world) {
		edit := post("edit", "B") // another place, so that order alone does not help
		edit.Edits = "card"
		w.say(t, post("card", "A"), edit)
		wantKeys(t, w.due(t, long), "card")
		must(t, w.Sent(w.ctx, "card", chat.Ref{Connection: "slack", Channel: "C1", ID: "m1"}))
		due := w.due(t, long)
		wantKeys(t, due, "edit")
		if due[0].EditRef == nil || due[0].EditRef.ID != "m1" {
			t.Fatalf("edit: %+v", due[0])
		}
	},
	"SomebodyElsesConnectionIsLeftAlone": func(t *testing.T, w *world) {
		other := post("g1", "7")
		other.Place.Connection = "github"
		w.say(t, other, post("s1", "A"))
		wantKeys(t, w.due(t, long), "s1")
		if none, err := w.Due(w.ctx, nil, 10, long); err != nil || len(none) != 0 {
			t.Fatalf("no connections: %v, %v", none, err)
		}
		got, err := w.Due(w.ctx, []string{"github", "slack"}, 10, long)
		must(t, err)
		wantKeys(t, got, "g1")
	},
	"NoMoreAreTakenThanAskedFor": func(t *testing.T, w *world) {
		w.say(t, post("a1", "A"), post("b1", "B"), post("c1", "C"))
		got, err := w.Due(w.ctx, slackOnly, 2, long)
		must(t, err)
		wantKeys(t, got, "a1", "b1")
	},
	"ManySendersNeverTakeTheSamePost": func(t *testing.T, w *world) {
		for i := range 40 {
			w.say(t, post(newID("p"), string(rune('a'+i))))
		}
		taken := make(chan []flow.Queued, 20)
		for range 20 {
			go func() {
				due, err := w.Due(w.ctx, slackOnly, 2, long)
				if err != nil {
					t.Error(err)
				}
				taken <- due
			}()
		}
		seen := map[string]bool{}
		for range 20 {
			for _, q := range receive(t, taken, "a taking") {
				if seen[q.Key] {
					t.Errorf("%s was taken twice", q.Key)
				}
				seen[q.Key] = true
			}
		}
		if len(seen) != 40 {
			t.Fatalf("%d of 40 were taken", len(seen))
		}
	},
	"TheOutboxIsWoken": func(t *testing.T, w *world) {
		drain := func() {
			for {
				select {
				case <-w.Woken():
				default:
					return
				}
			}
		}
		drain()
		w.say(t, post("a1", "A"), post("a2", "A"))
		receive(t, w.Woken(), "the signal for a new post")
		w.due(t, long)
		drain()
		must(t, w.Sent(w.ctx, "a1", chat.Ref{ID: "m1"}))
		receive(t, w.Woken(), "the signal for the next post of the place")
		w.due(t, long)
		drain()
		must(t, w.Delay(w.ctx, "a2", time.Now().Add(400*time.Millisecond), "slow down", false))
		receive(t, w.Woken(), "the signal for the delayed post")
		eventually(t, "the delayed post", func() bool { return len(w.due(t, long)) == 1 })
	},
	"ADelayedPostIsRememberedThroughACrash": func(t *testing.T, w *world) {
		w.say(t, post("a1", "A"))
		w.due(t, long)
		must(t, w.Delay(w.ctx, "a1", time.Now().Add(600*time.Millisecond), "slow down", false))
		w.crash(t)
		receive(t, w.Woken(), "the signal at the start")
		wantKeys(t, w.due(t, long))
		receive(t, w.Woken(), "the signal for the delayed post")
		eventually(t, "the delayed post", func() bool { return len(w.due(t, long)) == 1 })
	},
	"AnUnknownPostIsNamed": func(t *testing.T, w *world) {
		wantErr(t, w.Sent(w.ctx, "none", chat.Ref{}), flow.ErrUnknown)
		wantErr(t, w.Delay(w.ctx, "none", time.Now(), "", false), flow.ErrUnknown)
		wantErr(t, w.Dead(w.ctx, "none", ""), flow.ErrUnknown)
	},
	"ALateSenderCannotTakeBackWhatWasSent": func(t *testing.T, w *world) {
		tk := w.opened(t, "A")
		key := "ack:" + tk.ID
		w.due(t, long)
		must(t, w.Sent(w.ctx, key, chat.Ref{ID: "m1"}))
		must(t, w.Delay(w.ctx, key, time.Now().Add(-long), "timeout", true))
		must(t, w.Dead(w.ctx, key, "gone"))
		posts, err := w.Posts(w.ctx, tk.ID)
		must(t, err)
		if posts[0].State != "sent" || posts[0].Ref == nil || posts[0].Ref.ID != "m1" {
			t.Fatalf("post: %+v", posts[0])
		}
		wantKeys(t, w.due(t, long))
	},
	"ACardAndItsAskCommitTogether": func(t *testing.T, w *world) {
		c := w.claimed(t, "A")
		ask := newAsk(c.Task.ID)
		bad := flow.NewPost{Place: c.Task.Place} // no key
		err := w.Park(w.ctx, flow.Parking{Held: c.Held(), Asks: []approval.Ask{ask}, Posts: []flow.NewPost{bad}})
		if err == nil {
			t.Fatal("a post without a key was taken")
		}
		_, err = w.Ask(w.ctx, ask.ID)
		wantErr(t, err, flow.ErrUnknown)
	},
}
