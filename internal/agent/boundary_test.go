package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"reasonix/internal/provider"
)

func TestTheWorkspaceIsKeptAtBoundariesBehindEffectsAndNeverReadUnderOne(t *testing.T) {
	h := newHouse(t,
		turn{calls: []provider.ToolCall{call("a", "read", "r")}},
		turn{calls: []provider.ToolCall{call("b", "write", "w"), call("c", "write", "x")}},
		turn{calls: []provider.ToolCall{call("d", "read", "r")}},
		turn{text: "ok"}, turn{text: "ok again"})
	var seen []string
	h.config = func(c *Config) {
		c.Boundary = func(_ context.Context, changed bool) { seen = append(seen, fmt.Sprintf("boundary(%v)", changed)) }
		c.Quiet = func(context.Context) { seen = append(seen, fmt.Sprintf("quiet, ran %d", len(h.ran))) }
	}
	h.mustRun(StopDone)
	want := "boundary(false); boundary(false); quiet, ran 0; quiet, ran 1; boundary(true); boundary(false)"
	if got := strings.Join(seen, "; "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	seen, h.queue = nil, []Steer{{Key: "more", Text: "go on"}}
	h.mustRun(StopDone) // another attempt: the host may have died before the last effects were kept
	if got := strings.Join(seen, "; "); got != "boundary(true)" {
		t.Errorf("after a restart: %s", got)
	}
}
