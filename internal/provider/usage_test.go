package provider

import (
	"math"
	"testing"
)

func TestAServersUsageIsKeptWithinWhatACallCanUse(t *testing.T) {
	u := Usage{Input: math.MaxInt64, Output: math.MinInt64, CacheRead: -1, CacheCreation: 7}.Plausible()
	if u != (Usage{Input: 1 << 40, CacheCreation: 7}) || u.Add(u).Total() <= u.Total() {
		t.Errorf("got %+v", u)
	}
}
