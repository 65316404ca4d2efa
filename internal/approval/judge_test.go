package approval

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"reasonix/internal/chat"
)

var now = time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)

func openAsk() Ask {
	return Ask{
		ID: NewID(), TaskID: "t1", Kind: KindApproval, State: StateOpen, Title: "Run a command",
		Choices: []Choice{
			{ID: "allow", Label: "Approve", Consent: true},
			{ID: "deny", Label: "Deny"},
			{ID: "answer", Label: "Answer", Input: true},
		},
		Rules: Rules{Approvers: []string{"lead", "mate"}, Quorum: 1, Requester: "dev", Then: "deny"},
	}
}

func as(person, role string) Presser {
	return Presser{Actor: chat.Actor{Kind: "console", ID: "c-" + person}, Person: person, Role: role}
}

func TestWhoMayAnswer(t *testing.T) {
	requesterIsLead := openAsk()
	requesterIsLead.Rules.Requester = "lead"
	lenient := requesterIsLead
	lenient.Rules.RequesterMayAnswer = true
	expired := openAsk()
	expired.Expires = now.Add(-time.Second)
	for _, c := range []struct {
		name   string
		ask    Ask
		by     Presser
		choice string
		text   string
		want   VerdictKind
		state  State
	}{
		{"a listed approver", openAsk(), as("lead", "approver"), "allow", "", Accepted, StateAnswered},
		{"an admin who is not listed", openAsk(), as("boss", "admin"), "allow", "", Accepted, StateAnswered},
		{"an approver of another route", openAsk(), as("other", "approver"), "allow", "", NotAllowed, StateOpen},
		{"a stranger", openAsk(), Presser{Actor: chat.Actor{Kind: "slack", ID: "U9"}}, "allow", "", NotAllowed, StateOpen},
		{"a stranger who claims an admin role without a person", openAsk(), Presser{Role: "admin"}, "allow", "", NotAllowed, StateOpen},
		{"the requester, although an approver", requesterIsLead, as("lead", "approver"), "allow", "", NotAllowed, StateOpen},
		{"the requester where the route lets him", lenient, as("lead", "approver"), "allow", "", Accepted, StateAnswered},
		{"a choice that was not offered", openAsk(), as("lead", "approver"), "allow-always", "", BadChoice, StateOpen},
		{"a text answer without text", openAsk(), as("lead", "approver"), "answer", "  ", BadChoice, StateOpen},
		{"a text answer", openAsk(), as("lead", "approver"), "answer", "use v2", Accepted, StateAnswered},
		{"after the expiry", expired, as("lead", "approver"), "allow", "", TooLate, StateOpen},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Judge(c.ask, c.by, chat.Press{AskID: c.ask.ID, Choice: c.choice, Text: c.text}, now)
			if v.Kind != c.want || v.Ask.State != c.state {
				t.Fatalf("got %s, ask %s (%s); want %s, ask %s", v.Kind, v.Ask.State, v.Reason, c.want, c.state)
			}
			if v.Reason == "" {
				t.Fatal("the presser is told nothing")
			}
		})
	}
}

func TestQuorumCountsPersonsNotPresses(t *testing.T) {
	a := openAsk()
	a.Rules.Quorum = 2
	press := chat.Press{AskID: a.ID, Choice: "allow"}
	v := Judge(a, as("lead", "approver"), press, now)
	if v.Kind != Counted {
		t.Fatalf("first consent: %s", v.Kind)
	}
	// The same person again, from another platform identity.
	again := as("lead", "approver")
	again.Actor = chat.Actor{Kind: "slack", ID: "U1"}
	v = Judge(v.Ask, again, press, now)
	if v.Kind != Counted || len(v.Ask.Votes) != 1 {
		t.Fatalf("second press of one person: %s with %d votes", v.Kind, len(v.Ask.Votes))
	}
	v = Judge(v.Ask, as("mate", "approver"), press, now)
	if v.Kind != Accepted || len(v.Ask.Answer.Voters) != 2 {
		t.Fatalf("second person: %s, voters %v", v.Kind, v.Ask.Answer)
	}
}

func TestOneRefusalIsEnoughWhateverTheQuorum(t *testing.T) {
	a := openAsk()
	a.Rules.Quorum = 3
	v := Judge(a, as("mate", "approver"), chat.Press{AskID: a.ID, Choice: "deny"}, now)
	if v.Kind != Accepted || v.Ask.Answer.Choice != "deny" {
		t.Fatalf("got %s", v.Kind)
	}
}

// TestInvariant04_AnAskIsAnsweredOnce: however presses arrive, at most one is accepted, and only from someone who may.
func TestInvariant04_AnAskIsAnsweredOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := openAsk()
		a.Rules.Quorum = rapid.IntRange(1, 3).Draw(t, "quorum")
		accepted := 0
		for range rapid.IntRange(1, 12).Draw(t, "presses") {
			person := rapid.SampledFrom([]string{"lead", "mate", "dev", "boss", "other", ""}).Draw(t, "person")
			role := map[string]string{"boss": "admin", "lead": "approver", "mate": "approver", "other": "approver", "dev": "user"}[person]
			choice := rapid.SampledFrom([]string{"allow", "deny", "nonsense"}).Draw(t, "choice")
			v := Judge(a, as(person, role), chat.Press{AskID: a.ID, Choice: choice}, now)
			if v.Kind == Accepted {
				accepted++
				if person == "dev" || person == "other" || person == "" {
					t.Fatalf("%q was allowed to answer", person)
				}
			}
			a = v.Ask
		}
		if accepted > 1 {
			t.Fatalf("answered %d times", accepted)
		}
	})
}

func TestWhatTimeDoes(t *testing.T) {
	for then, want := range map[string]ExpireOutcome{"deny": ExpireDeny, "": ExpireDeny, "park": ExpireRemind, "cancel": ExpireCancel} {
		a := openAsk()
		a.Rules.Then = then
		a.Expires = now
		got, after := Lapse(a, time.Hour, now)
		if got != want {
			t.Errorf("then=%q: got %q", then, got)
		}
		if again, _ := Lapse(after, time.Hour, now.Add(time.Second)); again != ExpireNothing {
			t.Errorf("then=%q: a second look a second later does %q", then, again)
		}
	}
	if got, _ := Lapse(openAsk(), time.Hour, now); got != ExpireNothing {
		t.Errorf("an ask without expiry lapsed: %q", got)
	}
}

func TestIDsAreUniqueAndReadByCommands(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := NewID()
		if seen[id] || !chat.IsAskID(id) {
			t.Fatalf("bad id %q", id)
		}
		seen[id] = true
	}
}

func TestAnAnswerThatNamesAChoiceIsThatChoiceAndNothingElse(t *testing.T) {
	a := openAsk()
	a.Choices = []Choice{{ID: "allow", Consent: true}, {ID: "allow-session", Grant: "Bash(go test:*)", Consent: true}, {ID: "deny"}}
	for text, want := range map[string]string{" allow-session\n": "allow-session", "deny": "deny", "allow-session please": "", "allow it": "", "": ""} {
		v := Judge(a, as("lead", "approver"), chat.Press{AskID: a.ID, Choice: "answer", Text: text}, now)
		switch {
		case want == "" && v.Kind != BadChoice:
			t.Errorf("%q: %+v", text, v)
		case want != "" && (v.Kind != Accepted || v.Ask.Answer.Choice != want || v.Ask.Answer.Text != ""):
			t.Errorf("%q: %+v", text, v)
		}
	}
}
