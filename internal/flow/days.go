package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reasonix/internal/approval"
	"reasonix/internal/budget"
	"reasonix/internal/chat"
	"reasonix/internal/task"
)

// holdFor is how long the hold of a silent worker counts; a model call takes less.
const holdFor = 30 * time.Minute

// firstCall is what a task's first model call is taken to use, in tokens.
const firstCall = 4000

// botAccount is what all tasks of all hosts on one state share.
const botAccount = "bot"

// daysOf are the accounts of the day that a task spends from.
func (h *Host) daysOf(t task.Task) []DayAccount {
	var out []DayAccount
	add := func(name string, l budget.Limits) {
		if l.Tokens > 0 || l.Cost > 0 {
			out = append(out, DayAccount{Name: name, Limits: l})
		}
	}
	add(botAccount, h.DayLimits)
	for _, r := range h.Routes {
		if r.Name == t.Spec.Route {
			add("route:"+r.Name, r.DayLimits)
		}
	}
	if p, ok := h.People.Find(t.Requester.Person); ok {
		add("person:"+p.Name, p.DayLimits)
	}
	return out
}

func accountWords(name string) string {
	kind, rest, _ := strings.Cut(name, ":")
	switch kind {
	case "route":
		return "the route " + rest
	case "person":
		return rest
	}
	return "this bot"
}

// dayLedger counts a task's calls against its own limits and against those that everybody shares.
type dayLedger struct {
	*attempt
	own      budget.Ledger
	accounts []DayAccount
	day      string // of the call that is held
	full     *DayFull
}

func (a *attempt) ledger() *dayLedger {
	return &dayLedger{attempt: a, own: budget.NewAccount(a.t.Spent), accounts: a.daysOf(a.t)}
}

// Hold implements budget.Ledger.
func (d *dayLedger) Hold(ctx context.Context, l budget.Limits, h budget.Spent) error {
	d.full = nil
	if err := d.own.Hold(ctx, l, h); err != nil || len(d.accounts) == 0 {
		return err
	}
	now := d.Now().UTC()
	day := now.Format(time.DateOnly)
	err := d.Ledger.HoldDay(ctx, day, d.accounts, d.t.ID, h, now.Add(holdFor))
	if err == nil {
		d.day = day
		return nil
	}
	errors.As(err, &d.full)
	return errors.Join(err, d.own.Settle(ctx, h, budget.Spent{}))
}

// Settle implements budget.Ledger.
func (d *dayLedger) Settle(ctx context.Context, held, spent budget.Spent) error {
	if err := d.own.Settle(ctx, held, spent); err != nil || held.Steps == 0 || d.day == "" {
		return err
	}
	names := make([]string, len(d.accounts))
	for i, a := range d.accounts {
		names[i] = a.Name
	}
	err := d.Ledger.SettleDay(ctx, d.day, names, d.t.ID, spent)
	d.day = ""
	return err
}

// estimate is what the next call is taken to use: as much as the calls before, on average.
func (a *attempt) estimate() budget.Spent {
	if n := int64(a.t.Spent.Steps); n > 0 {
		return budget.Spent{Tokens: a.t.Spent.Tokens / n, Cost: a.t.Spent.Cost / n}
	}
	return budget.Spent{Tokens: firstCall, Cost: firstCall * a.Workshop.Price(a.t.Spec.Model).Input / 1_000_000}
}

