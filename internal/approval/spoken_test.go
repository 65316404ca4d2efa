package approval

import (
	"testing"
	"time"

	"reasonix/internal/chat"
)

func TestTheCommandWordsAnswerEveryKindOfAskAndLoseNoText(t *testing.T) {
	plan := []Choice{{ID: "approve", Consent: true}, {ID: "approve-changes", Input: true, Consent: true}, {ID: "reject", Input: true, Optional: true}}
	whole := []Choice{plan[0], plan[2]} // a quorum: no changes
	budget := []Choice{{ID: "raise", Consent: true}, {ID: "cancel"}}
	stuck := []Choice{{ID: "continue"}, {ID: "answer", Input: true}, {ID: "cancel"}}
	for _, c := range []struct {
		choices    []Choice
		word, text string
		want, left string // empty: no answer
	}{
		{plan, "allow", "", "approve", ""},
		{plan, "allow", "only the tests", "approve-changes", "only the tests"},
		{plan, "deny", "", "reject", ""},
		{plan, "deny", "too big", "reject", "too big"},
		{plan, "approve-changes", "", "", ""},
		{plan, "answer", "approve", "approve", ""},
		{plan, "answer", "approve but not the tests", "", ""},
		{plan, "answer", "reject too big", "reject", "too big"},
		{plan, "answer", "looks good", "", ""},
		{whole, "allow", "only the tests", "", ""},
		{budget, "allow", "", "raise", ""},
		{budget, "answer", "raise", "raise", ""},
		{budget, "answer", "cancel that", "", ""},
		{stuck, "answer", "cancel", "cancel", ""},
		{stuck, "answer", "cancel the deploy and use the other one", "answer", "cancel the deploy and use the other one"},
		{stuck, "answer", "use staging", "answer", "use staging"},
	} {
		a := Ask{ID: "ask_1", State: StateOpen, Choices: c.choices, Rules: Rules{Approvers: []string{"lead"}, Quorum: 1}}
		v := Judge(a, Presser{Person: "lead", Role: "approver"}, chat.Press{AskID: a.ID, Choice: c.word, Text: c.text}, time.Now())
		switch {
		case c.want == "" && v.Kind != BadChoice:
			t.Errorf("%s %q: %s, want no answer", c.word, c.text, v.Kind)
		case c.want != "" && (v.Kind != Accepted || v.Ask.Answer.Choice != c.want || v.Ask.Answer.Text != c.left):
			t.Errorf("%s %q: %s %+v, want %s %q", c.word, c.text, v.Kind, v.Ask.Answer, c.want, c.left)
		}
	}
}
