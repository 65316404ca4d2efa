package tui

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"reasonix/internal/agent"
	"reasonix/internal/chat"
	"reasonix/internal/permission"
)

// Scope says how long an answer holds.
type Scope string

// The scopes. Project and User are written into that configuration file.
const (
	Once    Scope = "once"
	Session Scope = "session"
	Project Scope = "project"
	User    Scope = "user"
)

// choice is one way to answer a card.
type choice struct {
	key    string // what the person types
	label  string
	answer string // for the agent
	scope  Scope
	rules  []string // grants to pick from, narrowest first
	dirs   []string // folders that the grant opens
	text   textUse
}

type textUse int

const (
	textNone textUse = iota
	textMay          // text after the key goes along
	textMust
)

// card is a question as the terminal shows it.
type card struct {
	callID  string
	digest  string
	title   string
	body    string
	fields  []string
	choices []choice
	free    bool // any other text is the answer
}

// files are where persisted grants go, for the words on a card.
type files struct{ project, user string }

// cardOf words what waits for the person.
func cardOf(p agent.Pending, f files) card {
	c := card{callID: p.CallID, digest: p.Digest, title: p.Title, body: p.Text}
	switch p.Kind {
	case "question":
		return questionCard(c, p)
	case "plan":
		c.fields = []string{"Nothing was changed yet. The approval lets this plan's ordinary changes through until the request is done; rules and the sandbox stay."}
		c.choices = []choice{
			{key: "y", label: "approve the plan", answer: "approve"},
			{key: "c", label: "approve with changes: c WHAT TO CHANGE", answer: "approve-changes", text: textMust},
			{key: "n", label: "reject it; text behind n is told to the model", answer: "reject", text: textMay},
		}
		return c
	}
	if p.Title == "" {
		c.title = "Allow " + p.Tool + "?"
	}
	c.fields = append(c.fields, "asked because: "+p.Decision.Reason)
	if p.Decision.Class != "" && p.Decision.Class != permission.Plain {
		c.fields = append(c.fields, fmt.Sprintf("class: %s, because of %s", p.Decision.Class, p.Decision.Offending))
	}
	if p.Drift != "" {
		c.fields = append(c.fields, "it is asked again, because something changed since:\n"+p.Drift)
	}
	c.fields = append(c.fields, "digest: "+p.Digest)
	c.choices = actionChoices(p, f)
	return c
}

func questionCard(c card, p agent.Pending) card {
	for i, o := range p.Options {
		c.choices = append(c.choices, choice{key: strconv.Itoa(i + 1), label: o, answer: "answer"})
	}
	c.free = true
	c.fields = []string{"type the answer"}
	if len(p.Options) > 0 {
		c.fields = []string{"type a number, or an answer of your own"}
	}
	return c
}

func actionChoices(p agent.Pending, f files) []choice {
	yes := choice{key: "y", label: "yes, once", answer: "allow", scope: Once}
	no := choice{key: "n", label: "no; text behind n is told to the model", answer: "deny", text: textMay}
	out := []choice{yes}
	grant := func(rules, dirs []string, what string) {
		for _, s := range []struct {
			key, label string
			scope      Scope
		}{{"s", "for this session", Session}, {"p", "always in this project, written into " + f.project, Project}, {"u", "always, written into " + f.user, User}} {
			if s.scope == Project && f.project == "" {
				continue
			}
			out = append(out, choice{key: s.key, label: s.label + what, answer: "allow", scope: s.scope, rules: rules, dirs: dirs})
		}
	}
	switch {
	case p.Decision.Kind == permission.KindWrite && len(p.Decision.Folders) > 0:
		grant(nil, p.Decision.Folders, ": write "+strings.Join(p.Decision.Folders, ", "))
	case p.Decision.Kind == "" || p.Decision.Kind == permission.KindApproval:
		if len(p.Offers) > 0 {
			what := p.Offers[0]
			if strings.HasPrefix(what, "Bash=") {
				what = "exactly this line" // it stands whole on the card
			}
			grant(p.Offers, nil, ": "+what)
		}
	}
	return append(out, no)
}

// text is the card as lines. What the model wrote stands between the bars, with every hidden character made visible.
func (c card) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n? %s\n", chat.Visible(c.title))
	for line := range strings.SplitSeq(strings.TrimRight(chat.Visible(c.body), "\n"), "\n") {
		fmt.Fprintf(&b, "  | %s\n", line)
	}
	for _, f := range c.fields {
		fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(chat.Visible(f), "\n", "\n  "))
	}
	for _, ch := range c.choices {
		fmt.Fprintf(&b, "  [%s] %s\n", ch.key, chat.Visible(ch.label))
		if len(ch.rules) > 1 && ch.scope == Session {
			for i, r := range ch.rules[1:] {
				fmt.Fprintf(&b, "      with a number behind the letter, as in %s%d: %s\n", ch.key, i+2, chat.Visible(r))
			}
		}
	}
	return b.String()
}

// again is what is shown where the card was read already.
func (c card) again() string {
	keys := make([]string, len(c.choices))
	for i, ch := range c.choices {
		keys[i] = ch.key
	}
	return fmt.Sprintf("? %s [%s]\n", chat.Visible(c.title), strings.Join(keys, "/"))
}

// ways are the answers that there are.
func (c card) ways() string {
	if c.free {
		return "Ctrl-C leaves it open."
	}
	var keys []string
	tell := ""
	for _, ch := range c.choices {
		key := ch.key
		for i := range ch.rules[min(1, len(ch.rules)):] {
			key += fmt.Sprintf(", %s%d", ch.key, i+2)
		}
		keys = append(keys, key)
		if ch.text == textMay {
			tell = fmt.Sprintf(" %s TEXT says no and tells the model why.", ch.key)
		}
	}
	return "Answer with " + strings.Join(keys, ", ") + "." + tell + " Ctrl-C leaves it open."
}

// picked is a choice with what was said beside it.
type picked struct {
	choice
	rule string
	text string
}

// pick reads what the person typed. Only an exact key counts as consent: nothing is guessed from prose.
func (c card) pick(line string) (picked, error) {
	line = strings.TrimSpace(line)
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	for _, ch := range c.choices {
		n, ok := ch.matches(strings.ToLower(word))
		if !ok {
			continue
		}
		p := picked{choice: ch, text: rest}
		if c.free && rest != "" {
			break // "2 of them" is an answer in words
		}
		switch {
		case ch.text == textNone && rest != "":
			return p, fmt.Errorf("%s takes nothing behind it; to say something, use n TEXT", ch.key)
		case ch.text == textMust && rest == "":
			return p, fmt.Errorf("say it behind %s", ch.key)
		}
		if len(ch.rules) > 0 {
			p.rule = ch.rules[n]
		}
		if c.free {
			p.text = ch.label
		}
		return p, nil
	}
	if c.free && line != "" {
		return picked{choice: choice{answer: "answer"}, text: line}, nil
	}
	if c.free {
		return picked{}, errors.New("an answer is needed")
	}
	return picked{}, errors.New("that is no answer, so nothing was decided")
}

// matches tells whether the word is this choice's key, and which of its rules a number behind it picks.
func (ch choice) matches(word string) (rule int, ok bool) {
	if word == ch.key {
		return 0, true
	}
	digits, ok := strings.CutPrefix(word, ch.key)
	if !ok || len(ch.rules) == 0 {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > len(ch.rules) {
		return 0, false
	}
	return n - 1, true
}
