package budget

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reasonix/internal/provider"
)

func TestCheckNamesTheLimitInWords(t *testing.T) {
	for name, c := range map[string]struct {
		l    Limits
		s    Spent
		want string
	}{
		"no limits":    {Limits{}, Spent{math.MaxInt64, math.MaxInt64, 1 << 30, time.Hour}, ""},
		"below":        {Limits{Tokens: 10, Cost: 10, Steps: 10, Time: time.Hour}, Spent{9, 9, 9, time.Minute}, ""},
		"tokens":       {Limits{Tokens: 2_000_000}, Spent{Tokens: 2_000_001}, "token limit reached: 2,000,001 of 2,000,000 tokens"},
		"cost":         {Limits{Cost: 5_000_000}, Spent{Cost: 5_020_000}, "cost limit reached: 5.02 of 5.00"},
		"steps":        {Limits{Steps: 1000}, Spent{Steps: 1000}, "step limit reached: 1,000 of 1,000 model calls"},
		"time":         {Limits{Time: 2 * time.Hour}, Spent{Time: 2*time.Hour + time.Millisecond}, "time limit reached: 2h0m0s of 2h0m0s"},
		"first of two": {Limits{Tokens: 1, Time: 1}, Spent{Tokens: 1, Time: 1}, "token limit reached: 1 of 1 tokens"},
	} {
		got, ok := Check(c.l, c.s)
		if got != c.want || ok != (c.want == "") {
			t.Errorf("%s: %q %v", name, got, ok)
		}
	}
}

