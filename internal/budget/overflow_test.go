package budget

import (
	"errors"
	"math"
	"testing"

	"reasonix/internal/provider"
)

// A model server may report anything; no report may lower what was spent or turn the sum over, so that a limit is never reached.
func TestNoReportOfUsageOpensALimitAgain(t *testing.T) {
	for _, u := range []provider.Usage{
		{Input: math.MaxInt64, Output: math.MaxInt64}, {Input: math.MaxInt64}, {Input: -math.MaxInt64, Output: 2000}, {Input: 2000, Output: math.MinInt64},
	} {
		acc := NewAccount(Spent{Tokens: 500})
		m := NewMeter(MeterConfig{Ledger: acc, Limits: Limits{Tokens: 1000}, Price: Price{Input: 1, Output: 1}})
		if err := m.Reserve(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.Settle(t.Context(), u)
		if err := m.Reserve(t.Context()); !errors.Is(err, ErrExceeded) {
			t.Errorf("usage %+v: spent %+v, and another call is let through: %v", u, acc.Spent(), err)
		}
	}
	l := Limits{Tokens: 1, Steps: 1, Cost: 1, Time: 1}
	for range 200 {
		l = Raise(l, Spent(l))
		if l.Tokens <= 0 || l.Steps <= 0 || l.Cost <= 0 || l.Time <= 0 {
			t.Fatalf("a raise turned over: %+v", l)
		}
	}
}
