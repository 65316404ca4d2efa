// Package budget counts what a task spends — tokens, money, steps, time — and says when a limit is reached.
package budget

import "time"

// Limits are opt-in; zero means no limit.
type Limits struct {
	Tokens int64         `json:"tokens,omitempty"`
	Cost   int64         `json:"cost,omitempty"` // millionths of the currency
	Steps  int           `json:"steps,omitempty"`
	Time   time.Duration `json:"time,omitempty"`
}

// Spent is cumulative over all attempts of a task. Time counts running, never waiting.
type Spent struct {
	Tokens int64         `json:"tokens"`
	Cost   int64         `json:"cost"`
	Steps  int           `json:"steps"`
	Time   time.Duration `json:"time"`
}

// Price is per million tokens, in millionths of the currency.
type Price struct {
	Input, Output, CacheRead int64
	Currency                 string
}
