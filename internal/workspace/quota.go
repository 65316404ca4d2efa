package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrNoRoom: another workspace would be more than a quota allows, and nothing may go for it.
var ErrNoRoom = errors.New("no room for another workspace")

// Room bounds workspaces together. Zero values are no bound.
type Room struct {
	Count int
	Bytes int64 // a new one is made while the sum is below; what one task fills is bounded by its box
}

func (r Room) full(n int, bytes int64) bool {
	return (r.Count > 0 && n >= r.Count) || (r.Bytes > 0 && bytes >= r.Bytes)
}

// Tenant is a workspace as a quota sees it.
type Tenant struct {
	ID, Route string
	Bytes     int64
	Use
}

// Admit makes room for one more workspace of a route: it names the workspaces that have to go, which are never needed ones, oldest first and
// no more than it takes. ErrNoRoom when all that may go is not enough; then nothing goes.
func Admit(all []Tenant, route string, host, own Room) (gone []Tenant, err error) {
	idle := slices.DeleteFunc(slices.Clone(all), func(t Tenant) bool { return t.Needed })
	slices.SortStableFunc(idle, func(a, b Tenant) int { return cmp.Or(a.Last.Compare(b.Last), strings.Compare(a.ID, b.ID)) })
	left := slices.Clone(all)
	free := func(r Room, mine func(Tenant) bool) bool {
		for {
			n, bytes := usage(left, mine)
			if !r.full(n, bytes) {
				return true
			}
			at := slices.IndexFunc(idle, mine)
			if at < 0 {
				return false
			}
			gone = append(gone, idle[at])
			left = slices.DeleteFunc(left, func(t Tenant) bool { return t.ID == idle[at].ID })
			idle = slices.Delete(idle, at, at+1)
		}
	}
	ofRoute := func(t Tenant) bool { return t.Route == route }
	anyOf := func(Tenant) bool { return true }
	if !free(own, ofRoute) {
		n, bytes := usage(left, ofRoute)
		return nil, fmt.Errorf("%w: the route %s may have %s, and %s are in use by tasks that have not ended", ErrNoRoom, route, own, Room{n, bytes})
	}
	if !free(host, anyOf) {
		n, bytes := usage(left, anyOf)
		return nil, fmt.Errorf("%w: this host may have %s, and %s are in use by tasks that have not ended", ErrNoRoom, host, Room{n, bytes})
	}
	return gone, nil
}

func usage(all []Tenant, of func(Tenant) bool) (n int, bytes int64) {
	for _, t := range all {
		if of(t) {
			n, bytes = n+1, bytes+t.Bytes
		}
	}
	return n, bytes
}

// String is for people: "12 workspaces, 3.5 GiB".
func (r Room) String() string {
	var parts []string
	if r.Count > 0 {
		parts = append(parts, fmt.Sprintf("%d workspaces", r.Count))
	}
	if r.Bytes > 0 || r.Count == 0 {
		parts = append(parts, Bytes(r.Bytes))
	}
	return strings.Join(parts, ", ")
}

// Bytes words a size.
func Bytes(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// IDs names all workspaces, those that are being made included.
func (s *Store) IDs() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.root, "host"))
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if idShape.MatchString(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// Measured is Size, remembered: a size that was taken at or after since is not taken again.
func (s *Store) Measured(ctx context.Context, id string, since time.Time) (int64, error) {
	if !idShape.MatchString(id) {
		return 0, fmt.Errorf("size of workspace %q: %w", id, ErrUnknown)
	}
	file := filepath.Join(s.hostDir(id), "size")
	if info, err := os.Stat(file); err == nil && !info.ModTime().Before(since) {
		if data, err := os.ReadFile(file); err == nil {
			if n, err := strconv.ParseInt(string(data), 10, 64); err == nil {
				return n, nil
			}
		}
	}
	n, err := s.Size(ctx, id)
	if err != nil {
		return 0, err
	}
	if err := writeFile(file, []byte(strconv.FormatInt(n, 10))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("size of workspace %s: %w", id, err)
	}
	return n, nil
}

// MirrorsSize adds up the mirrors, in bytes.
func (s *Store) MirrorsSize(ctx context.Context) (int64, error) {
	n, err := folderSize(ctx, filepath.Join(s.root, "mirrors"))
	if err != nil {
		return 0, fmt.Errorf("size of the mirrors: %w", err)
	}
	return n, nil
}

// admit asks for room before a workspace is made, one at a time, and reserves the place.
func (s *Store) admit(ctx context.Context, r Request) error {
	if r.Admit == nil {
		return os.MkdirAll(s.hostDir(r.ID), 0o700)
	}
	unlock, err := s.lock(ctx, "admission")
	if err != nil {
		return err
	}
	defer unlock()
	if err := r.Admit(ctx); err != nil {
		return err
	}
	return os.MkdirAll(s.hostDir(r.ID), 0o700)
}