// dayAsk offers a raise of a day's budget. Two tasks that stopped at the same limit offer the same raise: answering both lifts it once.
func (h *Host) dayAsk(t task.Task, f *DayFull, now time.Time) approval.Ask {
	a := newAsk(t, approval.KindBudget, "The budget of the day is used up", now)
	a.Text = fmt.Sprintf("The task stopped at %s. It continues at the same point when the limit is raised for that day, or on another day.", f.Error())
	a.Fields = []chat.Field{
		{Label: "Whose budget", Value: accountWords(f.Account)},
		{Label: "Spent on that day", Value: spentWords(f.Spent, f.Limits)},
	}
	a.Raise = &approval.Raise{Account: f.Account, Day: f.Day}
	for _, acc := range h.daysOf(t) {
		if acc.Name != f.Account {
			continue
		}
		if f.Limits.Tokens > 0 {
			a.Raise.Tokens = f.Limits.Tokens + acc.Limits.Tokens
		}
		if f.Limits.Cost > 0 {
			a.Raise.Cost = f.Limits.Cost + acc.Limits.Cost
		}
	}
	raise := approval.Choice{ID: choiceRaise, Label: "Raise to " + limitWords(budget.Limits{Tokens: a.Raise.Tokens, Cost: a.Raise.Cost}) + " for that day", Style: "primary", Consent: true}
	if f.Account == botAccount {
		raise = h.forAdmins(&a, raise)
	}
	if raise.ID != "" {
		a.Choices = append(a.Choices, raise)
	}
	a.Choices = append(a.Choices, approval.Choice{ID: choiceGoOn, Label: "Look again without a raise"}, approval.Choice{ID: choiceEnd, Label: "End the task", Style: "danger"})
	return a
}

// forAdmins leaves what counts for the whole host to administrators, one of whom is enough, and has them called. Without any it is not offered.
func (h *Host) forAdmins(a *approval.Ask, raise approval.Choice) approval.Choice {
	who := slices.Clone(a.Rules.Approvers)
	admins := 0
	for _, p := range h.People {
		if p.Role != task.RoleAdmin {
			continue
		}
		admins++
		if !slices.Contains(who, p.Name) {
			who = append(who, p.Name)
		}
	}
	if admins == 0 {
		a.Text += " It counts for the whole bot, so only an administrator could raise it, and nobody under [[people]] is one."
		return approval.Choice{}
	}
	a.Text += " It counts for the whole bot, so only an administrator may raise it."
	a.Rules.Approvers = who
	raise.Admin, raise.Consent = true, false
	return raise
}

func spentWords(s budget.Spent, l budget.Limits) string {
	var out []string
	if l.Tokens > 0 {
		out = append(out, fmt.Sprintf("%s of %s tokens", budget.Thousands(s.Tokens), budget.Thousands(l.Tokens)))
	}
	if l.Cost > 0 {
		out = append(out, fmt.Sprintf("%s of %s", budget.FormatMoney(s.Cost, ""), budget.FormatMoney(l.Cost, "")))
	}
	return strings.Join(out, ", ")
}

func limitWords(l budget.Limits) string {
	var out []string
	if l.Tokens > 0 {
		out = append(out, budget.Thousands(l.Tokens)+" tokens")
	}
	if l.Cost > 0 {
		out = append(out, "a cost of "+budget.FormatMoney(l.Cost, ""))
	}
	return strings.Join(out, " and ")
}

// Today lists every configured account with what was spent from it today, and those that only have a past.
func (h *Host) Today(ctx context.Context) (day string, accounts []DayAccount, spent map[string]DaySpent, err error) {
	day = h.Now().UTC().Format(time.DateOnly)
	list, err := h.Ledger.Days(ctx, day)
	if err != nil {
		return day, nil, nil, fmt.Errorf("read the budgets of the day: %w", err)
	}
	spent = map[string]DaySpent{}
	for _, s := range list {
		spent[s.Account] = s
	}
	add := func(name string, l budget.Limits) {
		if l.Tokens > 0 || l.Cost > 0 {
			accounts = append(accounts, DayAccount{Name: name, Limits: l})
		}
	}
	add("bot", h.DayLimits)
	for _, r := range h.Routes {
		add("route:"+r.Name, r.DayLimits)
	}
	for _, p := range h.People {
		add("person:"+p.Name, p.DayLimits)
	}
	return day, accounts, spent, nil
}
