package budget

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Raise gives every limit that has been reached the same amount again, on top of what is spent.
func Raise(l Limits, s Spent) Limits {
	if l.Tokens > 0 && s.Tokens >= l.Tokens {
		l.Tokens = sum(l.Tokens, max(l.Tokens, s.Tokens))
	}
	if l.Cost > 0 && s.Cost >= l.Cost {
		l.Cost = sum(l.Cost, max(l.Cost, s.Cost))
	}
	if l.Steps > 0 && s.Steps >= l.Steps {
		l.Steps = sum(l.Steps, max(l.Steps, s.Steps))
	}
	if l.Time > 0 && s.Time >= l.Time {
		l.Time = sum(l.Time, max(l.Time, s.Time))
	}
	return l
}

var limitShape = regexp.MustCompile(`^(tokens|cost|steps|time)\s*=\s*("[^"]*"|[0-9.]+ [A-Z]{3}\b|\S+)[\s,]*`)

// ParseLimits reads limits as a person types them: tokens=200000 cost="5 USD" steps=50 time=30m, in any order, or "off" for none.
func ParseLimits(text string) (Limits, error) {
	var l Limits
	rest := strings.TrimSpace(text)
	if rest == "off" {
		return l, nil
	}
	if rest == "" {
		return l, errors.New(`no limits given: write them like tokens=200000 cost="5 USD" steps=50 time=30m, or off`)
	}
	for rest != "" {
		m := limitShape.FindStringSubmatch(rest)
		if m == nil {
			return l, fmt.Errorf(`limits %q: write them like tokens=200000 cost="5 USD" steps=50 time=30m, or off`, text)
		}
		if err := l.set(m[1], strings.Trim(m[2], `"`)); err != nil {
			return l, fmt.Errorf("limits: %s=%s: %w", m[1], m[2], err)
		}
		rest = rest[len(m[0]):]
	}
	return l, nil
}

func (l *Limits) set(name, value string) error {
	var err error
	switch name {
	case "tokens":
		l.Tokens, err = strconv.ParseInt(strings.ReplaceAll(value, "_", ""), 10, 64)
	case "steps":
		l.Steps, err = strconv.Atoi(value)
	case "time":
		l.Time, err = time.ParseDuration(value)
	case "cost":
		l.Cost, _, err = ParseMoney(value)
	}
	if err != nil {
		return err
	}
	if l.Tokens < 0 || l.Steps < 0 || l.Time < 0 {
		return errors.New("a limit is not negative; 0 means none")
	}
	return nil
}

// Words are the limits with what is spent of them, for people; the currency is that of the prices.
func Words(l Limits, s Spent, currency string) string {
	var parts []string
	of := func(limited bool, spent, limit, unit string) {
		if limited {
			parts = append(parts, spent+" of "+limit+unit)
		}
	}
	of(l.Tokens > 0, Thousands(s.Tokens), Thousands(l.Tokens), " tokens")
	of(l.Cost > 0, FormatMoney(s.Cost, currency), FormatMoney(l.Cost, currency), "")
	of(l.Steps > 0, Thousands(int64(s.Steps)), Thousands(int64(l.Steps)), " model calls")
	of(l.Time > 0, s.Time.Round(time.Second).String(), l.Time.String(), " running")
	if len(parts) == 0 {
		return fmt.Sprintf("no limit; %s tokens in %d model calls so far", Thousands(s.Tokens), s.Steps)
	}
	return strings.Join(parts, ", ")
}
