package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func sums(all []Tenant, gone []Tenant, of func(Tenant) bool) (n int, bytes int64) {
	left := slices.DeleteFunc(slices.Clone(all), func(t Tenant) bool {
		return slices.ContainsFunc(gone, func(g Tenant) bool { return g.ID == t.ID })
	})
	return usage(left, of)
}

func TestRoomIsMadeFromWhatNobodyNeedsOldestFirstAndNoMoreThanItTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := make([]Tenant, rapid.IntRange(0, 12).Draw(t, "workspaces"))
		for i := range all {
			all[i] = Tenant{ID: fmt.Sprint("w", i), Route: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "route"), Bytes: rapid.Int64Range(0, 9).Draw(t, "bytes"),
				Use: Use{Needed: rapid.Bool().Draw(t, "needed"), Last: time.Unix(rapid.Int64Range(0, 5).Draw(t, "last"), 0)}}
		}
		host := Room{rapid.IntRange(0, 8).Draw(t, "count"), rapid.Int64Range(0, 40).Draw(t, "bytes of host")}
		own := Room{rapid.IntRange(0, 4).Draw(t, "count of route"), rapid.Int64Range(0, 20).Draw(t, "bytes of route")}
		ofRoute := func(x Tenant) bool { return x.Route == "a" }
		any := func(Tenant) bool { return true }
		fits := func(gone []Tenant) bool {
			n, b := sums(all, gone, any)
			rn, rb := sums(all, gone, ofRoute)
			return !host.full(n, b) && !own.full(rn, rb)
		}
		gone, err := Admit(all, "a", host, own)
		idle := slices.DeleteFunc(slices.Clone(all), func(x Tenant) bool { return x.Needed })
		if err != nil {
			if len(gone) > 0 || !errors.Is(err, ErrNoRoom) || fits(idle) {
				t.Fatalf("refused with %v although %v could go, and %v goes", err, idle, gone)
			}
			return
		}
		if !fits(gone) {
			t.Fatalf("admitted over the quota: %v of %v", gone, all)
		}
		for i, g := range gone {
			if g.Needed {
				t.Fatalf("%v is needed", g)
			}
			if i == len(gone)-1 && fits(gone[:i]) {
				t.Fatalf("%v goes for nothing", g)
			}
			for _, other := range idle {
				stays := !slices.ContainsFunc(gone, func(x Tenant) bool { return x.ID == other.ID })
				if stays && other.Route == "a" && g.Route == "a" && other.Last.Before(g.Last) {
					t.Fatalf("%v goes before the older %v", g, other)
				}
			}
		}
	})
}

func TestARefusalSaysWhichQuotaIsFull(t *testing.T) {
	busy := func(route string, bytes int64) Tenant {
		return Tenant{ID: route, Route: route, Bytes: bytes, Use: Use{Needed: true}}
	}
	all := []Tenant{busy("a", 3<<30), busy("b", 1<<30)}
	for want, c := range map[string][2]Room{
		"the route a may have 1 workspaces, and 1 workspaces, 3.0 GiB are in use":     {{}, {Count: 1}},
		"the route a may have 2.0 GiB, and 1 workspaces, 3.0 GiB are in use":          {{}, {Bytes: 2 << 30}},
		"this host may have 2 workspaces, 9.0 GiB, and 2 workspaces, 4.0 GiB are in ": {{Count: 2, Bytes: 9 << 30}, {}},
	} {
		if _, err := Admit(all, "a", c[0], c[1]); !errors.Is(err, ErrNoRoom) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
}

func TestNoRoomLeavesNothingBehind(t *testing.T) {
	o := newOffice(t)
	r := o.request("t1")
	r.Admit = func(context.Context) error { return ErrNoRoom }
	if _, err := o.store.Prepare(context.Background(), r); !errors.Is(err, ErrNoRoom) {
		t.Errorf("%v", err)
	}
	if ids, err := o.store.IDs(); err != nil || len(ids) > 0 {
		t.Errorf("%v %v", ids, err)
	}
	o.prepare("t1")
	asked := 0
	r.Admit = func(context.Context) error { asked++; return ErrNoRoom }
	if _, err := o.store.Prepare(context.Background(), r); err != nil || asked > 0 {
		t.Errorf("a workspace that is there was asked for room: %v", err)
	}
}

func TestASizeIsMeasuredAgainWhenItMayHaveChanged(t *testing.T) {
	ctx := context.Background()
	o := newOffice(t)
	w := o.prepare("t1")
	begin := time.Now().Add(-time.Hour)
	first, err := o.store.Measured(ctx, "t1", begin)
	if err != nil || first == 0 {
		t.Fatalf("%d %v", first, err)
	}
	o.task(w, "head -c 100000 /dev/zero > more")
	if again, err := o.store.Measured(ctx, "t1", begin); err != nil || again != first {
		t.Errorf("%d %v, was %d", again, err, first)
	}
	if now, err := o.store.Measured(ctx, "t1", time.Now().Add(time.Hour)); err != nil || now < first+100000 {
		t.Errorf("%d %v, was %d", now, err, first)
	}
}
