package sandbox

import (
	"errors"
	"slices"
	"strings"
	"sync"
)

// errCrowd: a box was not made because another one of the same workspace runs that could swap what would be mounted.
var errCrowd = errors.New("a background command of this task runs, and since it started, submodules, worktrees or other protected places of the " +
	"workspace have changed. This bubblewrap cannot name them safely meanwhile: end the background command first, or update bubblewrap to 0.10")

// crowd knows the mount points inside a workspace of the boxes that run on it. A mount point cannot be renamed or removed from inside, so
// paths are safe sources for a new box as long as every running one has the same. A bubblewrap that takes descriptors does not need this.
type crowd struct {
	mu    sync.Mutex
	boxes map[string]*held
}

type held struct {
	points string
	n      int
}

var crowds = crowd{boxes: map[string]*held{}}

// join counts a box in; leave is called when it has ended.
func (c *crowd) join(workspace string, mounts []mount) (leave func(), err error) {
	var inside []string
	for _, m := range mounts {
		if m.dest != workspace && within(workspace, m.dest) {
			inside = append(inside, m.dest)
		}
	}
	slices.Sort(inside)
	points := strings.Join(slices.Compact(inside), "\x00")
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.boxes[workspace]
	if h == nil {
		h = &held{points: points}
		c.boxes[workspace] = h
	}
	if h.points != points {
		return nil, errCrowd
	}
	h.n++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if h.n--; h.n == 0 {
			delete(c.boxes, workspace)
		}
	}, nil
}
