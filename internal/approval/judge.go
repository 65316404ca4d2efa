package approval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reasonix/internal/chat"
)

// Judge is the one function that decides who may answer an ask, whatever the surface the press came from. It is pure: the
// returned ask is what must be stored. A press by someone who may not answer leaves the ask as it was.
func Judge(a Ask, by Presser, p chat.Press, now time.Time) Verdict {
	if a.State != StateOpen {
		return Verdict{Kind: TooLate, Ask: a, Reason: closedReason(a)}
	}
	if !a.Expires.IsZero() && !now.Before(a.Expires) {
		return Verdict{Kind: TooLate, Ask: a, Reason: "This request has expired. Start the task again to be asked anew."}
	}
	if why := mayNot(a.Rules, by); why != "" {
		return Verdict{Kind: NotAllowed, Ask: a, Reason: why}
	}
	p = a.spoken(p)
	c, ok := a.choice(p.Choice)
	if named, is := a.choice(strings.TrimSpace(p.Text)); !ok && is && p.Choice == "answer" {
		c, ok, p.Text = named, true, "" // "/answer ID allow-session": the text names a choice, exactly
	}
	if !ok {
		return Verdict{Kind: BadChoice, Ask: a, Reason: fmt.Sprintf("%q is no answer to this request. Answer with one of: %s.", p.Choice, a.choiceList())}
	}
	if c.Admin && by.Role != "admin" {
		return Verdict{Kind: NotAllowed, Ask: a, Reason: fmt.Sprintf("%q is for administrators: it counts for everybody on this host. %s may answer this request in every other way.", c.Label, by.Person)}
	}
	if c.Input && !c.Optional && strings.TrimSpace(p.Text) == "" {
		return Verdict{Kind: BadChoice, Ask: a, Reason: fmt.Sprintf("%q needs a text. Write your answer and send it again.", c.Label)}
	}
	if c.Consent && a.Rules.Quorum > 1 {
		return vote(a, c, by, p, now)
	}
	return accept(a, c, by, p, nil, now)
}

// spoken reads the command words of doors without buttons: approve and deny stand for the choice that this kind of ask has, approve with a text
// for an approval with changes, and answer followed by the name of a choice for that choice. Anything else stays as it is.
func (a Ask) spoken(p chat.Press) chat.Press {
	text := strings.TrimSpace(p.Text)
	_, free := a.choice("answer")
	word, rest, _ := strings.Cut(text, " ")
	if c, ok := a.choice(word); ok && p.Choice == "answer" && (rest == "" || c.Input && !free) {
		p.Choice, p.Text = word, rest
	}
	if _, ok := a.choice(p.Choice); ok {
		return p
	}
	for _, id := range synonyms[p.Choice] {
		c, ok := a.choice(id)
		if ok && (c.Input || text == "") {
			p.Choice = id
			return p
		}
	}
	return p
}

// synonyms are looked up in this order. A choice that takes no text is none for words that come with one: what somebody wrote must not get lost.
var synonyms = map[string][]string{
	"allow": {"approve", "approve-changes", "raise"},
	"deny":  {"reject"},
}

// mayNot says why a presser may not answer; empty when he may.
func mayNot(r Rules, by Presser) string {
	if by.Person == "" {
		return fmt.Sprintf("%s is not known to this host, so this answer does not count. %s may answer; an administrator can add you under [[people]].", by.Actor, who(r))
	}
	listed := slices.Contains(r.Approvers, by.Person)
	if !listed && by.Role != "admin" {
		return fmt.Sprintf("%s may not answer this request. %s may.", by.Person, who(r))
	}
	if by.Person == r.Requester && !r.RequesterMayAnswer {
		return fmt.Sprintf("%s asked for this task and may not answer its requests. %s may, or set requester_may_approve = true on the route.", by.Person, who(without(r, by.Person)))
	}
	return ""
}

func without(r Rules, person string) Rules {
	r.Approvers = slices.DeleteFunc(slices.Clone(r.Approvers), func(n string) bool { return n == person })
	return r
}

func who(r Rules) string {
	if len(r.Approvers) == 0 {
		return "An administrator"
	}
	return strings.Join(r.Approvers, ", ")
}

