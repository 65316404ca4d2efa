package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"reasonix/internal/testkit/modeld"
)

// runningWith counts processes of the machine whose command line has the text.
func runningWith(text string) (n int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), text) {
			n++
		}
	}
	return n
}

func TestInvariant08_WhatRunsInTheBackgroundEndsAtTheParkAndTheModelIsTold(t *testing.T) {
	mark := "mark-" + filepath.Base(t.TempDir()) + "-" + strings.ReplaceAll(freeAddr(t), ":", "-")
	var mu sync.Mutex
	var last []string
	brain := func(r modeld.Request) modeld.Turn {
		turns := 0
		var users []string
		for _, m := range r.Messages {
			switch m.Role {
			case "assistant":
				turns++
			case "user":
				users = append(users, m.Text())
			}
		}
		mu.Lock()
		last = append(users, r.Results()...)
		mu.Unlock()
		switch turns {
		case 0:
			return modeld.Turn{Text: "I start it.", Calls: []modeld.Call{{Name: "bash", Args: map[string]any{"run_in_background": true,
				"command": "(trap '' TERM; exec setsid bash -c 'sleep 300; : " + mark + "') & echo up; sleep 300"}}}}
		case 1:
			return modeld.Turn{Text: "I look.", Calls: []modeld.Call{{Name: "wait", Args: map[string]any{"timeout": 1}}, {Name: "bash_output", Args: map[string]any{"id": "shell_1"}}}}
		case 2:
			return modeld.Turn{Text: "I ask.", Calls: []modeld.Call{{Name: "ask", Args: map[string]any{"question": "Red or blue?"}}}}
		case 3:
			return modeld.Turn{Text: "I look again.", Calls: []modeld.Call{{Name: "bash_output", Args: map[string]any{"id": "shell_1"}}}}
		}
		return modeld.Turn{Text: "Done: " + strings.Join(r.Results(), " ")}
	}
	w := newWorld(t, brain, func(w *world) { w.posture = "yolo" })
	w.comment("dev", "/reasonix fix start a server")
	w.eventually("it runs", func() bool { return runningWith(mark) > 0 })
	id := w.askID()
	w.eventually("the background has ended at the park", func() bool { return runningWith(mark) == 0 })
	w.comment("lead", "/answer "+id+" blue")
	w.eventually("the task is done", func() bool { return w.said("Done:") == 1 })
	mu.Lock()
	defer mu.Unlock()
	all := strings.Join(last, "\n")
	if !strings.Contains(all, "background commands were ended") || !strings.Contains(all, "shell_1: (trap") {
		t.Errorf("the model was not told:\n%s", all)
	}
	if !strings.Contains(all, "no such background command") {
		t.Errorf("what was ended can still be read:\n%s", all)
	}
}
