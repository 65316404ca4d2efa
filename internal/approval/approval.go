// Package approval is the question to people and who may answer it: asks, decisions, quorum, expiry, drift.
package approval

import (
	"time"

	"reasonix/internal/chat"
)

// Kind is why a task waits; the same list names the reasons of the parked state.
type Kind string

// The kinds.
const (
	KindApproval  Kind = "approval"
	KindQuestion  Kind = "question"
	KindPlan      Kind = "plan"
	KindWrite     Kind = "write"
	KindBudget    Kind = "budget"
	KindBlocked   Kind = "blocked"
	KindUncertain Kind = "uncertain"
)

// State of an ask.
type State string

// The states of an ask. Superseded: the action changed since, a new ask stands in its place.
const (
	StateOpen       State = "open"
	StateAnswered   State = "answered"
	StateExpired    State = "expired"
	StateCancelled  State = "cancelled"
	StateSuperseded State = "superseded"
)

// Ask is one question to people. It is immutable but for State, Votes and Answer.
type Ask struct {
	ID         string       `json:"id"`
	TaskID     string       `json:"task_id"`
	CallID     string       `json:"call_id,omitempty"` // the tool call that waits; empty for budget and blocked
	Kind       Kind         `json:"kind"`
	State      State        `json:"state"`
	Title      string       `json:"title"`
	Text       string       `json:"text,omitempty"`
	Blocks     []chat.Block `json:"blocks,omitempty"` // the action, whole
	Fields     []chat.Field `json:"fields,omitempty"`
	Choices    []Choice     `json:"choices"`
	Digest     string       `json:"digest,omitempty"` // sha256 hex of the exact action and what it acts on
	Rules      Rules        `json:"rules"`
	Votes      []Vote       `json:"votes,omitempty"`
	Answer     *Answer      `json:"answer,omitempty"`
	Created    time.Time    `json:"created"`
	Expires    time.Time    `json:"expires,omitzero"`
	Reminded   int          `json:"reminded,omitempty"`
	Supersedes string       `json:"supersedes,omitempty"` // the ask that this one replaces
	Raise      *Raise       `json:"raise,omitempty"`      // what "raise" lifts; nil: the task's own limits
}

// Raise lifts the limits of an account for one day, to at least these; zero leaves a limit as it is.
type Raise struct {
	Account string `json:"account"`
	Day     string `json:"day"`
	Tokens  int64  `json:"tokens,omitempty"`
	Cost    int64  `json:"cost,omitempty"` // millionths of the currency
}

// Choice is one possible answer. Grants choices carry the rule that they would add.
type Choice struct {
	ID       string `json:"id"` // allow, deny, allow-session, allow-always, approve, approve-changes, reject, answer, raise, cancel, continue
	Label    string `json:"label"`
	Style    string `json:"style,omitempty"`
	Input    bool   `json:"input,omitempty"`    // takes free text
	Optional bool   `json:"optional,omitempty"` // with Input: the text may be left out
	Grant    string `json:"grant,omitempty"`    // rule that the choice adds, e.g. Bash(go test:*)
	Admin    bool   `json:"admin,omitempty"`    // only an administrator may choose it
	Consent  bool   `json:"consent,omitempty"`  // needs the quorum; a refusal by one is enough
}

// Rules say who may answer and what happens in time. They are fixed when the ask is made.
type Rules struct {
	Approvers          []string `json:"approvers"` // names of people; only they, and admins, may answer
	Quorum             int      `json:"quorum"`    // distinct persons that must consent; at least 1
	RequesterMayAnswer bool     `json:"requester_may_answer"`
	Requester          string   `json:"requester"` // person name, or the actor's string when no person is known
	Then               string   `json:"then"`      // on expiry: deny, park, cancel
}

// Vote is one person's consent that did not yet reach the quorum.
type Vote struct {
	Person string    `json:"person"`
	Actor  string    `json:"actor"`
	Choice string    `json:"choice"`
	At     time.Time `json:"at"`
}

// Answer is the decision that closed the ask.
type Answer struct {
	Choice string    `json:"choice"`
	Text   string    `json:"text,omitempty"`
	Person string    `json:"person"`
	Actor  string    `json:"actor"`
	Voters []string  `json:"voters,omitempty"`
	Grant  string    `json:"grant,omitempty"`
	At     time.Time `json:"at"`
}

// Presser is who pressed, after task assigned the person and the role.
type Presser struct {
	Actor  chat.Actor
	Person string // empty: nobody we know
	Role   string // none, user, approver, admin
}

// VerdictKind is what a press does.
type VerdictKind string

// The verdicts on a press.
const (
	Accepted   VerdictKind = "accepted" // the ask is answered by this press
	Counted    VerdictKind = "counted"  // a vote; more are needed
	NotAllowed VerdictKind = "refused"  // may not answer; the ask stays open
	TooLate    VerdictKind = "too_late" // was answered, expired or superseded before
	BadChoice  VerdictKind = "bad_choice"
)

// Verdict is the outcome of Judge. Ask is the ask as it must be stored.
type Verdict struct {
	Kind   VerdictKind
	Ask    Ask
	Reason string // sentence for the presser
}
