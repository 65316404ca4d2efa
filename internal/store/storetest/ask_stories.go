package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reasonix/internal/approval"
	"reasonix/internal/flow"
	"reasonix/internal/task"
)

var askStories = map[string]func(*testing.T, *world){
	"ParkingStoresTheQuestionWholeAndFreesTheLease": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		ask := newAsk(c.Task.ID)
		p := flow.Parking{Held: c.Held(), Reason: approval.KindApproval, Asks: []approval.Ask{ask},
			Posts: []flow.NewPost{{Key: "card:" + ask.ID, TaskID: c.Task.ID, AskID: ask.ID, Place: c.Task.Place}}}
		p.Spent.Tokens, p.Spent.Steps, p.Usage.Input = 120, 3, 100
		must(t, w.Park(w.ctx, p))
		w.crash(t)
		tk := w.task(t, c.Task.ID)
		wantState(t, tk, task.Parked)
		if tk.Reason != approval.KindApproval || tk.Host != "" || !tk.LeaseUntil.IsZero() || tk.Spent.Tokens != 120 || tk.Usage.Input != 100 {
			t.Fatalf("parked task: %+v", tk)
		}
		got, err := w.Ask(w.ctx, ask.ID)
		must(t, err)
		if got.State != approval.StateOpen || got.Blocks[0].Text != "rm -rf build" || got.Digest != "d1" || got.Created.IsZero() {
			t.Fatalf("ask: %+v", got)
		}
		_, err = w.Claim(w.ctx, tk.ID, "host-b", long)
		wantErr(t, err, flow.ErrState)
	},
	"AParkingThatAsksNobodyIsRefused": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		if err := w.Park(w.ctx, flow.Parking{Held: c.Held(), Reason: approval.KindBlocked}); err == nil {
			t.Fatal("a task was parked that nobody could wake")
		}
		wantState(t, w.task(t, c.Task.ID), task.Running)
	},
	"TestInvariant04_AnIDOfAnAskIsNeverUsedTwice": func(t *testing.T, w *world) {
		_, asks := w.parked(t, "1", 1)
		c := w.claimed(t, "2")
		stolen := newAsk(c.Task.ID)
		stolen.ID = asks[0].ID
		fresh := newAsk(c.Task.ID)
		err := w.Park(w.ctx, flow.Parking{Held: c.Held(), Reason: approval.KindApproval, Asks: []approval.Ask{fresh, stolen}})
		if err == nil || !strings.Contains(err.Error(), stolen.ID) {
			t.Fatalf("reused id: %v", err)
		}
		_, err = w.Ask(w.ctx, fresh.ID)
		wantErr(t, err, flow.ErrUnknown) // nothing half parked
		wantState(t, w.task(t, c.Task.ID), task.Running)
	},
	"TestInvariant04_FiftyPressesAtOnceAcceptOne": func(t *testing.T, w *world) {
		tk, asks := w.parked(t, "1", 1)
		var accepted, late atomic.Int32
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				j, err := w.Decide(w.ctx, fmt.Sprint("press-", i), asks[0].ID, answerBy(fmt.Sprint("lead-", i), "allow"))
				switch {
				case err != nil:
					t.Error(err)
				case j.Verdict.Kind == approval.Accepted:
					accepted.Add(1)
				case j.Verdict.Kind == approval.TooLate:
					late.Add(1)
				}
			})
		}
		wg.Wait()
		if accepted.Load() != 1 || late.Load() != 49 {
			t.Fatalf("%d accepted and %d too late, want 1 and 49", accepted.Load(), late.Load())
		}
		wantState(t, w.task(t, tk.ID), task.Queued)
	},
	"TestInvariant04_APressByTheWrongPersonLeavesTheAskOpen": func(t *testing.T, w *world) {
		tk, asks := w.parked(t, "1", 1)
		no := func(a approval.Ask, _ task.Task) flow.Judged {
			return flow.Judged{Verdict: approval.Verdict{Kind: approval.NotAllowed, Ask: a, Reason: "only lead may"},
				Posts: []flow.NewPost{notice(tk.ID, "told:1", tk.Place, "only lead may")}}
		}
		j, err := w.Decide(w.ctx, "press-1", asks[0].ID, no)
		must(t, err)
		if j.Verdict.Kind != approval.NotAllowed {
			t.Fatalf("verdict %+v", j.Verdict)
		}
		if a, _ := w.Ask(w.ctx, asks[0].ID); a.State != approval.StateOpen {
			t.Fatalf("ask is %s", a.State)
		}
		wantState(t, w.task(t, tk.ID), task.Parked)
		if n, _ := w.Counted(w.ctx); n["refused: refused"] != 1 {
			t.Fatalf("counted %v", n)
		}
	},
	"TestInvariant04_ADecidedAskIsNeverDecidedAgain": func(t *testing.T, w *world) {
		_, asks := w.parked(t, "1", 1)
		_, err := w.Decide(w.ctx, "press-1", asks[0].ID, answerBy("lead", "allow"))
		must(t, err)
		stubborn := func(a approval.Ask, _ task.Task) flow.Judged { // a judge with a bug
			a.State, a.Answer = approval.StateAnswered, &approval.Answer{Choice: "deny", Person: "mallory"}
			return flow.Judged{Verdict: approval.Verdict{Kind: approval.Accepted, Ask: a}}
		}
		if _, err := w.Decide(w.ctx, "press-2", asks[0].ID, stubborn); err == nil {
			t.Fatal("a second answer was accepted")
		}
		if a, _ := w.Ask(w.ctx, asks[0].ID); a.Answer.Person != "lead" {
			t.Fatalf("answered by %s", a.Answer.Person)
		}
	},
	"TheLastAnswerContinuesTheTask": func(t *testing.T, w *world) {
		tk, asks := w.parked(t, "1", 2)
		_, err := w.Decide(w.ctx, "press-1", asks[0].ID, answerBy("lead", "allow"))
		must(t, err)
		wantState(t, w.task(t, tk.ID), task.Parked)
		_, err = w.Decide(w.ctx, "press-2", asks[1].ID, answerBy("lead", "deny"))
		must(t, err)
		wantState(t, w.task(t, tk.ID), task.Queued)
		c, err := w.Claim(w.ctx, tk.ID, "host-b", long)
		must(t, err)
		if len(c.Asks) != 2 || c.Asks[0].Answer.Choice != "allow" || c.Asks[1].Answer.Choice != "deny" || c.Task.Attempts != 2 {
			t.Fatalf("claim: %+v", c)
		}
	},
	"ThePressThatComesTwiceIsToldTheFirstVerdict": func(t *testing.T, w *world) {
		_, asks := w.parked(t, "1", 2)
		vote := func(a approval.Ask, _ task.Task) flow.Judged {
			a.Votes = append(a.Votes, approval.Vote{Person: "lead", Choice: "allow"})
			return flow.Judged{Verdict: approval.Verdict{Kind: approval.Counted, Ask: a, Reason: "one more"}}
		}
		_, err := w.Decide(w.ctx, "press-1", asks[0].ID, vote)
		must(t, err)
		_, err = w.Decide(w.ctx, "press-2", asks[0].ID, answerBy("boss", "allow"))
		must(t, err)
		w.crash(t)
		j, err := w.Decide(w.ctx, "press-1", asks[0].ID, vote)
		wantErr(t, err, flow.ErrDuplicate)
		if v := j.Verdict; v.Kind != approval.Counted || v.Reason != "one more" || len(v.Ask.Votes) != 1 || v.Ask.State != approval.StateOpen {
			t.Fatalf("told %+v", v)
		}
	},
	"AVerdictCanChangeTheTaskAndAddARule": func(t *testing.T, w *world) {
		tk, asks := w.parked(t, "1", 1)
		raise := func(a approval.Ask, now task.Task) flow.Judged {
			j := answerBy("lead", "raise")(a, now)
			j.Alter = func(t *task.Task) { t.Spec.Limits.Tokens = 500; t.State = task.Failed }
			j.Grants = []flow.Grant{{Route: "fix", Rule: "Bash(go test:*)", By: "lead", AskID: a.ID}, {TaskID: now.ID, Rule: "Edit", By: "lead"}}
			return j
		}
		_, err := w.Decide(w.ctx, "press-1", asks[0].ID, raise)
		must(t, err)
		got := w.task(t, tk.ID)
		wantState(t, got, task.Queued)
		if got.Spec.Limits.Tokens != 500 {
			t.Fatalf("limit %d", got.Spec.Limits.Tokens)
		}
		grants, err := w.Grants(w.ctx, "fix", tk.ID)
		must(t, err)
		if len(grants) != 2 || grants[0].Rule != "Bash(go test:*)" || grants[1].TaskID != tk.ID {
			t.Fatalf("grants: %+v", grants)
		}
		must(t, w.RevokeGrant(w.ctx, grants[0].ID))
		wantErr(t, w.RevokeGrant(w.ctx, grants[0].ID), flow.ErrUnknown)
		if left, _ := w.Grants(w.ctx, "fix", ""); len(left) != 0 {
			t.Fatalf("left: %+v", left)
		}
	},
	"AVerdictCanEndTheTask": func(t *testing.T, w *world) {
		tk, asks := w.parked(t, "1", 2)
		_, err := w.Decide(w.ctx, "press-1", asks[0].ID, func(a approval.Ask, now task.Task) flow.Judged {
			j := answerBy("lead", "cancel")(a, now)
			j.Cancel, j.Result = true, "lead ended it"
			return j
		})
		must(t, err)
		got := w.task(t, tk.ID)
		wantState(t, got, task.Cancelled)
		if got.Result != "lead ended it" {
			t.Fatalf("result %q", got.Result)
		}
		if a, _ := w.Ask(w.ctx, asks[1].ID); a.State != approval.StateCancelled {
			t.Fatalf("the other ask is %s", a.State)
		}
	},
	"TimeRemindsThenExpires": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		ask := newAsk(c.Task.ID)
		ask.Created = time.Now().UTC()
		ask.Expires = ask.Created.Add(24 * time.Hour)
		must(t, w.Park(w.ctx, flow.Parking{Held: c.Held(), Reason: approval.KindApproval, Asks: []approval.Ask{ask}}))
		wantDue := func(at time.Duration, n int) {
			t.Helper()
			if due, err := w.DueAsks(w.ctx, ask.Created.Add(at)); err != nil || len(due) != n {
				t.Fatalf("after %s %d asks are due (%v), want %d", at, len(due), err, n)
			}
		}
		wantDue(23*time.Hour, 0)
		wantDue(24*time.Hour, 1)
		_, err := w.Expire(w.ctx, ask.ID, func(a approval.Ask, _ task.Task) flow.Judged {
			a.Reminded++
			a.Expires = a.Expires.Add(24 * time.Hour)
			return flow.Judged{Verdict: approval.Verdict{Ask: a}}
		})
		must(t, err)
		wantState(t, w.task(t, c.Task.ID), task.Parked)
		wantDue(47*time.Hour, 0)
		wantDue(48*time.Hour, 1)
		expire := func(a approval.Ask, _ task.Task) flow.Judged {
			a.State = approval.StateExpired
			return flow.Judged{Verdict: approval.Verdict{Ask: a}}
		}
		_, err = w.Expire(w.ctx, ask.ID, expire)
		must(t, err)
		wantState(t, w.task(t, c.Task.ID), task.Queued)
		wantDue(49*time.Hour, 0)
		_, err = w.Expire(w.ctx, ask.ID, func(approval.Ask, task.Task) flow.Judged {
			t.Error("an ask that is not open was judged")
			return flow.Judged{}
		})
		must(t, err)
	},
	"AJudgeWhoFindsItTooEarlyIsAskedAgainAtTheExpiry": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		ask := newAsk(c.Task.ID)
		ask.Created, ask.Expires = time.Now(), time.Now().Add(time.Hour)
		must(t, w.Park(w.ctx, flow.Parking{Held: c.Held(), Reason: approval.KindApproval, Asks: []approval.Ask{ask}}))
		_, err := w.Expire(w.ctx, ask.ID, func(a approval.Ask, _ task.Task) flow.Judged {
			return flow.Judged{Verdict: approval.Verdict{Ask: a}}
		})
		must(t, err)
		if due, err := w.DueAsks(w.ctx, ask.Expires); err != nil || len(due) != 1 {
			t.Fatalf("at its expiry %d asks are due (%v)", len(due), err)
		}
	},
	"AnAskThatStaysOpenPastItsTimeDoesNotRemindAtEveryTick": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		ask := newAsk(c.Task.ID)
		ask.Created, ask.Expires = time.Now().Add(-4*time.Hour), time.Now().Add(-time.Hour)
		must(t, w.Park(w.ctx, flow.Parking{Held: c.Held(), Reason: approval.KindApproval, Asks: []approval.Ask{ask}}))
		_, err := w.Expire(w.ctx, ask.ID, func(a approval.Ask, _ task.Task) flow.Judged {
			a.Reminded++
			return flow.Judged{Verdict: approval.Verdict{Ask: a}}
		})
		must(t, err)
		for after, want := range map[time.Duration]int{0: 0, 2 * time.Hour: 0, 3*time.Hour + time.Minute: 1} {
			if due, err := w.DueAsks(w.ctx, time.Now().Add(after)); err != nil || len(due) != want {
				t.Fatalf("after %s %d asks are due (%v), want %d", after, len(due), err, want)
			}
		}
	},
	"ExpiryCanEndTheTask": func(t *testing.T, w *world) {
		tk, asks := w.parked(t, "1", 1)
		_, err := w.Expire(w.ctx, asks[0].ID, func(a approval.Ask, _ task.Task) flow.Judged {
			a.State = approval.StateExpired
			return flow.Judged{Verdict: approval.Verdict{Ask: a}, Cancel: true, Result: "nobody answered"}
		})
		must(t, err)
		wantState(t, w.task(t, tk.ID), task.Expired)
	},
	"ANewAskStandsInThePlaceOfTheOldOne": func(t *testing.T, w *world) {
		tk, asks := w.parked(t, "1", 1)
		_, err := w.Decide(w.ctx, "press-1", asks[0].ID, answerBy("lead", "allow"))
		must(t, err)
		c, err := w.Claim(w.ctx, tk.ID, "host-a", long)
		must(t, err)
		again := newAsk(tk.ID)
		again.Supersedes = asks[0].ID
		must(t, w.Park(w.ctx, flow.Parking{Held: c.Held(), Reason: approval.KindApproval, Asks: []approval.Ask{again}, Supersedes: []string{asks[0].ID}}))
		if a, _ := w.Ask(w.ctx, again.ID); a.State != approval.StateOpen || a.Supersedes != asks[0].ID {
			t.Fatalf("new ask: %+v", a)
		}
		if a, _ := w.Ask(w.ctx, asks[0].ID); a.State != approval.StateSuperseded || a.Answer == nil {
			t.Fatalf("old ask: %+v", a)
		}
		j, err := w.Decide(w.ctx, "press-2", asks[0].ID, answerBy("boss", "allow"))
		must(t, err)
		if j.Verdict.Kind != approval.TooLate {
			t.Fatalf("a press on the old card: %+v", j.Verdict)
		}
		wantState(t, w.task(t, tk.ID), task.Parked)
	},
	"AJudgeThatPanicsHoldsUpNobody": func(t *testing.T, w *world) {
		_, asks := w.parked(t, "1", 1)
		func() {
			defer func() { _ = recover() }()
			_, _ = w.Decide(w.ctx, "press-1", asks[0].ID, func(approval.Ask, task.Task) flow.Judged { panic("bug") })
		}()
		j, err := w.Decide(w.ctx, "press-1", asks[0].ID, answerBy("lead", "allow"))
		must(t, err)
		if j.Verdict.Kind != approval.Accepted {
			t.Fatalf("verdict: %+v", j.Verdict)
		}
	},
	"AnUnknownAskIsNamed": func(t *testing.T, w *world) {
		_, err := w.Decide(w.ctx, "press-1", "ask_none", answerBy("lead", "allow"))
		wantErr(t, err, flow.ErrUnknown)
		_, err = w.Expire(w.ctx, "ask_none", answerBy("lead", "allow"))
		if !errors.Is(err, flow.ErrUnknown) || !strings.Contains(err.Error(), "ask_none") {
			t.Fatal(err)
		}
	},
}
