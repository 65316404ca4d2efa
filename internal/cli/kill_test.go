package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/testkit/githubd"
	"reasonix/internal/testkit/modeld"
)

// TestKillNineAtAnyMoment kills the whole host at every stage of the story. After each restart the effect happened at most once and the
// final word stands exactly once where the work was asked for.
func TestKillNineAtAnyMoment(t *testing.T) {
	for _, c := range []struct {
		name    string
		posture string
		wait    string // what the command does after its effect
		until   func(w *world)
		effects int // after everything
		says    string
	}{
		{name: "queued", posture: "auto", wait: "true", effects: 1, says: "Done:", until: func(*world) {}},
		{name: "mid-stream", posture: "auto", wait: "true", effects: 1, says: "Done:", until: func(w *world) {
			w.eventually("the model streams", func() bool { return w.model.Calls() > 0 })
		}},
		{name: "during bash", posture: "auto", wait: "sleep 300", effects: 1, says: "unknown", until: func(w *world) {
			w.eventually("the command has had its effect", func() bool { return w.runs() > 0 })
		}},
		{name: "parked", posture: "ask", wait: "true", effects: 1, says: "Done:", until: func(w *world) { w.askID() }},
		{name: "between decide and continue", posture: "ask", wait: "true", effects: 1, says: "Done:", until: func(w *world) {
			w.comment("lead", "/approve "+w.askID())
		}},
		{name: "before the final post", posture: "auto", wait: "true", effects: 1, says: "Done:", until: func(w *world) {
			w.eventually("the final post is on its way", func() bool { return w.github.Calls("POST comments") > 1 })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var effects string
			hold := make(chan struct{})
			w := newWorld(t, func(r modeld.Request) modeld.Turn { return counter(&effects, c.wait)(r) }, func(w *world) {
				w.posture, effects = c.posture, w.effects
				if c.name == "mid-stream" {
					w.model.Fail(modeld.Fault{Hold: hold})
				}
				if c.name == "before the final post" { // it is made, and the answer that says so is lost
					w.github.Fail("POST comments", githubd.Fault{}, githubd.Fault{DropAfter: true})
				}
			})
			w.comment("dev", "/reasonix fix run it")
			c.until(w)
			w.kill()
			close(hold)
			w.start()
			if c.name == "parked" {
				w.comment("lead", "/approve "+w.askID())
			}
			w.eventually("the final word", func() bool { return w.said(c.says) > 0 })
			if got := w.runs(); got != c.effects {
				t.Errorf("the command had its effect %d times, want %d", got, c.effects)
			}
			out, _ := w.cli("bot", "tasks", "--json")
			if strings.Count(out, `"ID"`) != 1 {
				t.Errorf("more or less than one task: %s", out)
			}
			w.settled()
			if n := w.said("Done:"); n != 1 {
				t.Errorf("the final word was said %d times", n)
			}
		})
	}
}

// settled waits until the host has nothing left to post.
func (w *world) settled() {
	w.t.Helper()
	w.eventually("the task is completed", func() bool {
		out, _ := w.cli("bot", "tasks")
		return strings.Contains(out, "completed")
	})
	_, err := os.Stat(filepath.Join(w.home, "state.db"))
	if err != nil {
		w.t.Fatal(err)
	}
}
