package cron_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reasonix/adapters/cron"
)

func TestSchedulesThatWouldLieAreRefused(t *testing.T) {
	cases := []struct{ spec, zone, want string }{
		{"", "", "cron is missing"},
		{"TZ=UTC", "", "write it as timezone"},
		{"TZ=UTC 0 3 * * *", "", "write it as timezone"},
		{"CRON_TZ=UTC", "", "write it as timezone"},
		{"  TZ=UTC", "", "write it as timezone"},
		{"@every 0s", "", "at least 1m"},
		{"@every -5m", "", "at least 1m"},
		{"@every 1500ms", "", "at least 1m"},
		{"@every 61500ms", "", "whole seconds"},
		{"@every soon", "", "want a duration"},
		{"@reboot", "", "@reboot"},
		{"@Daily", "", "@Daily"},
		{"0 0 30 2 *", "", "date that does not exist"},
		{"0 0 31 4,6 *", "", "date that does not exist"},
		{"*/0 * * * *", "", "step 0"},
		{"*/61 * * * *", "", "step 61"},
		{"* */25 * * *", "", "step 25"},
		{"0 0 * * 7", "", "7"},
		{"0 0 3 * * *", "", "6 fields"},
		{"0 3 * *", "", "4 fields"},
		{"0 0 */2 * 5", "", "restricts day and weekday"},
		{"61 * * * *", "", "61"},
		{"0 3 * * *", "Mars/Olympus", "timezone \"Mars/Olympus\" is unknown"},
		{"0 3 * * *", "Local", "differ from host to host"},
		{"0 3 * * *", "../etc/passwd", "is unknown"},
		{strings.Repeat("1,", 200) + "1 * * * *", "", "longer than"},
	}
	for _, c := range cases {
		_, err := cron.Parse(c.spec, c.zone)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q in %q: got %v, want %q", c.spec, c.zone, err, c.want)
		}
	}
}

