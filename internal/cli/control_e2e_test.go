package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"reasonix/internal/testkit/modeld"
	"reasonix/internal/testkit/slackd"
)

// planner tries to sneak a file in by a command, presents its plan with what came back, and writes once the plan is approved.
func planner(r modeld.Request) modeld.Turn {
	results := strings.Join(r.Results(), " ")
	call := func(name string, args map[string]any) modeld.Turn {
		return modeld.Turn{Text: "I use " + name + ".", Calls: []modeld.Call{{Name: name, Args: args}}}
	}
	switch {
	case results == "":
		return call("bash", map[string]any{"command": "touch sneaked.txt"})
	case strings.Contains(results, "The plan is approved"):
		return call("write_file", map[string]any{"path": "NOTES.md", "content": "planned\n"})
	case strings.Contains(results, "NOTES.md"):
		return modeld.Turn{Text: "Done: the notes are written."}
	}
	return call("exit_plan_mode", map[string]any{"plan": "Write NOTES.md. The command said: " + results})
}

// planWorld plans on both doors; writing files is not allowed by any rule, only by the plan's window.
func planWorld(t *testing.T) *world {
	return newWorld(t, planner, func(w *world) { w.posture, w.mode, w.allow = "ask", "plan", `["Bash(touch:*)"]` })
}

func TestAPlanIsApprovedWithChangesInAGitHubCommentAcrossKillMinusNine(t *testing.T) {
	w := planWorld(t)
	w.comment("dev", "/reasonix fix write the notes")
	id := w.askID()
	if w.said("Read-only file system") == 0 || w.said("/approve "+id+" YOUR CHANGES") == 0 {
		t.Fatalf("the card: %+v", w.github.BotComments())
	}
	w.kill()
	w.start()
	w.comment("dev", "/approve "+id)
	w.comment("lead", "/approve "+id+" in one line")
	w.eventually("the result", func() bool { return w.said("Done: the notes are written.") == 1 })
	if out, code := w.cli("bot", "tasks", "--json"); code != 0 || !strings.Contains(out, `"Mode": "plan"`) {
		t.Errorf("tasks: %d %s", code, out)
	}
}

func TestAPlanIsApprovedWithASlackButton(t *testing.T) {
	w := planWorld(t)
	w.slack.Deliver(t, w.hook("team"), w.slack.Command("C1", "UDEV", "/reasonix", "fix write the notes"))
	card := w.slack.WaitPost(t, "the card", func(p slackd.Post) bool { return len(p.Buttons()) > 0 })
	if !strings.Contains(card.Shown(), "Write NOTES.md") || len(card.Buttons()) != 3 {
		t.Fatalf("the card: %s %v", card.Shown(), card.Buttons())
	}
	w.slack.Deliver(t, w.hook("team"), w.slack.Click(t, card, "Approve the plan", "ULEAD"))
	w.slack.WaitPost(t, "the result", func(p slackd.Post) bool { return strings.Contains(p.Shown(), "Done: the notes are written.") })
}

var grantLine = regexp.MustCompile(`(?m)^grant (\d+) `)

func TestAGrantIsListedAndRevokedFromTheCommandLine(t *testing.T) {
	var w *world
	brain := func(r modeld.Request) modeld.Turn {
		if results := r.Results(); len(results) > 0 {
			return modeld.Turn{Text: "Done: " + strings.Join(results, " ")}
		}
		return modeld.Turn{Text: "I look.", Calls: []modeld.Call{{Name: "bash", Args: map[string]any{"command": "wc -l README.md"}}}}
	}
	w = newWorld(t, brain, func(w *world) { w.posture = "ask" })
	w.comment("dev", "/reasonix fix count the lines")
	first := w.askID()
	w.comment("lead", "/answer "+first+" allow-always")
	w.eventually("the first result", func() bool { return w.said("Done: ") == 1 })
	out, code := w.cli("permission", "list")
	if code != 0 || !strings.Contains(out, "Bash=wc -l README.md") || !strings.Contains(out, "lead") {
		t.Fatalf("list: %d\n%s", code, out)
	}
	w.comment("dev", "/reasonix fix count again")
	w.eventually("the second result, without a question", func() bool { return w.said("Done: ") == 2 })

	m := grantLine.FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no grant with an id:\n%s", out)
	}
	if out, code := w.cli("permission", "revoke", m[1]); code != 0 {
		t.Fatalf("revoke: %d %s", code, out)
	}
	w.kill()
	w.start()
	w.comment("dev", "/reasonix fix count once more")
	w.eventually("it is asked again", func() bool { return w.askID() != first })
}

