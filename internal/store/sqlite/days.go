package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"reasonix/internal/budget"
	"reasonix/internal/flow"
)

// HoldDay sets a call's estimate aside in all accounts, or in none.
func (s *Store) HoldDay(ctx context.Context, day string, accounts []flow.DayAccount, holder string, h budget.Spent, until time.Time) error {
	return s.write(ctx, "reserve the day's budget", func(tx *txn) error {
		for _, a := range accounts {
			spent, others, err := tx.dayFor(day, a.Name, holder)
			if err != nil {
				return err
			}
			if err := a.Admit(day, spent, others, h); err != nil {
				return err
			}
			err = tx.exec(`INSERT INTO day_holds (account, day, holder, tokens, cost, until) VALUES (?,?,?,?,?,?)
				ON CONFLICT (day, account, holder) DO UPDATE SET tokens = excluded.tokens, cost = excluded.cost, until = excluded.until`,
				a.Name, day, holder, h.Tokens, h.Cost, nanos(until))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// dayFor reads an account as another holder than this one sees it: holds of silent workers do not count.
func (tx *txn) dayFor(day, account, holder string) (flow.DaySpent, int, error) {
	d := flow.DaySpent{Account: account}
	err := tx.row(`SELECT tokens, cost, steps, raised_tokens, raised_cost FROM days WHERE day = ? AND account = ?`, day, account).
		Scan(&d.Spent.Tokens, &d.Spent.Cost, &d.Spent.Steps, &d.Raised.Tokens, &d.Raised.Cost)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return d, 0, err
	}
	var others int
	err = tx.row(`SELECT count(*), coalesce(sum(tokens),0), coalesce(sum(cost),0) FROM day_holds WHERE day = ? AND account = ? AND holder <> ? AND until > ?`,
		day, account, holder, nanos(tx.now)).Scan(&others, &d.Held.Tokens, &d.Held.Cost)
	return d, others, err
}

// SettleDay counts what a call spent and gives its hold back.
func (s *Store) SettleDay(ctx context.Context, day string, accounts []string, holder string, spent budget.Spent) error {
	return s.write(ctx, "settle the day's budget", func(tx *txn) error {
		for _, a := range accounts {
			if err := tx.exec(`DELETE FROM day_holds WHERE day = ? AND account = ? AND holder = ?`, day, a, holder); err != nil {
				return err
			}
			err := tx.exec(`INSERT INTO days (account, day, tokens, cost, steps) VALUES (?,?,?,?,?)
				ON CONFLICT (day, account) DO UPDATE SET tokens = tokens + excluded.tokens, cost = cost + excluded.cost, steps = steps + excluded.steps`,
				a, day, spent.Tokens, spent.Cost, spent.Steps)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// raiseDays lifts limits for a day; a raise never lowers one.
func (tx *txn) raiseDays(raises []flow.DayRaise) error {
	for _, r := range raises {
		err := tx.exec(`INSERT INTO days (account, day, raised_tokens, raised_cost) VALUES (?,?,?,?)
			ON CONFLICT (day, account) DO UPDATE SET raised_tokens = max(raised_tokens, excluded.raised_tokens), raised_cost = max(raised_cost, excluded.raised_cost)`,
			r.Account, r.Day, r.Limits.Tokens, r.Limits.Cost)
		if err != nil {
			return err
		}
	}
	return nil
}

// Days lists the accounts of a day.
func (s *Store) Days(ctx context.Context, day string) ([]flow.DaySpent, error) {
	scan := func(scan func(...any) error) (d flow.DaySpent, err error) {
		err = scan(&d.Account, &d.Spent.Tokens, &d.Spent.Cost, &d.Spent.Steps, &d.Raised.Tokens, &d.Raised.Cost, &d.Held.Tokens, &d.Held.Cost)
		return d, err
	}
	days, err := collect(ctx, s.r, scan, `SELECT a.account, coalesce(d.tokens,0), coalesce(d.cost,0), coalesce(d.steps,0), coalesce(d.raised_tokens,0), coalesce(d.raised_cost,0),
			(SELECT coalesce(sum(tokens),0) FROM day_holds h WHERE h.day = ?1 AND h.account = a.account AND h.until > ?2),
			(SELECT coalesce(sum(cost),0) FROM day_holds h WHERE h.day = ?1 AND h.account = a.account AND h.until > ?2)
		FROM (SELECT account FROM days WHERE day = ?1 UNION SELECT account FROM day_holds WHERE day = ?1) a
		LEFT JOIN days d ON d.day = ?1 AND d.account = a.account ORDER BY a.account`, day, nanos(s.now()))
	if err != nil {
		return nil, s.reading("read the day's budgets", err)
	}
	return days, nil
}
