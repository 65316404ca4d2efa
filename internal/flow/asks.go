package flow

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"reasonix/internal/agent"
	"reasonix/internal/approval"
	"reasonix/internal/budget"
	"reasonix/internal/chat"
	"reasonix/internal/permission"
	"reasonix/internal/task"
)

// Choices of asks. Answers of the approval kinds map to the agent's allow, deny and answer.
const (
	choiceAllow   = "allow"
	choiceSession = "allow-session"
	choiceAlways  = "allow-always"
	choiceDeny    = "deny"
	choiceAnswer  = "answer"
	choiceRaise   = "raise"
	choiceGoOn    = "continue"
	choiceEnd     = "cancel"
	choiceApprove = "approve"
	choiceChanges = "approve-changes"
	choiceReject  = "reject"
)

// newAsk is the frame that every kind of ask shares.
func newAsk(t task.Task, kind approval.Kind, title string, now time.Time) approval.Ask {
	a := approval.Ask{ID: approval.NewID(), TaskID: t.ID, Kind: kind, State: approval.StateOpen, Title: title, Rules: t.Spec.Asks, Created: now}
	if t.Spec.Expire > 0 {
		a.Expires = now.Add(t.Spec.Expire)
	}
	return a
}

// askFor words a pending call for people.
func askFor(t task.Task, p agent.Pending, now time.Time) approval.Ask {
	kind := approval.Kind(p.Kind)
	a := newAsk(t, kind, p.Title, now)
	a.CallID, a.Digest = p.CallID, p.Digest
	if kind == approval.KindQuestion {
		a.Text, a.Choices = p.Text, questionChoices(p)
		return a
	}
	if kind == approval.KindPlan {
		return planAsk(a, p)
	}
	if a.Title == "" {
		a.Title = "Approve " + p.Tool + "?"
	}
	a.Blocks = actionBlocks(p)
	a.Fields = []chat.Field{{Label: "Tool", Value: p.Tool}, {Label: "Why it is asked", Value: p.Decision.Reason}}
	if p.Decision.Class != "" && p.Decision.Class != permission.Plain {
		a.Fields = append(a.Fields, chat.Field{Label: "Class", Value: strings.TrimSpace(string(p.Decision.Class) + " " + p.Decision.Offending)})
	}
	if p.Tree.Hash != "" {
		a.Fields = append(a.Fields, chat.Field{Label: "Acts on", Value: "workspace " + short(p.Tree.Hash) + " at " + short(p.Tree.Head)})
	}
	if p.Drift != "" {
		a.Text = "What this acts on has changed since it was asked first, so it is asked again. The difference stands below."
		a.Blocks = append(a.Blocks, chat.Block{Name: "difference.diff", Lang: "diff", Text: p.Drift})
	}
	a.Choices = approvalChoices(p)
	return a
}

// planAsk shows the plan whole. With a quorum there is no approval with changes: each would agree to a text of his own.
func planAsk(a approval.Ask, p agent.Pending) approval.Ask {
	a.Text = "Nothing was changed yet. The approval opens the way for this plan's ordinary changes until the task ends; ask and deny rules and the sandbox stay, and a later plan is asked anew."
	a.Blocks = []chat.Block{{Name: "plan.md", Lang: "markdown", Text: p.Text}}
	a.Choices = []approval.Choice{{ID: choiceApprove, Label: "Approve the plan", Style: "primary", Consent: true}}
	if a.Rules.Quorum <= 1 {
		a.Choices = append(a.Choices, approval.Choice{ID: choiceChanges, Label: "Approve with changes", Input: true, Consent: true})
	}
	a.Choices = append(a.Choices, approval.Choice{ID: choiceReject, Label: "Reject, and say why", Style: "danger", Input: true, Optional: true})
	return a
}

func short(hash string) string { return hash[:min(12, len(hash))] }

