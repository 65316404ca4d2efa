package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reasonix/internal/approval"
	"reasonix/internal/budget"
	"reasonix/internal/flow"
	"reasonix/internal/task"
)

const today = "2026-03-01"

func account(name string, tokens int64) flow.DayAccount {
	return flow.DayAccount{Name: name, Limits: budget.Limits{Tokens: tokens}}
}

func (w *world) hold(l flow.Ledger, holder string, tokens int64, accounts ...flow.DayAccount) error {
	return l.HoldDay(w.ctx, today, accounts, holder, budget.Spent{Tokens: tokens, Steps: 1}, time.Now().Add(time.Hour))
}

func (w *world) spend(t *testing.T, holder string, tokens int64, accounts ...string) {
	t.Helper()
	must(t, w.SettleDay(w.ctx, today, accounts, holder, budget.Spent{Tokens: tokens, Steps: 1}))
}

func (w *world) day(t *testing.T, name string) flow.DaySpent {
	t.Helper()
	days, err := w.Days(w.ctx, today)
	must(t, err)
	for _, d := range days {
		if d.Account == name {
			return d
		}
	}
	return flow.DaySpent{}
}

func wantFull(t *testing.T, err error, account string) {
	t.Helper()
	var full *flow.DayFull
	if !errors.As(err, &full) || full.Account != account || !errors.Is(err, budget.ErrExceeded) {
		t.Fatalf("got %v, want that %s is full", err, account)
	}
}

var dayStories = map[string]func(*testing.T, *world){
	"AHoldIsInAllAccountsOrInNone": func(t *testing.T, w *world) {
		bot, route := account("bot", 1000), account("route:fix", 100)
		must(t, w.hold(w, "a", 80, bot, route))
		wantFull(t, w.hold(w, "b", 30, bot, route), "route:fix")
		if got := w.day(t, "bot").Held.Tokens; got != 80 {
			t.Errorf("the refused hold left %d in the first account", got-80)
		}
		must(t, w.hold(w, "b", 20, bot, route))
		w.spend(t, "a", 60, "bot", "route:fix")
		if d := w.day(t, "route:fix"); d.Spent.Tokens != 60 || d.Spent.Steps != 1 || d.Held.Tokens != 20 {
			t.Errorf("%+v", d)
		}
	},
	"OneAloneUsesUpWhatIsLeft": func(t *testing.T, w *world) {
		bot := account("bot", 100)
		must(t, w.hold(w, "a", 500, bot))
		must(t, w.hold(w, "a", 500, bot)) // after a crash: its own hold does not stand in its way
		w.spend(t, "a", 100, "bot")
		wantFull(t, w.hold(w, "a", 1, bot), "bot")
	},
	"ASilentWorkersHoldEnds": func(t *testing.T, w *world) {
		bot := account("bot", 100)
		must(t, w.HoldDay(w.ctx, today, []flow.DayAccount{bot}, "dead", budget.Spent{Tokens: 90}, time.Now().Add(-time.Second)))
		must(t, w.hold(w, "a", 50, bot))
		if got := w.day(t, "bot").Held.Tokens; got != 50 {
			t.Errorf("held %d", got)
		}
	},
	"AnotherDayIsAnotherBudget": func(t *testing.T, w *world) {
		bot := account("bot", 100)
		must(t, w.hold(w, "a", 10, bot))
		w.spend(t, "a", 100, "bot")
		must(t, w.HoldDay(w.ctx, "2026-03-02", []flow.DayAccount{bot}, "a", budget.Spent{Tokens: 10}, time.Now().Add(time.Hour)))
	},
	"ARaiseIsKeptWithTheAnswerAndNeverLowers": func(t *testing.T, w *world) {
		bot := account("bot", 100)
		must(t, w.hold(w, "a", 10, bot))
		w.spend(t, "a", 100, "bot")
		for i, raised := range []int64{200, 150} {
			_, asks := w.parked(t, fmt.Sprint("raise-", i), 1)
			_, err := w.Decide(w.ctx, fmt.Sprint("press-", i), asks[0].ID, func(a approval.Ask, t task.Task) flow.Judged {
				j := answerBy("lead", "raise")(a, t)
				j.Raises = []flow.DayRaise{{Account: "bot", Day: today, Limits: budget.Limits{Tokens: raised}}}
				return j
			})
			must(t, err)
		}
		w.crash(t)
		if got := w.day(t, "bot").Raised.Tokens; got != 200 {
			t.Fatalf("raised to %d", got)
		}
		must(t, w.hold(w, "a", 10, bot))
	},
	"ConcurrentTasksNeverOvershootTogether": func(t *testing.T, w *world) {
		const limit, call = 1000, 100
		bot := account("bot", limit)
		second := w.open()
		t.Cleanup(func() { second.Close() })
		var ran atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			ledger := []flow.Ledger{w.Ledger, second}[i%2]
			wg.Go(func() {
				holder := fmt.Sprint("task-", i)
				for range 5 {
					if w.hold(ledger, holder, call, bot) != nil {
						continue
					}
					ran.Add(1)
					if err := ledger.SettleDay(w.ctx, today, []string{"bot"}, holder, budget.Spent{Tokens: call, Steps: 1}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if got := w.day(t, "bot"); got.Spent.Tokens > limit || got.Spent.Tokens != ran.Load()*call || got.Held.Tokens != 0 {
			t.Fatalf("%+v after %d calls", got, ran.Load())
		}
	},
}
