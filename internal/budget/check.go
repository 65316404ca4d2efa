package budget

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// ErrExceeded is wrapped by every refusal of a Meter.
var ErrExceeded = errors.New("budget reached")

// Check says whether the limits leave room for another model call. When not, exceeded names the limit and the figures, for people;
// the first of tokens, cost, steps and time that is reached counts.
func Check(l Limits, s Spent) (exceeded string, ok bool) {
	switch {
	case l.Tokens > 0 && s.Tokens >= l.Tokens:
		return fmt.Sprintf("token limit reached: %s of %s tokens", Thousands(s.Tokens), Thousands(l.Tokens)), false
	case l.Cost > 0 && s.Cost >= l.Cost:
		return fmt.Sprintf("cost limit reached: %s of %s", FormatMoney(s.Cost, ""), FormatMoney(l.Cost, "")), false
	case l.Steps > 0 && s.Steps >= l.Steps:
		return fmt.Sprintf("step limit reached: %s of %s model calls", Thousands(int64(s.Steps)), Thousands(int64(l.Steps))), false
	case l.Time > 0 && s.Time >= l.Time:
		return fmt.Sprintf("time limit reached: %s of %s", s.Time.Round(time.Second), l.Time), false
	}
	return "", true
}

// Add returns the sum of both. It saturates: a sum that turned negative would never reach a limit again.
func (s Spent) Add(o Spent) Spent {
	return Spent{sum(s.Tokens, o.Tokens), sum(s.Cost, o.Cost), sum(s.Steps, o.Steps), sum(s.Time, o.Time)}
}

// sum adds without turning over; most is half the range, so that sums of sums stay in it too.
func sum[N ~int | ~int64](a, b N) N {
	const most = math.MaxInt64 / 2
	return N(min(min(int64(a), most)+min(int64(b), most), most))
}

// Sub returns the difference of both.
func (s Spent) Sub(o Spent) Spent {
	return Spent{s.Tokens - o.Tokens, s.Cost - o.Cost, s.Steps - o.Steps, s.Time - o.Time}
}

// Thousands writes a number as people read it: 2,000,000.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}
