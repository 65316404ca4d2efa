package budget

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"reasonix/internal/provider"
)

// million: prices are per million tokens, amounts are in millionths.
const million = 1_000_000

// Cost is what the usage costs in millionths of the currency, rounded up. The cached part of the input has its own price; without one
// (0) it counts like the rest of the input, so that an unknown price never makes a limit late. It saturates instead of overflowing.
func (p Price) Cost(u provider.Usage) int64 {
	cached := min(max(u.CacheRead, 0), max(u.Input, 0))
	cachedPrice := p.CacheRead
	if cachedPrice == 0 {
		cachedPrice = p.Input
	}
	total := new(big.Int)
	for _, part := range [][2]int64{{max(u.Input, 0) - cached, p.Input}, {cached, cachedPrice}, {max(u.Output, 0), p.Output}} {
		total.Add(total, new(big.Int).Mul(big.NewInt(part[0]), big.NewInt(part[1])))
	}
	total.Add(total, big.NewInt(million-1))
	total.Quo(total, big.NewInt(million))
	if !total.IsInt64() {
		return math.MaxInt64
	}
	return total.Int64()
}

var moneyShape = regexp.MustCompile(`^(\d{1,12})(?:\.(\d{1,6}))?[ \t]+([A-Z]{3})$`)

// ParseMoney reads an amount as the configuration writes it, such as "5 USD" or "0.50 EUR", in millionths.
func ParseMoney(s string) (amount int64, currency string, err error) {
	m := moneyShape.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return 0, "", fmt.Errorf(`amount %q: write it like "5 USD" or "0.50 EUR" (at most six decimals)`, s)
	}
	whole, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0, "", fmt.Errorf("amount %q: %w", s, err)
	}
	part, err := strconv.ParseInt((m[2] + "000000")[:6], 10, 64)
	if err != nil {
		return 0, "", fmt.Errorf("amount %q: %w", s, err)
	}
	return whole*million + part, m[3], nil
}

// FormatMoney writes millionths with at least two decimals and no more than needed; an empty currency is left out.
func FormatMoney(amount int64, currency string) string {
	sign := ""
	if amount < 0 {
		sign = "-"
	}
	abs := new(big.Int).Abs(big.NewInt(amount))
	whole, part := new(big.Int).QuoRem(abs, big.NewInt(million), new(big.Int))
	decimals := strings.TrimRight(fmt.Sprintf("%06d", part.Int64()), "0")
	for len(decimals) < 2 {
		decimals += "0"
	}
	return strings.TrimSpace(fmt.Sprintf("%s%s.%s %s", sign, whole, decimals, currency))
}
