package cron

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones also where the system has none

	"github.com/robfig/cron/v3"
)

const (
	specLimit = 200         // characters
	minEvery  = time.Minute // of @every
)

// Times are the moments of a schedule. Two rules hold over the changes of the clock:
//
//   - A schedule with fixed times (minute and hour are numbers or lists of them) runs once for each of its times a day: a
//     time that the clock jumps over runs at the first moment after the jump, a time that comes twice runs the first time.
//   - An interval (a star, step or range in minute or hour, or @every) goes on evenly: nothing is made up for or left out.
type Times struct {
	spec  *cron.SpecSchedule // nil for @every
	every time.Duration
	fixed bool
	zone  *time.Location
}

// Parse reads five fields, a descriptor such as @daily, or "@every 2h". The zone is an IANA name; empty means UTC. What
// would never run, run every second or mean something else than it says is refused.
func Parse(spec, zone string) (t *Times, err error) {
	defer func() {
		if p := recover(); p != nil {
			t, err = nil, fmt.Errorf("cron %q cannot be read: %v", spec, p)
		}
	}()
	spec = strings.TrimSpace(spec)
	loc, err := loadZone(zone)
	if err != nil {
		return nil, err
	}
	switch {
	case spec == "":
		return nil, errors.New("cron is missing: five fields (minute hour day month weekday) or @daily, @every 2h")
	case len(spec) > specLimit:
		return nil, fmt.Errorf("cron is longer than %d characters", specLimit)
	case strings.HasPrefix(spec, "TZ=") || strings.HasPrefix(spec, "CRON_TZ="):
		return nil, fmt.Errorf("cron %q names a time zone: write it as timezone = \"…\"", spec)
	case strings.HasPrefix(spec, "@every"):
		return parseEvery(spec, loc)
	}
	if err := checkFields(spec); err != nil {
		return nil, err
	}
	parsed, err := cron.ParseStandard(spec)
	if err != nil {
		return nil, fmt.Errorf("cron %q: %w", spec, err)
	}
	s, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("cron %q is of no known kind", spec)
	}
	t = &Times{spec: s, zone: loc, fixed: isFixed(spec)}
	s.Location = loc
	if t.fixed {
		s.Location = time.UTC // computed on the face of the clock, see resolve
	}
	if s.Next(time.Now()).IsZero() {
		return nil, fmt.Errorf("cron %q names a date that does not exist: it would never run", spec)
	}
	return t, nil
}

func loadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if name == "Local" {
		return nil, errors.New(`timezone "Local" would differ from host to host: name a zone such as "Europe/Berlin"`)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("timezone %q is unknown: want a name such as \"Europe/Berlin\"", name)
	}
	return loc, nil
}

func parseEvery(spec string, loc *time.Location) (*Times, error) {
	d, err := time.ParseDuration(strings.TrimSpace(strings.TrimPrefix(spec, "@every")))
	if err != nil {
		return nil, fmt.Errorf("cron %q: want a duration such as \"@every 90m\"", spec)
	}
	if d < minEvery || d%time.Second != 0 {
		return nil, fmt.Errorf("cron %q: want whole seconds, at least %s", spec, minEvery)
	}
	return &Times{every: d, zone: loc}, nil
}

// bounds of the five fields.
var bounds = [5]struct {
	name     string
	min, max int
}{{"minute", 0, 59}, {"hour", 0, 23}, {"day", 1, 31}, {"month", 1, 12}, {"weekday", 0, 6}}

var step = regexp.MustCompile(`/(\d+)`)

// checkFields refuses what the parser would take for something else.
func checkFields(spec string) error {
	if strings.HasPrefix(spec, "@") {
		return nil
	}
	fields := strings.Fields(spec)
	if len(fields) != len(bounds) {
		return fmt.Errorf("cron %q has %d fields, want 5: minute hour day month weekday", spec, len(fields))
	}
	for i, f := range fields {
		b := bounds[i]
		for _, m := range step.FindAllStringSubmatch(f, -1) {
			if n, err := strconv.Atoi(m[1]); err != nil || n == 0 || n > b.max-b.min+1 {
				return fmt.Errorf("cron %q: step %s of the %s is larger than its range or zero", spec, m[1], b.name)
			}
		}
	}
	if day, week := fields[2], fields[4]; stepped(day) && restricted(week) || stepped(week) && restricted(day) {
		return fmt.Errorf("cron %q restricts day and weekday, one by a step: programs differ in what that means, so write lists", spec)
	}
	return nil
}

func restricted(f string) bool { return f != "*" && f != "?" }
func stepped(f string) bool    { return strings.HasPrefix(f, "*/") || strings.HasPrefix(f, "?/") }

func isFixed(spec string) bool {
	switch {
	case spec == "@hourly":
		return false
	case strings.HasPrefix(spec, "@"):
		return true
	}
	fields := strings.Fields(spec)
	return !strings.ContainsAny(fields[0]+fields[1], "*?/-")
}

// Next is the first moment after t, in UTC; zero when there is none within five years.
func (ts *Times) Next(t time.Time) time.Time {
	if ts.every > 0 {
		return t.UTC().Truncate(ts.every).Add(ts.every) // the same on every host and after every restart
	}
	if !ts.fixed {
		return utc(ts.spec.Next(t.In(ts.zone)))
	}
	face := faceOf(t.In(ts.zone))
	for range 10000 {
		if face = ts.spec.Next(face); face.IsZero() {
			return time.Time{}
		}
		if at := resolve(face, ts.zone); at.After(t) {
			return at.UTC()
		}
	}
	return time.Time{}
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// faceOf is what the clock on the wall shows, as if it were UTC.
func faceOf(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// resolve finds the moment at which the clock shows face: the first of two, or the first after a jump over it.
func resolve(face time.Time, zone *time.Location) time.Time {
	var best time.Time
	for _, near := range []time.Duration{-26 * time.Hour, 26 * time.Hour} {
		_, offset := face.Add(near).In(zone).Zone()
		at := face.Add(-time.Duration(offset) * time.Second)
		if faceOf(at.In(zone)).Equal(face) && (best.IsZero() || at.Before(best)) {
			best = at
		}
	}
	if !best.IsZero() {
		return best
	}
	lo, hi := face.Add(-40*time.Hour), face.Add(40*time.Hour)
	for hi.Sub(lo) > time.Second {
		mid := lo.Add(hi.Sub(lo) / 2).Truncate(time.Second)
		if faceOf(mid.In(zone)).Before(face) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// Between lists the moments after from up to and including to, the newest max of them, and counts those left out before.
func (ts *Times) Between(from, to time.Time, max int) (list []time.Time, before int) {
	for at := ts.Next(from); !at.IsZero() && !at.After(to); at = ts.Next(at) {
		list = append(list, at)
		if len(list) > max {
			list = list[1:]
			before++
		}
	}
	return list, before
}
