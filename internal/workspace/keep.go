package workspace

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Keep says how long workspaces that no task needs stay. Zero values keep them without a bound of that kind.
type Keep struct {
	For   time.Duration // since the last use
	Count int           // newest first
}

// Use is what the tasks say about a workspace.
type Use struct {
	Needed bool      // a task that has not ended works on it
	Last   time.Time // end of the last task
}

// Expired lists the workspaces that may go, oldest first. One that is needed never is; one that no task knows counts from the time when
// it was made.
func (k Keep) Expired(all []Info, uses map[string]Use, now time.Time) []Info {
	type aged struct {
		Info
		last time.Time
	}
	var idle []aged
	for _, i := range all {
		u, known := uses[i.ID]
		switch {
		case u.Needed:
		case known:
			idle = append(idle, aged{i, u.Last})
		default:
			idle = append(idle, aged{i, i.Created})
		}
	}
	slices.SortFunc(idle, func(a, b aged) int { return b.last.Compare(a.last) })
	var out []Info
	for n, a := range idle {
		if (k.For > 0 && now.Sub(a.last) > k.For) || (k.Count > 0 && n >= k.Count) {
			out = append(out, a.Info)
		}
	}
	slices.Reverse(out)
	return out
}

// Snapshots lists what was kept of a workspace, oldest first. ErrUnknown.
func (s *Store) Snapshots(ctx context.Context, id string) ([]Snapshot, error) {
	if !idShape.MatchString(id) {
		return nil, fmt.Errorf("snapshots of workspace %q: %w", id, ErrUnknown)
	}
	if _, err := s.readMeta(id); err != nil {
		return nil, fmt.Errorf("snapshots of workspace %s: %w", id, err)
	}
	all, err := s.snapshots(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("snapshots of workspace %s: %w", id, err)
	}
	return all, nil
}

// Size adds up the files of a workspace and of what the host keeps about it, in bytes of the disk, without following links.
func (s *Store) Size(ctx context.Context, id string) (int64, error) {
	if !idShape.MatchString(id) {
		return 0, fmt.Errorf("size of workspace %q: %w", id, ErrUnknown)
	}
	var total int64
	for _, dir := range []string{s.workDir(id), s.hostDir(id)} {
		n, err := folderSize(ctx, dir)
		if err != nil {
			return 0, fmt.Errorf("size of workspace %s: %w", id, err)
		}
		total += n
	}
	return total, nil
}
