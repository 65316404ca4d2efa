package flow

import (
	"context"
	"fmt"
	"time"

	"reasonix/internal/budget"
)

// Purse counts what all tasks of all hosts spend together on one day (UTC, "2006-01-02").
type Purse interface {
	// HoldDay sets h aside in every account for the holder's next model call, or in none. It returns a *DayFull when an account has reached its
	// limit, or would pass it together with what other holders have set aside; alone, a call is let through while anything is left. A holder
	// has one hold per account, a new one replaces it, and after until it does not count any more.
	HoldDay(ctx context.Context, day string, accounts []DayAccount, holder string, h budget.Spent, until time.Time) error
	// SettleDay gives the holder's hold back and counts what was spent.
	SettleDay(ctx context.Context, day string, accounts []string, holder string, spent budget.Spent) error
	// Days lists the accounts that spent, hold or were raised on a day, by name.
	Days(ctx context.Context, day string) ([]DaySpent, error)
}

// DayAccount is a name with its configured limits: bot, route:NAME or person:NAME. Only tokens and cost count.
type DayAccount struct {
	Name   string
	Limits budget.Limits
}

// DayRaise lifts an account's limits for one day, to at least these; a limit that is zero stays as it is.
type DayRaise struct {
	Account string
	Day     string
	Limits  budget.Limits
}

// DaySpent is an account's day. Raised is zero where nobody raised it.
type DaySpent struct {
	Account string
	Spent   budget.Spent
	Held    budget.Spent
	Raised  budget.Limits
}

// DayFull says which account is full; it wraps budget.ErrExceeded.
type DayFull struct {
	Account string
	Day     string
	Limits  budget.Limits // in force, raises included
	Spent   budget.Spent
	Words   string
}

func (e *DayFull) Error() string {
	return fmt.Sprintf("the budget of the day %s (UTC) for %s: %s", e.Day, accountWords(e.Account), e.Words)
}

// Unwrap makes it a refusal of the budget.
func (e *DayFull) Unwrap() error { return budget.ErrExceeded }

// InForce is a limit with what it was raised to.
func (a DayAccount) InForce(raised budget.Limits) budget.Limits {
	l := budget.Limits{Tokens: a.Limits.Tokens, Cost: a.Limits.Cost}
	if l.Tokens > 0 {
		l.Tokens = max(l.Tokens, raised.Tokens)
	}
	if l.Cost > 0 {
		l.Cost = max(l.Cost, raised.Cost)
	}
	return l
}

// Admit decides on a hold: others is what other holders have set aside, and how many they are. It is pure, for every store.
func (a DayAccount) Admit(day string, s DaySpent, others int, h budget.Spent) error {
	l := a.InForce(s.Raised)
	spent := budget.Spent{Tokens: s.Spent.Tokens, Cost: s.Spent.Cost}
	full := func(words string) error {
		return &DayFull{Account: a.Name, Day: day, Limits: l, Spent: s.Spent, Words: words}
	}
	if words, ok := budget.Check(l, spent); !ok {
		return full(words)
	}
	if others == 0 {
		return nil
	}
	together := budget.Spent{Tokens: spent.Tokens + s.Held.Tokens + h.Tokens - 1, Cost: spent.Cost + s.Held.Cost + h.Cost - 1}
	if words, ok := budget.Check(l, together); !ok {
		return full(words + ", with what running calls may use")
	}
	return nil
}
