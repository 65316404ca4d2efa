package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"reasonix/internal/budget"
	"reasonix/internal/goal"
	"reasonix/internal/run"
)

var clock = time.Now

const help = `  /status                 posture, mode, contract, permission, sandbox and budget, side by side
  /posture ask|auto|yolo  how needed approvals resolve, from the next call on
  /plan [REQUEST]         plan first: nothing is changed before you approve. Without a request: for all that follow
  /goal OBJECTIVE         work on it over as many turns as it takes;  /goal clear gives it up
  /normal                 ordinary requests again
  /budget [LIMITS]        show or set limits of a request: tokens=200000 cost="5 USD" steps=50 time=30m, or off
  /permissions            what was granted for this session;  /permissions revoke N takes one back
  /continue               go on with a request that stopped
  /new                    begin a new session; this one is kept
  /resume ID              go on with another session of this folder
  /quit                   leave (Ctrl-D too). A question stays open: reasonix chat --continue asks it again
While the model works: what you type is read at its next turn; /status and /posture count at once; /stop or Ctrl-C interrupts it.
At a question: a letter in brackets, or /help, /status, /posture, /budget, /permissions, /quit; Ctrl-C leaves it open.`

// idle are the commands that would begin or end something; they wait for an open question.
var idle = []string{"/plan", "/goal", "/normal", "/continue", "/new", "/clear", "/resume", "/stop"}

// command takes a slash command while nothing runs.
func (t *Talk) command(ctx context.Context, line string) error {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "/plan":
		return t.plan(ctx, rest)
	case "/goal":
		return t.pursue(ctx, rest)
	case "/normal":
		t.mode = run.ModeRun
		t.say("What you ask for now is an ordinary request.")
		return t.dropGoal(ctx)
	case "/continue":
		if !t.state.unfinished() {
			t.say("There is nothing to go on with.")
			return nil
		}
		return t.work(ctx, false)
	case "/new", "/clear":
		t.next, t.left = Next{New: true}, true
		return nil
	case "/resume":
		if rest == "" {
			t.say("Say which: /resume ID. `reasonix chat --continue` takes the last one.")
			return nil
		}
		t.next, t.left = Next{Resume: rest}, true
		return nil
	case "/quit", "/exit":
		t.left = true
		return nil
	case "/stop":
		t.say("Nothing is running. /quit leaves.")
		return nil
	}
	return t.aside(ctx, line)
}

// aside are the commands that may be given at a question too.
func (t *Talk) aside(ctx context.Context, line string) error {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "/help":
		t.say("%s", help)
	case "/status":
		t.status()
	case "/posture":
		return t.posture(ctx, rest)
	case "/budget":
		return t.budget(ctx, rest)
	case "/permissions":
		return t.permissions(ctx, rest)
	case "/quit", "/exit":
		t.left = true
		return io.EOF
	default:
		t.say("There is no %s here. /help lists the commands.", word)
	}
	return nil
}

func (t *Talk) plan(ctx context.Context, rest string) error {
	if err := t.dropGoal(ctx); err != nil {
		return err
	}
	if rest == "" {
		t.mode = run.ModePlan
		t.say("Plan first: what you ask for now is planned, and nothing is changed before you approve. /normal ends it.")
		return nil
	}
	return t.ask(ctx, run.ModePlan, rest)
}

func (t *Talk) pursue(ctx context.Context, rest string) error {
	switch rest {
	case "":
		if t.state.pursuing() {
			t.say("The goal: %s", t.state.request.Text)
			return nil
		}
		t.say("Say the objective: /goal OBJECTIVE")
		return nil
	case "clear":
		if !t.state.pursuing() {
			t.say("There is no goal.")
			return nil
		}
		return t.dropGoal(ctx)
	}
	t.mode = run.ModeRun
	return t.ask(ctx, run.ModeGoal, rest)
}

func (t *Talk) dropGoal(ctx context.Context) error {
	if !t.state.pursuing() {
		return nil
	}
	t.say("The goal is given up: %s", oneLine(t.state.request.Text))
	return t.note(ctx, noteRequest, Request{})
}

