package console

import (
	"strings"

	"reasonix/internal/chat"
)

const (
	tallLines = 30
	tallChars = 2000
)

// askCard is one ask as it stands on a page.
type askCard struct {
	chat.AskView
	Key      string // element id; changes with the ask's state, so an unchanged card is left alone by a refresh
	Keep     bool   // an unchanged card on the page stays as it is, with what was typed into it
	Open     bool
	Nonce    string
	Blocks   []cardBlock
	Drift    []chat.Field // what changed since it was asked before
	Facts    []chat.Field
	Plain    []chat.Button
	Inputs   []chat.Button
	MustRead bool // a block is long: consent counts only after its end was seen
	Hidden   int  // invisible characters in the blocks
	TaskLink bool
	Outcome  *outcome
}

type cardBlock struct {
	chat.Block
	Tall bool
}

func (d *Door) card(a chat.AskView) askCard {
	c := askCard{AskView: a, Open: a.State == "open", Keep: true, Nonce: d.nonce()}
	c.Key = "ask-" + a.ID + "-" + digestOf(mark(a))
	for _, b := range a.Blocks {
		tall := len(b.Text) > tallChars || countLines(b.Text) > tallLines
		c.Blocks = append(c.Blocks, cardBlock{b, tall})
		c.MustRead = c.MustRead || tall
		c.Hidden += hidden(b.Text)
	}
	for _, f := range a.Fields {
		if strings.Contains(strings.ToLower(f.Label), "changed") || strings.EqualFold(f.Label, "drift") {
			c.Drift = append(c.Drift, f)
		} else {
			c.Facts = append(c.Facts, f)
		}
	}
	for _, b := range a.Buttons {
		if b.Input {
			c.Inputs = append(c.Inputs, b)
		} else {
			c.Plain = append(c.Plain, b)
		}
	}
	return c
}

// mark says what can change about an ask.
func mark(a chat.AskView) string {
	parts := []string{a.ID, a.State, a.Answer}
	for _, f := range a.Fields {
		parts = append(parts, f.Label, f.Value)
	}
	return strings.Join(parts, "\x1f")
}

// Consents tells whether a button lets something happen; refusing needs no reading.
func (c askCard) Consents(choice string) bool {
	switch choice {
	case "deny", "reject", "cancel", "stop":
		return false
	}
	return true
}

// Direct tells whether the only thing to do is to write an answer: its field stands open.
func (c askCard) Direct() bool { return len(c.Inputs) == 1 && len(c.Plain) == 0 }

// offers tells whether the ask has such a choice, and whether it takes text.
func offers(a chat.AskView, choice string) (chat.Button, bool) {
	for _, b := range a.Buttons {
		if b.Choice == choice {
			return b, true
		}
	}
	return chat.Button{}, false
}
