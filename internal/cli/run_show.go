package cli

import (
	"fmt"
	"sync"

	"reasonix/internal/agent"
	"reasonix/internal/tui"
)

// terminal shows a run to the person who started it: the model's text on standard output, what it does on standard error.
type terminal struct {
	*app
	quiet  bool
	mu     sync.Mutex
	inText bool
}

func (t *terminal) observe(o agent.Observation) {
	if t.quiet {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if o.Kind == "text" {
		fmt.Fprint(t.out, visible(o.Text))
		t.inText = true
		return
	}
	if s := tui.Shown(o); s != "" || o.Kind == "turn" {
		t.breakLine()
		fmt.Fprint(t.errs, s)
	}
}

func (t *terminal) breakLine() {
	if t.inText {
		fmt.Fprintln(t.out)
		t.inText = false
	}
}

func (t *terminal) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.breakLine()
}