// nextAsk waits for an ask that is none of those seen before.
func (w *world) nextAsk(seen map[string]bool) string {
	w.t.Helper()
	id := ""
	w.eventually("another ask is posted", func() bool {
		for _, c := range w.github.BotComments() {
			if m := askIn.FindString(c.Body); m != "" && !seen[m] {
				id = m
			}
		}
		return id != ""
	})
	seen[id] = true
	return id
}

// worker pursues a goal with four commands, says that it is blocked, and completes it with what a person answers.
func worker(effects *string) modeld.Brain {
	return func(r modeld.Request) modeld.Turn {
		done, said := 0, ""
		for _, m := range r.Messages {
			switch m.Role {
			case "tool":
				done++
			case "user":
				said = m.Text()
			}
		}
		command := func(name string) modeld.Turn {
			return modeld.Turn{Calls: []modeld.Call{{Name: "bash", Args: map[string]any{"command": "echo " + name + " >> " + *effects + "/runs"}}}}
		}
		report := func(args map[string]any) modeld.Turn {
			return modeld.Turn{Calls: []modeld.Call{{Name: "update_goal", Args: args}}}
		}
		switch {
		case done < 2:
			return command("same")
		case done < 4:
			return command([]string{"third", "fourth"}[done-2])
		case strings.Contains(said, "blue"):
			return report(map[string]any{"status": "complete", "summary": "All four ran; the colour is blue."})
		}
		return report(map[string]any{"status": "blocked", "reason": "Which colour?"})
	}
}

// TestGoalGrantPostureAndBudgetHoldAcrossKillMinusNine: one goal, and the host dies at each of its questions.
func TestGoalGrantPostureAndBudgetHoldAcrossKillMinusNine(t *testing.T) {
	effects := ""
	w := newWorld(t, worker(&effects), func(w *world) {
		w.posture, w.mode, effects = "ask", "goal", w.effects
		w.publish = "budget = { steps = 3 }\npublish = { pr = false }"
	})
	seen := map[string]bool{}
	again := func() string {
		id := w.nextAsk(seen)
		w.kill()
		w.start()
		return id
	}
	w.comment("dev", "/reasonix fix run all four\nConstraints: in order")
	w.comment("lead", "/answer "+again()+" allow-session") // the line runs a second time without being asked about
	third := again()
	if w.runs() != 2 {
		t.Fatalf("%d commands ran after the grant for the task", w.runs())
	}
	w.comment("boss", "/posture auto")
	w.comment("lead", "/approve "+third)
	w.comment("lead", "/answer "+again()+" raise") // three model calls were the limit
	w.comment("lead", "/answer "+again()+" blue")  // blocked; the fourth command ran under the posture that the administrator set
	w.eventually("the result", func() bool { return w.said("the colour is blue") == 1 })
	if w.runs() != 4 || len(seen) != 4 {
		t.Errorf("%d commands ran, %d questions were asked", w.runs(), len(seen))
	}
	out, _ := w.cli("bot", "tasks", "--json")
	if !strings.Contains(out, `"Posture": "auto"`) || !strings.Contains(out, `"Mode": "goal"`) {
		t.Errorf("tasks: %s", out)
	}
}
