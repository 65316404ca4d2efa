package workspace

import (
	"strings"
	"testing"
	"time"
)

func TestOnlyWorkspacesThatNoTaskNeedsExpireByAgeAndCount(t *testing.T) {
	now := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	days := func(n int) time.Time { return now.AddDate(0, 0, -n) }
	all := []Info{{ID: "live", Created: days(99)}, {ID: "new", Created: days(90)}, {ID: "old", Created: days(90)}, {ID: "stray", Created: days(40)}, {ID: "fresh", Created: days(1)}}
	uses := map[string]Use{"live": {Needed: true, Last: days(80)}, "new": {Last: days(2)}, "old": {Last: days(30)}}
	for name, c := range map[string]struct {
		keep Keep
		want string
	}{
		"no bound":  {Keep{}, ""},
		"age":       {Keep{For: 14 * 24 * time.Hour}, "stray old"},
		"count":     {Keep{Count: 3}, "stray"},
		"count one": {Keep{Count: 1}, "stray old new"},
		"both":      {Keep{For: 35 * 24 * time.Hour, Count: 2}, "stray old"},
	} {
		var got []string
		for _, i := range c.keep.Expired(all, uses, now) {
			got = append(got, i.ID)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}