func between(t *testing.T, spec, zone, from, to string) []string {
	t.Helper()
	times, err := cron.Parse(spec, zone)
	if err != nil {
		t.Fatal(err)
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	parse := func(s string) time.Time {
		at, err := time.ParseInLocation("2006-01-02 15:04", s, loc)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	list, _ := times.Between(parse(from), parse(to), 1000)
	var out []string
	for _, at := range list {
		out = append(out, at.In(loc).Format("01-02 15:04 MST"))
	}
	return out
}

func TestOneRunADayWhenTheClockChanges(t *testing.T) {
	cases := []struct{ name, spec, zone, from, to, want string }{
		{"spring, in the gap", "30 2 * * *", "America/New_York", "2026-03-07 00:00", "2026-03-10 00:00", "03-07 02:30 EST, 03-08 03:00 EDT, 03-09 02:30 EDT"},
		{"spring, at its edge", "0 2 * * *", "America/New_York", "2026-03-07 12:00", "2026-03-09 12:00", "03-08 03:00 EDT, 03-09 02:00 EDT"},
		{"spring, several in the gap are one", "0,15,30 2 * * *", "America/New_York", "2026-03-08 00:00", "2026-03-08 12:00", "03-08 03:00 EDT"},
		{"spring, gap and after it are one", "0 2,3 * * *", "America/New_York", "2026-03-08 00:00", "2026-03-08 12:00", "03-08 03:00 EDT"},
		{"autumn, the hour comes twice", "30 1 * * *", "America/New_York", "2026-10-31 12:00", "2026-11-02 12:00", "11-01 01:30 EDT, 11-02 01:30 EST"},
		{"autumn in Berlin", "30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", "2026-10-26 12:00", "10-25 02:30 CEST, 10-26 02:30 CET"},
		{"midnight that does not exist", "0 0 * * *", "America/Sao_Paulo", "2018-11-03 12:00", "2018-11-05 12:00", "11-04 01:00 -02, 11-05 00:00 -02"},
		{"a day that does not exist", "0 9 * * *", "Pacific/Apia", "2011-12-29 00:00", "2012-01-01 00:00", "12-29 09:00 -10, 12-31 00:00 +14, 12-31 09:00 +14"},
		{"half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00", "2026-10-05 12:00", "10-04 02:30 +11, 10-05 02:15 +11"},
		{"@daily", "@daily", "Europe/Berlin", "2026-03-28 12:00", "2026-03-30 12:00", "03-29 00:00 CET, 03-30 00:00 CEST"},
		{"weekdays", "0 3 * * 1-5", "Europe/Berlin", "2026-10-23 00:00", "2026-10-27 00:00", "10-23 03:00 CEST, 10-26 03:00 CET"},
		{"hourly goes on in autumn", "0 * * * *", "America/New_York", "2026-11-01 00:30", "2026-11-01 02:30", "11-01 01:00 EDT, 11-01 01:00 EST, 11-01 02:00 EST"},
		{"hourly goes on in spring", "0 * * * *", "America/New_York", "2026-03-08 00:30", "2026-03-08 04:30", "03-08 01:00 EST, 03-08 03:00 EDT, 03-08 04:00 EDT"},
	}
	for _, c := range cases {
		if got := strings.Join(between(t, c.spec, c.zone, c.from, c.to), ", "); got != c.want {
			t.Errorf("%s: %s\n got %s\nwant %s", c.name, c.spec, got, c.want)
		}
	}
}

func TestIntervalsStayEvenWhenTheClockChanges(t *testing.T) {
	for _, zone := range []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu"} {
		for spec, most := range map[string]time.Duration{"*/15 * * * *": 15 * time.Minute, "*/30 * * * *": 30 * time.Minute, "0 * * * *": time.Hour, "@every 45m": 45 * time.Minute, "@hourly": time.Hour} {
			if zone == "Australia/Lord_Howe" && most > 15*time.Minute {
				continue // its clock moves by half an hour: the hour itself is uneven there
			}
			times, err := cron.Parse(spec, zone)
			if err != nil {
				t.Fatal(err)
			}
			at := times.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			for at.Year() == 2026 {
				next := times.Next(at)
				if gap := next.Sub(at); gap > most || gap <= 0 {
					t.Fatalf("%s in %s: %s after %s", spec, zone, gap, at)
				}
				at = next
			}
		}
	}
}

func TestFixedTimesRunOncePerDayEverywhere(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Tehran", "Africa/Casablanca", "Pacific/Auckland"}
	rapid.Check(t, func(r *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(r, "zone")
		spec := rapid.SampledFrom([]string{"30 2 * * *", "0 0 * * *", "59 23 * * *", "0 1 * * *", "15 3 * * *"}).Draw(r, "spec")
		start := time.Unix(rapid.Int64Range(946684800, 1924905600).Draw(r, "start"), 0)
		times, err := cron.Parse(spec, zone)
		if err != nil {
			r.Fatal(err)
		}
		at := times.Next(start)
		for range 400 {
			next := times.Next(at)
			if gap := next.Sub(at); gap < 22*time.Hour || gap > 26*time.Hour {
				r.Fatalf("%s in %s: %s after %s", spec, zone, gap, at)
			}
			if again := times.Next(next.Add(-time.Second)); !again.Equal(next) {
				r.Fatalf("%s in %s: from a second before %s comes %s", spec, zone, next, again)
			}
			at = next
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0 3 * * 1-5", "@every 2h", "TZ=UTC", "CRON_TZ=", "*/61 * * * *", "@daily", "0 0 30 2 *", "? ? ? ? ?", "\x00", "1-2-3 * * * *"} {
		f.Add(s, "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, spec, zone string) {
		times, err := cron.Parse(spec, zone)
		if err != nil {
			return
		}
		from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		next := times.Next(from)
		if next.IsZero() || !next.After(from) {
			t.Fatalf("%q in %q: next is %s", spec, zone, next)
		}
		if second := times.Next(next); second.Sub(next) < time.Minute {
			t.Fatalf("%q in %q: runs %s apart", spec, zone, second.Sub(next))
		}
	})
}
