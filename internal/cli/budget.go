package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"reasonix/internal/budget"
	"reasonix/internal/flow"
)

// budgetCommand shows what was spent today from the budgets that tasks share.
func (a *app) budgetCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "budget",
		Short: "Show what was spent today from the budgets of the day",
		Long:  "budget lists every account with a budget_day: the bot, routes and people. The day is that of UTC. A raise is given in the request that a task makes when it reaches a limit.",
		Args:  exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withDesk(c.Context(), func(h *flow.Host) error {
				day, accounts, spent, err := h.Today(c.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return a.json(dayRows(day, accounts, spent))
				}
				return a.dayTable(dayRows(day, accounts, spent))
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// dayRow is one account's day; money is in millionths of the currency, a zero limit is none.
type dayRow struct {
	Day        string `json:"day"`
	Account    string `json:"account"`
	Tokens     int64  `json:"tokens"`
	TokenLimit int64  `json:"token_limit"`
	Cost       int64  `json:"cost_micros"`
	CostLimit  int64  `json:"cost_limit_micros"`
	Held       int64  `json:"held_tokens"`
	Raised     bool   `json:"raised"`
}

func dayRows(day string, accounts []flow.DayAccount, spent map[string]flow.DaySpent) []dayRow {
	rows := make([]dayRow, len(accounts))
	for i, acc := range accounts {
		s := spent[acc.Name]
		l := acc.InForce(s.Raised)
		rows[i] = dayRow{Day: day, Account: acc.Name, Tokens: s.Spent.Tokens, TokenLimit: l.Tokens, Cost: s.Spent.Cost, CostLimit: l.Cost,
			Held: s.Held.Tokens, Raised: l.Tokens > acc.Limits.Tokens || l.Cost > acc.Limits.Cost}
	}
	return rows
}

func (a *app) dayTable(rows []dayRow) error {
	if len(rows) == 0 {
		fmt.Fprintln(a.out, "No budget of the day is configured: set budget_day under [bot], a route or a person.")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "ACCOUNT\tTOKENS\tCOST\tRUNNING\tDAY %s (UTC)\n", rows[0].Day)
	for _, r := range rows {
		raised := ""
		if r.Raised {
			raised = "raised"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Account, of(budget.Thousands, r.Tokens, r.TokenLimit),
			of(func(n int64) string { return budget.FormatMoney(n, "") }, r.Cost, r.CostLimit), budget.Thousands(r.Held), raised)
	}
	return w.Flush()
}

func of(words func(int64) string, n, limit int64) string {
	if limit == 0 {
		return words(n)
	}
	return words(n) + " of " + words(limit)
}