func TestCostCountsTheCachedPartAtItsPriceAndRoundsUp(t *testing.T) {
	p := Price{Input: 270_000, Output: 1_100_000, CacheRead: 70_000, Currency: "USD"}
	for name, c := range map[string]struct {
		p    Price
		u    provider.Usage
		want int64
	}{
		"a million each":         {p, provider.Usage{Input: 1_000_000, Output: 1_000_000}, 1_370_000},
		"half cached":            {p, provider.Usage{Input: 1_000_000, CacheRead: 500_000}, 170_000},
		"one token":              {p, provider.Usage{Input: 1}, 1},
		"nothing":                {p, provider.Usage{}, 0},
		"no price for the cache": {Price{Input: 1_000_000}, provider.Usage{Input: 10, CacheRead: 10}, 10},
		"more cached than input": {p, provider.Usage{Input: 1_000_000, CacheRead: 9_000_000}, 70_000},
		"beyond an int64":        {Price{Input: math.MaxInt64}, provider.Usage{Input: math.MaxInt64}, math.MaxInt64},
		"negative usage":         {p, provider.Usage{Input: -5, Output: -5}, 0},
	} {
		if got := c.p.Cost(c.u); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestMoneyIsReadAndWritten(t *testing.T) {
	for text, want := range map[string]int64{"5 USD": 5_000_000, " 0.50 EUR ": 500_000, "0.000001 CNY": 1, "12\tUSD": 12_000_000, "0 USD": 0} {
		got, currency, err := ParseMoney(text)
		if err != nil || got != want || len(currency) != 3 {
			t.Errorf("%q: %d %s %v", text, got, currency, err)
		}
	}
	for _, text := range []string{"", "5", "USD", "-5 USD", "5USD", "5 usd", "5 dollars", "5,00 EUR", "1.0000001 USD", "1e3 USD", ".5 USD", "9999999999999 USD", "5 USD USD"} {
		if _, _, err := ParseMoney(text); err == nil || !strings.Contains(err.Error(), "5 USD") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for amount, want := range map[int64]string{5_000_000: "5.00 USD", 1: "0.000001 USD", -1_500_000: "-1.50 USD", 0: "0.00 USD", 1_234_500: "1.2345 USD"} {
		if got := FormatMoney(amount, "USD"); got != want {
			t.Errorf("%d: %s", amount, got)
		}
	}
}

func TestAMeterStopsAtTheLimitAndNamesIt(t *testing.T) {
	account := NewAccount(Spent{Tokens: 500})
	m := NewMeter(MeterConfig{Ledger: account, Limits: Limits{Tokens: 1000}, Estimate: Spent{Tokens: 100_000}})
	ctx := t.Context()
	for range 2 {
		if err := m.Reserve(ctx); err != nil {
			t.Fatalf("a call alone may use what is left, even if it is less than the estimate: %v", err)
		}
		m.Settle(ctx, provider.Usage{Input: 200, Output: 50})
	}
	err := m.Reserve(ctx)
	if !errors.Is(err, ErrExceeded) || !strings.Contains(err.Error(), "1,000 of 1,000 tokens") {
		t.Fatalf("got %v", err)
	}
	if got := m.Spent(); got.Tokens != 500 || got.Steps != 2 {
		t.Errorf("this attempt spent %+v", got)
	}
	m.Settle(ctx, provider.Usage{Input: 1 << 40}) // without a Reserve: nothing to settle
	if account.Spent().Tokens != 1000 {
		t.Errorf("all attempts spent %+v", account.Spent())
	}
}

func TestRunningTimeCountsOnceAcrossCalls(t *testing.T) {
	now := time.Unix(0, 0)
	m := NewMeter(MeterConfig{Limits: Limits{Time: 10 * time.Second}, Now: func() time.Time { return now }})
	ctx := t.Context()
	for range 4 {
		if err := m.Reserve(ctx); err != nil {
			t.Fatal(err)
		}
		now = now.Add(2 * time.Second)
		m.Settle(ctx, provider.Usage{})
	}
	now = now.Add(2 * time.Second) // tools run between the calls
	if err := m.Reserve(ctx); !errors.Is(err, ErrExceeded) || !strings.Contains(err.Error(), "10s of 10s") {
		t.Fatalf("got %v", err)
	}
	if got := m.Spent().Time; got != 10*time.Second {
		t.Errorf("counted %s", got)
	}
}

type brokenLedger struct{ Account }

var errDisk = errors.New("disk full")

func (*brokenLedger) Settle(context.Context, Spent, Spent) error { return errDisk }

func TestNothingRunsUncounted(t *testing.T) {
	m := NewMeter(MeterConfig{Ledger: &brokenLedger{}})
	if err := m.Reserve(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Settle(t.Context(), provider.Usage{Input: 1})
	if err := m.Reserve(t.Context()); !errors.Is(err, errDisk) {
		t.Errorf("after a usage that could not be stored: %v", err)
	}
}

// Calls that share limits, in any interleaving: as long as estimates hold, they never pass the limit; if an estimate is too low, what
// passes is at most what the running calls used beyond their estimates, and nothing new starts.
func TestSharedLimitsAreNotOvershotTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		limit := rapid.Int64Range(1, 2000).Draw(t, "limit")
		const estimate = 100
		account := NewAccount(Spent{})
		var meters []*Meter
		for range rapid.IntRange(1, 6).Draw(t, "tasks") {
			meters = append(meters, NewMeter(MeterConfig{Ledger: account, Limits: Limits{Tokens: limit}, Estimate: Spent{Tokens: estimate}}))
		}
		running := make([]int, len(meters))
		total := 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			i := rapid.IntRange(0, len(meters)-1).Draw(t, "task")
			if running[i] > 0 && rapid.Bool().Draw(t, "settle") {
				meters[i].Settle(ctx, provider.Usage{Input: rapid.Int64Range(0, estimate).Draw(t, "used")})
				running[i]--
				total--
				continue
			}
			if err := meters[i].Reserve(ctx); err == nil {
				running[i]++
				total++
			} else if !errors.Is(err, ErrExceeded) {
				t.Fatal(err)
			}
			if worst := account.Spent().Tokens + int64(total)*estimate; total > 1 && worst > limit {
				t.Fatalf("%d calls run that may use %d of %d", total, worst, limit)
			}
		}
		if over := account.Spent().Tokens - limit; over > estimate {
			t.Fatalf("the limit was passed by %d, more than one call alone may", over)
		}
	})
}

func TestConcurrentTasksShareOneAccount(t *testing.T) {
	account := NewAccount(Spent{})
	var wg sync.WaitGroup
	for range 8 {
		m := NewMeter(MeterConfig{Ledger: account, Limits: Limits{Steps: 50}})
		wg.Go(func() {
			for m.Reserve(t.Context()) == nil {
				m.Settle(t.Context(), provider.Usage{Input: 1})
			}
		})
	}
	wg.Wait()
	if got := account.Spent().Steps; got < 43 || got > 50 {
		t.Errorf("%d calls of 50 were made", got)
	}
}