// actionBlocks are the action, whole: a command as it would run with what else the call says, anything else as its arguments.
func actionBlocks(p agent.Pending) []chat.Block {
	var args map[string]json.RawMessage
	var line string
	if p.Tool == "bash" && json.Unmarshal(p.Args, &args) == nil && json.Unmarshal(args["command"], &line) == nil && line != "" {
		blocks := []chat.Block{{Name: "command.sh", Lang: "bash", Text: line}}
		delete(args, "command")
		if rest, err := json.MarshalIndent(args, "", "  "); err == nil && len(args) > 0 {
			blocks = append(blocks, chat.Block{Name: "options.json", Lang: "json", Text: string(rest)})
		}
		return blocks
	}
	if p.Text != "" {
		return []chat.Block{{Name: p.Tool + ".txt", Text: p.Text}}
	}
	return []chat.Block{{Name: p.Tool + ".json", Lang: "json", Text: string(p.Args)}}
}

func questionChoices(p agent.Pending) []approval.Choice {
	var out []approval.Choice
	for i, o := range p.Options {
		out = append(out, approval.Choice{ID: fmt.Sprintf("option-%d", i+1), Label: o})
	}
	return append(out, approval.Choice{ID: choiceAnswer, Label: "Answer", Input: true})
}

func approvalChoices(p agent.Pending) []approval.Choice {
	out := []approval.Choice{{ID: choiceAllow, Label: "Approve once", Style: "primary", Consent: true}}
	if p.Decision.Kind == permission.KindWrite {
		if dirs := p.Decision.Folders; len(dirs) > 0 {
			what := strings.Join(dirs, ", ")
			out = append(out,
				approval.Choice{ID: choiceSession, Label: "Let this task write " + what, Grant: WriteGrant(dirs...), Consent: true},
				approval.Choice{ID: choiceAlways, Label: "Let every task of this route write " + what, Grant: WriteGrant(dirs...), Consent: true})
		}
		return append(out, approval.Choice{ID: choiceDeny, Label: "Deny", Style: "danger"})
	}
	if len(p.Offers) > 0 {
		rule := p.Offers[0]
		what := rule
		if strings.HasPrefix(rule, "Bash=") {
			what = "exactly this line" // it stands whole on the card
		}
		out = append(out,
			approval.Choice{ID: choiceSession, Label: "Allow " + what + " in this task", Grant: rule, Consent: true},
			approval.Choice{ID: choiceAlways, Label: "Always allow " + what + " on this route", Grant: rule, Consent: true})
	}
	return append(out, approval.Choice{ID: choiceDeny, Label: "Deny", Style: "danger"})
}

// A grant of write access is kept beside the granted rules, in a form of its own: one folder a grant.
const writeGrant = "WriteDir("

// WriteGrant is the form in which write access to folders is granted, a line for each.
func WriteGrant(dirs ...string) string {
	lines := make([]string, len(dirs))
	for i, d := range dirs {
		lines[i] = writeGrant + d + ")"
	}
	return strings.Join(lines, "\n")
}

// granted are the grants that an answer gives; text is a rule, or the lines of WriteGrant.
func granted(g Grant, text string) []Grant {
	lines := []string{text}
	if strings.HasPrefix(text, writeGrant) {
		lines = strings.Split(text, "\n")
	}
	out := make([]Grant, len(lines))
	for i, l := range lines {
		out[i] = g
		out[i].Rule = l
	}
	return out
}

// WriteDir reads a grant of write access; ok is false for any other grant.
func (g Grant) WriteDir() (dir string, ok bool) {
	dir, ok = strings.CutPrefix(g.Rule, writeGrant)
	return strings.TrimSuffix(dir, ")"), ok
}

// limitAsk offers a raise when a limit is reached.
func limitAsk(t task.Task, limit string, now time.Time) approval.Ask {
	a := newAsk(t, approval.KindBudget, "The task reached a limit", now)
	a.Text = fmt.Sprintf("The task stopped at %s. It continues at the same point when the limit is raised.", limit)
	a.Fields = []chat.Field{{Label: "Spent", Value: fmt.Sprintf("%d model calls, %d tokens, %s running", t.Spent.Steps, t.Spent.Tokens, t.Spent.Time.Round(time.Second))}}
	a.Choices = []approval.Choice{
		{ID: choiceRaise, Label: "Raise by the same amount", Style: "primary", Consent: true},
		{ID: choiceEnd, Label: "End the task", Style: "danger"},
	}
	return a
}

