package budget

import (
	"testing"
	"time"
)

func TestLimitsAreReadAsAPersonTypesThem(t *testing.T) {
	for text, want := range map[string]Limits{
		`tokens=200_000`: {Tokens: 200_000},
		`tokens = 5 cost="5 USD" steps=3 time=1h30m`: {Tokens: 5, Cost: 5_000_000, Steps: 3, Time: 90 * time.Minute},
		`cost=0.50 EUR, time=90s`:                    {Cost: 500_000, Time: 90 * time.Second},
		` off `:                                      {},
	} {
		if got, err := ParseLimits(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "200000", "tokens", "tokens=", "tokens=many", "tokens=-1", "cost=5", "time=5", "steps=1 and more", "money=5"} {
		if got, err := ParseLimits(text); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}

func TestOnlyReachedLimitsAreRaised(t *testing.T) {
	got := Raise(Limits{Tokens: 100, Steps: 10, Time: time.Hour}, Spent{Tokens: 150, Steps: 4, Time: time.Hour})
	if want := (Limits{Tokens: 250, Steps: 10, Time: 2 * time.Hour}); got != want {
		t.Errorf("raised to %+v, want %+v", got, want)
	}
}

func TestWordsShowLimitsWithWhatIsSpent(t *testing.T) {
	got := Words(Limits{Tokens: 2000, Cost: 5_000_000}, Spent{Tokens: 1500, Cost: 250_000}, "USD")
	if want := "1,500 of 2,000 tokens, 0.25 USD of 5.00 USD"; got != want {
		t.Errorf("%q", got)
	}
	if got := Words(Limits{}, Spent{Tokens: 7, Steps: 1}, ""); got != "no limit; 7 tokens in 1 model calls so far" {
		t.Errorf("%q", got)
	}
}
