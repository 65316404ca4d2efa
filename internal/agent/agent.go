// Package agent is the turn loop: ask the model, judge its calls, run them, append what happened — and stop where a person is needed.
package agent

import (
	"context"
	"encoding/json"

	"reasonix/internal/permission"
	"reasonix/internal/provider"
)

// Gate judges one decoded call. It is pure policy plus the user's hooks; it never asks anybody itself.
type Gate interface {
	Judge(ctx context.Context, c permission.Call) permission.Decision
	// Digest identifies the rule set, posture and grants that the judgement depends on.
	Digest() string
	// Offers lists the reusable rules that a person may grant for this call, narrowest first; empty when only once is possible.
	Offers(c permission.Call) []string
}

// Tree knows the state of the workspace that an action acts on.
type Tree interface {
	State(ctx context.Context) (TreeState, error)
	// Difference describes, for people, what changed since the state with that hash.
	Difference(ctx context.Context, fromHash string) (string, error)
}

// TreeState is the workspace in one line: hash of tracked and untracked files, base and head commit.
type TreeState struct {
	Hash string `json:"hash"`
	Base string `json:"base,omitempty"`
	Head string `json:"head,omitempty"`
}

// Pending is a call that waits for a person.
type Pending struct {
	CallID   string              `json:"call_id"`
	Kind     string              `json:"kind"` // approval, question, plan, write
	Tool     string              `json:"tool"`
	Args     json.RawMessage     `json:"args"`
	Decision permission.Decision `json:"decision"`
	Title    string              `json:"title"`
	Text     string              `json:"text"`              // the action or the question, whole
	Options  []string            `json:"options,omitempty"` // of a question
	Offers   []string            `json:"offers,omitempty"`  // reusable rules that may be granted
	Digest   string              `json:"digest"`
	Tree     TreeState           `json:"tree"`
	Drift    string              `json:"drift,omitempty"` // what changed since it was first asked; empty on the first ask
}

// Answer is a person's decision on a pending call.
type Answer struct {
	CallID string `json:"call_id"`
	AskID  string `json:"ask_id"`
	Choice string `json:"choice"` // allow, deny, answer, approve, approve-changes, reject
	Text   string `json:"text,omitempty"`
	By     string `json:"by"`
	Digest string `json:"digest"` // digest that was shown
}

// Allows tells whether the answer lets the call run.
func (a Answer) Allows() bool { return a.Choice == "allow" }

// Stop is why a run of the loop ended.
type Stop string

// The stops.
const (
	StopDone        Stop = "done"        // the model ended its turn without a call
	StopPending     Stop = "pending"     // calls wait for a person
	StopSteps       Stop = "steps"       // MaxSteps reached
	StopBudget      Stop = "budget"      // Meter refused the next model call
	StopDrained     Stop = "drained"     // the host asked for the turn boundary
	StopInterrupted Stop = "interrupted" // ctx ended
	StopBlocked     Stop = "blocked"     // the goal reported blocked
)

// Observation is one live happening, for surfaces; nothing depends on it.
type Observation struct {
	Kind   string // turn (the model is asked), text, call, output, result, decision, note
	CallID string
	Tool   string
	Text   string
	OK     bool
	Seq    int64 // transcript position when durable
}

// Meter reserves before a model call and settles after it.
type Meter interface {
	// Reserve returns an error that names the limit when the next call may not be made.
	Reserve(ctx context.Context) error
	Settle(ctx context.Context, u provider.Usage)
}

// Steer is text that arrived while the loop ran.
type Steer struct {
	Key  string // idempotency key: appended once
	Text string
}

// Outcome is how a run of the loop ended.
type Outcome struct {
	Stop        Stop
	Text        string // last text of the model
	Pending     []Pending
	Usage       provider.Usage
	Steps       int
	Refusals    int    // calls refused by policy, hook or person in this run
	LastRefused bool   // the final turn followed a refusal that the model did not work around
	Limit       string // StopSteps, StopBudget: the limit, in words
}