func closedReason(a Ask) string {
	switch {
	case a.State == StateSuperseded:
		return "What this request was about has changed since. A new request stands in its place; answer that one."
	case a.State == StateExpired:
		return "This request has expired. Retry the task to be asked anew."
	case a.State == StateCancelled:
		return "The task was stopped; nothing is left to answer."
	case a.Answer != nil:
		return fmt.Sprintf("This request was answered before: %s by %s at %s. Nothing changed.", a.Answer.Choice, a.Answer.Person, a.Answer.At.UTC().Format("2006-01-02 15:04:05 MST"))
	}
	return "This request was answered before. Nothing changed."
}

func vote(a Ask, c Choice, by Presser, p chat.Press, now time.Time) Verdict {
	for _, v := range a.Votes {
		if v.Person == by.Person && v.Choice == c.ID {
			return Verdict{Kind: Counted, Ask: a, Reason: fmt.Sprintf("%s has agreed already; %d of %d. One more person must agree.", by.Person, a.agreed(c.ID), a.Rules.Quorum)}
		}
	}
	votes := slices.DeleteFunc(slices.Clone(a.Votes), func(v Vote) bool { return v.Person == by.Person })
	a.Votes = append(votes, Vote{Person: by.Person, Actor: by.Actor.String(), Choice: c.ID, At: now})
	n := a.agreed(c.ID)
	if n < a.Rules.Quorum {
		return Verdict{Kind: Counted, Ask: a, Reason: fmt.Sprintf("Counted: %d of %d. Waiting for %d more.", n, a.Rules.Quorum, a.Rules.Quorum-n)}
	}
	var voters []string
	for _, v := range a.Votes {
		if v.Choice == c.ID {
			voters = append(voters, v.Person)
		}
	}
	return accept(a, c, by, p, voters, now)
}

func accept(a Ask, c Choice, by Presser, p chat.Press, voters []string, now time.Time) Verdict {
	a.State = StateAnswered
	a.Answer = &Answer{Choice: c.ID, Text: strings.TrimSpace(p.Text), Person: by.Person, Actor: by.Actor.String(), Voters: voters, Grant: c.Grant, At: now}
	return Verdict{Kind: Accepted, Ask: a, Reason: fmt.Sprintf("%s: %s.", c.Label, by.Person)}
}

func (a Ask) choice(id string) (Choice, bool) {
	i := slices.IndexFunc(a.Choices, func(c Choice) bool { return c.ID == id })
	if i < 0 {
		return Choice{}, false
	}
	return a.Choices[i], true
}

func (a Ask) choiceList() string {
	ids := make([]string, len(a.Choices))
	for i, c := range a.Choices {
		ids[i] = c.ID
	}
	return strings.Join(ids, ", ")
}

func (a Ask) agreed(choice string) int {
	n := 0
	for _, v := range a.Votes {
		if v.Choice == choice {
			n++
		}
	}
	return n
}

// ExpireOutcome is what the passing of time does to an open ask.
type ExpireOutcome string

// The outcomes of time.
const (
	ExpireNothing ExpireOutcome = ""       // not yet
	ExpireDeny    ExpireOutcome = "deny"   // answered with a refusal; the task goes on
	ExpireRemind  ExpireOutcome = "remind" // stays open and reminds; never more often than the route's expiry
	ExpireCancel  ExpireOutcome = "cancel" // the task ends as expired
)

// Lapse decides what time does to an ask; every is the route's expiry, the distance between reminders.
func Lapse(a Ask, every time.Duration, now time.Time) (ExpireOutcome, Ask) {
	if a.State != StateOpen || a.Expires.IsZero() || now.Before(a.Expires) {
		return ExpireNothing, a
	}
	switch a.Rules.Then {
	case "park":
		a.Reminded++
		a.Expires = now.Add(max(every, time.Minute))
		return ExpireRemind, a
	case "cancel":
		a.State = StateExpired
		return ExpireCancel, a
	}
	a.State = StateExpired
	a.Answer = &Answer{Choice: "deny", Text: "nobody answered in time", Person: "time", Actor: "host", At: now}
	return ExpireDeny, a
}