func (t *Talk) posture(ctx context.Context, to string) error {
	if err := t.setPosture(to); err != nil {
		t.say("%v", err)
		return nil
	}
	if t.state.posture == to {
		return nil
	}
	return t.notePosture(ctx, to)
}

// setPosture changes it from the next call on; a run that works records it itself.
func (t *Talk) setPosture(to string) error {
	switch to {
	case "ask", "auto", "yolo":
	case "":
		t.say("The posture is %s. /posture ask, auto or yolo changes it.", t.standing.Posture())
		return nil
	default:
		return fmt.Errorf("posture %q: use ask, auto or yolo", to)
	}
	t.standing.SetPosture(to)
	t.say("%s", map[string]string{
		"ask":  "Posture ask: changes and commands that no rule allows are asked about.",
		"auto": "Posture auto: ordinary changes and commands run without asking; ask and deny rules, plans and lines that need a person do not.",
		"yolo": "Posture yolo: everything that no deny rule forbids runs without asking. Plans, questions and writes outside the folder still wait for you.",
	}[to])
	return nil
}

func (t *Talk) notePosture(ctx context.Context, to string) error {
	return t.note(ctx, run.NotePosture, run.PostureNote{From: t.state.posture, To: to, By: t.o.By})
}

func (t *Talk) budget(ctx context.Context, rest string) error {
	if rest == "" {
		t.say("Budget: %s", t.budgetWords())
		return nil
	}
	l, err := budget.ParseLimits(rest)
	if err != nil {
		t.say("%v", err)
		return nil
	}
	if err := t.note(ctx, noteLimits, l); err != nil {
		return err
	}
	t.say("Budget of this and the following requests: %s", t.budgetWords())
	return nil
}

func (t *Talk) budgetWords() string {
	return budget.Words(t.limits(t.state.request.Mode), t.state.spent, t.o.Bench.Price().Currency)
}

func (t *Talk) permissions(ctx context.Context, rest string) error {
	word, n, _ := strings.Cut(rest, " ")
	switch word {
	case "":
		if len(t.state.grants) == 0 {
			t.say("Nothing was granted for this session. `reasonix permission list` shows the rules of the files.")
		}
		for i, g := range t.state.grants {
			t.say("  %d  %s", i+1, g)
		}
		return nil
	case "revoke":
		i, err := strconv.Atoi(strings.TrimSpace(n))
		if err != nil || i < 1 || i > len(t.state.grants) {
			t.say("Say which number: /permissions lists them.")
			return nil
		}
		g := t.state.grants[i-1]
		g.Revoked = true
		if err := t.note(ctx, noteGrant, g); err != nil {
			return err
		}
		t.say("Revoked for this session: %s. A rule in a file stays until `reasonix permission revoke` takes it out.", g)
		return nil
	}
	t.say("%v", errors.New("use /permissions or /permissions revoke N"))
	return nil
}

// status shows the controls side by side, so that none is taken for another.
func (t *Talk) status() {
	t.mu.Lock()
	defer t.mu.Unlock()
	mode := t.mode
	if t.state.unfinished() {
		mode = t.state.request.Mode
	}
	lines := []Line{{"posture", t.standing.Posture()}, {"mode", t.modeWords(mode)}, {"contract", t.contract()}}
	lines = append(lines, t.o.Bench.Describe(t.now(mode))...)
	lines = append(lines, Line{"granted", fmt.Sprintf("%d for this session", len(t.state.grants))}, Line{"budget", t.budgetWords()}, Line{"session", t.o.Session.ID()})
	for _, l := range lines {
		t.say("  %-11s %s", l.Label, l.Text)
	}
}

func (t *Talk) modeWords(mode string) string {
	switch mode {
	case run.ModePlan:
		if t.standing.Window() {
			return "plan, approved: its ordinary changes go through"
		}
		return "plan: nothing is changed before you approve"
	case run.ModeGoal:
		return "goal: " + oneLine(t.state.request.Text)
	}
	return "normal"
}

// contract names the parts of the task contract that the request spells out.
func (t *Talk) contract() string {
	if t.state.request.Key == "" || t.state.cleared {
		return "none yet"
	}
	if s := goal.Sections(t.state.request.Text); len(s) > 0 {
		return strings.Join(s, ", ")
	}
	return "inferred from the request"
}
