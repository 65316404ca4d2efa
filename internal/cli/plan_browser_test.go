package cli_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"reasonix/internal/testkit/modeld"
)

// longPlan is longer than a card shows at once: it has to be scrolled to its end before it can be approved.
func longPlan() string {
	var b strings.Builder
	b.WriteString("# Write the release notes\n\nNothing but `NOTES.md` is touched.\n\n")
	for i := range 30 {
		fmt.Fprintf(&b, "%d. Read what changed in part %d of the house\n", i+1, i+1)
	}
	b.WriteString("\n## How it is checked\n\n`grep` finds the heading. LAST LINE OF THE PLAN.")
	return b.String()
}

// noter plans, and carries the plan out with what the approval changed; a rejected plan it drops.
func noter(r modeld.Request) modeld.Turn {
	turn := 0
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			turn++
		}
		if m.Role == "tool" && strings.Contains(m.Text(), "The plan is rejected") {
			return modeld.Turn{Text: "The plan was turned down, so nothing was changed."}
		}
	}
	call := func(text, name string, args map[string]any) modeld.Turn {
		return modeld.Turn{Text: text, Calls: []modeld.Call{{Name: name, Args: args}}}
	}
	item := func(text, status string) map[string]any { return map[string]any{"content": text, "status": status} }
	sign := func(step string, evidence map[string]any) map[string]any {
		return map[string]any{"step": step, "summary": "done", "evidence": []any{evidence}}
	}
	switch turn {
	case 0:
		return call("I begin at once.", "write_file", map[string]any{"path": "NOTES.md", "content": "too early\n"})
	case 1:
		return call("Then I plan first.", "exit_plan_mode", map[string]any{"plan": longPlan()})
	case 2:
		return call("I carry it out.", "todo_write", map[string]any{"todos": []any{item("write NOTES.md", "in_progress"), item("check it", "pending")}})
	case 3:
		return call("I write.", "write_file", map[string]any{"path": "NOTES.md", "content": "# Notes in French\n"})
	case 4:
		return call("That was the first step.", "complete_step", sign("write NOTES.md", map[string]any{"kind": "diff", "paths": []string{"NOTES.md"}}))
	case 5:
		return call("And the second.", "complete_step", sign("check it", map[string]any{"kind": "manual", "note": "read it through"}))
	}
	return modeld.Turn{Text: "The notes are written in French, as you asked."}
}

// consoleWorld has a console room whose requests are planned first.
func consoleWorld(t *testing.T) *world {
	return newWorld(t, noter, func(w *world) {
		w.console, w.extra = freeAddr(t), `[[people]]
name = "visitor"
role = "approver"
console = "visitor"
[[routes]]
name = "room"
on = "console"
mode = "plan"
posture = "ask"
repo = "api"
asks = { approvers = ["visitor"], requester_may_approve = true }
`
	})
}

var loginLink = regexp.MustCompile(`http://\S+/login\?code=[^\s"\\]+`)

// again is kill -9 and a new start, and the page as a person finds it who loads it again.
func (v visitor) again(w *world) {
	v.t.Helper()
	w.kill()
	w.start()
	v.do(chromedp.Reload())
}

func (v visitor) asks(text string) {
	v.t.Helper()
	v.do(chromedp.Navigate(v.home()))
	v.sees("#requestform", "")
	v.do(chromedp.SendKeys("#text", text), chromedp.Click("#requestform button"))
}

func (v visitor) home() string {
	s, err := chromedp.Run(v.ctx, chromedp.Evaluate[string]("location.origin + '/'"))
	if err != nil {
		v.t.Fatal(err)
	}
	return s
}

// writes opens an answer that takes text and types it, as often as it takes: the page may move under the pointer.
func (v visitor) writes(answer, text string) {
	v.t.Helper()
	there := func(js string) bool {
		ok, err := chromedp.Run(v.ctx, chromedp.Evaluate[bool](js))
		return err == nil && ok
	}
	for range 20 {
		if !there(fmt.Sprintf(`document.querySelector(%q).open`, answer)) {
			_ = chromedp.Do(v.ctx, chromedp.Click(answer+" summary"))
			continue
		}
		_ = chromedp.Do(v.ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector(%q + " textarea").value = ""`, answer)), chromedp.SendKeys(answer+" textarea", text))
		if there(fmt.Sprintf(`document.querySelector(%q + " textarea").value === %q`, answer, text)) {
			return
		}
	}
	v.t.Fatalf("%q cannot be written into %s:\n%s", text, answer, v.page())
}

// says waits until a script's condition holds.
func (v visitor) says(what, js string) {
	v.t.Helper()
	v.sees("body", "")
	ok, err := chromedp.Run(v.ctx, chromedp.Evaluate[bool](js))
	if err != nil || !ok {
		v.t.Fatalf("%s: %v\n%s", what, err, v.page())
	}
}

// TestAPlanInTheBrowser is a plan from a console room, in a real browser against a real process that is killed while the plan waits: approved with
// changes, carried out, and shown in a receipt; and another one that is turned down.
func TestAPlanInTheBrowser(t *testing.T) {
	v := browse(t)
	w := consoleWorld(t)
	w.eventually("the link", func() bool { return loginLink.MatchString(w.log.String()) })
	v.do(chromedp.Navigate(loginLink.FindString(w.log.String())))
	v.sees("#requestform", "") // signing in takes a moment after the link was opened

	v.asks("Write the release notes.")
	v.sees("article.ask.open", "Approve the plan?")
	v.sees("article.ask.open", "LAST LINE OF THE PLAN.") // whole, not its head
	v.sees(".controls", "it waits for approval")
	v.picture("plan-1-asked")
	v.again(w)
	v.sees("article.ask.open", "LAST LINE OF THE PLAN.")
	v.says("consent before the end was read", `[...document.querySelectorAll('article.ask.open [data-consent]')].every(b => b.disabled || b.getAttribute('aria-disabled') === 'true')`)
	v.do(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll('article.ask.open *').forEach(e => { if (e.scrollHeight > e.clientHeight + 4) e.scrollTop = e.scrollHeight })`))
	v.writes(`article.ask.open details.write:nth-of-type(1)`, "Write them in French.")
	v.picture("plan-2-changes")
	v.do(chromedp.Click(`article.ask.open button[value="approve-changes"]`))
	v.sees("article.ask.settled", "Write them in French.")
	v.sees("#result", "The notes are written in French")
	v.sees(".diff .add", "# Notes in French")
	v.sees(".receipt", "unverified: check it: on the model's word: read it through")
	v.sees(".receipt", "visitor approved exit_plan_mode")
	v.sees(".receipt", "refused: write_file NOTES.md")
	v.sees("#feed", "approved with changes by visitor: Write them in French.")
	v.sees(".controls", "approved by visitor")
	v.picture("plan-3-done")

	v.asks("Write other notes.")
	v.sees("article.ask.open", "LAST LINE OF THE PLAN.")
	v.again(w)
	v.sees("article.ask.open", "LAST LINE OF THE PLAN.")
	v.writes(`article.ask.open details.write:nth-of-type(2)`, "Not this week.") // refusing needs no reading
	v.do(chromedp.Click(`article.ask.open button[value="reject"]`))
	v.sees("article.ask.settled", "Not this week.")
	v.sees("#result", "nothing was changed")
	v.sees(".controls", "turned down")
	if strings.Contains(v.page(), "Changes +") {
		t.Errorf("a plan that was turned down changed something:\n%s", v.page())
	}
	v.picture("plan-4-rejected")
}