// stuckAsk is for a goal that reported blocked, and for trouble that a person can mend.
func stuckAsk(t task.Task, kind approval.Kind, title, why string, now time.Time) approval.Ask {
	a := newAsk(t, kind, title, now)
	a.Text = why
	a.Choices = []approval.Choice{
		{ID: choiceGoOn, Label: "Continue", Style: "primary"},
		{ID: choiceAnswer, Label: "Continue with an answer", Input: true},
		{ID: choiceEnd, Label: "End the task", Style: "danger"},
	}
	return a
}

// decided says what a verdict means for the task and which posts follow. It is pure.
func decided(v approval.Verdict, t task.Task) Judged {
	j := Judged{Verdict: v}
	switch v.Kind {
	case approval.Counted:
		j.Posts = []NewPost{votedPost(v.Ask, t)}
	case approval.Accepted:
		a := v.Ask
		word := fmt.Sprintf("**%s** by %s.", labelOf(a), a.Answer.Person)
		if a.Answer.Text != "" {
			word += " " + a.Answer.Text
		}
		j.Posts = []NewPost{settledPost(a, t, word)}
		effects(&j, a, t)
	}
	return j
}

func effects(j *Judged, a approval.Ask, t task.Task) {
	switch a.Answer.Choice {
	case choiceEnd:
		j.Cancel, j.Result = true, "Ended by "+a.Answer.Person+"."
		j.Posts = append(j.Posts, finalPost(t, "cancelled", j.Result, nil, ""))
	case choiceRaise:
		if r := a.Raise; r != nil {
			j.Raises = []DayRaise{{Account: r.Account, Day: r.Day, Limits: budget.Limits{Tokens: r.Tokens, Cost: r.Cost}}}
			return
		}
		j.Alter = func(t *task.Task) {
			t.Spec.Limits, t.Spec.MaxSteps = budget.Raise(t.Spec.Limits, t.Spent), raisedSteps(t.Spec.MaxSteps, t.Spent.Steps)
		}
	case choiceSession:
		j.Grants = granted(Grant{TaskID: t.ID, By: a.Answer.Person, AskID: a.ID, At: a.Answer.At}, a.Answer.Grant)
	case choiceAlways:
		j.Grants = granted(Grant{Route: t.Spec.Route, By: a.Answer.Person, AskID: a.ID, At: a.Answer.At}, a.Answer.Grant)
	}
}

// raisedSteps does the same for the model calls of a task.
func raisedSteps(limit, spent int) int {
	if limit > 0 && spent >= limit {
		return limit + max(limit, spent)
	}
	return limit
}

func labelOf(a approval.Ask) string {
	for _, c := range a.Choices {
		if c.ID == a.Answer.Choice {
			return c.Label
		}
	}
	return a.Answer.Choice
}

// answersOf are the decisions that the agent continues with.
func answersOf(asks []approval.Ask) []agent.Answer {
	var out []agent.Answer
	for _, a := range asks {
		if a.CallID == "" || a.Answer == nil || a.State == approval.StateOpen || a.State == approval.StateSuperseded {
			continue
		}
		out = append(out, agent.Answer{CallID: a.CallID, AskID: a.ID, Choice: agentChoice(a), Text: answerText(a), By: a.Answer.Person, Digest: a.Digest})
	}
	return out
}

func agentChoice(a approval.Ask) string {
	switch c := a.Answer.Choice; {
	case c == choiceAllow || c == choiceSession || c == choiceAlways:
		return "allow"
	case c == choiceDeny:
		return "deny"
	case strings.HasPrefix(c, "option-"):
		return "answer"
	default:
		return c
	}
}

func answerText(a approval.Ask) string {
	if strings.HasPrefix(a.Answer.Choice, "option-") {
		return labelOf(a)
	}
	return a.Answer.Text
}

// notesOf tell the model what people said to asks that no call waits for; each is appended once.
func notesOf(asks []approval.Ask) []agent.Steer {
	var out []agent.Steer
	for _, a := range asks {
		if a.CallID != "" || a.Answer == nil || a.Kind == approval.KindBudget || a.Answer.Choice == choiceEnd {
			continue
		}
		text := "The host: a person looked at what stopped the task and says to continue."
		if a.Answer.Text != "" {
			text = "The host: a person looked at what stopped the task and answered: " + a.Answer.Text
		}
		out = append(out, agent.Steer{Key: "ask:" + a.ID, Text: text})
	}
	return out
}
