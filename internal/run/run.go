// Package run assembles one attempt from a spec and drives it: start, to a pending or the finish; and continue.
package run

import (
	"context"
	"time"

	"reasonix/internal/agent"
	"reasonix/internal/goal"
	"reasonix/internal/provider"
	"reasonix/internal/session"
	"reasonix/internal/tool"
)

// Spec is everything that one attempt needs. The transcript tells where it stands: a new session gets System and Prompt, one
// with open calls continues at them with Answers, any other continues after its last entry.
type Spec struct {
	Session        session.Log
	Provider       provider.Provider
	Mode           string        // run, goal, plan
	System         string        // stable system prompt of a new session
	Prompt         string        // the request
	PromptKey      string        // the prompt is appended once per key
	Notes          []agent.Steer // host notes to the model, appended once per key at the start
	Answers        []agent.Answer
	Tools          *tool.Registry
	Gate           agent.Gate
	Tree           agent.Tree // nil: actions are not bound to a tree (terminal use)
	Snapshot       Snapshot   // keeps the workspace at turn boundaries; nil: nobody does
	BoxDigest      string     // identifies the box policy
	WorkDir        string
	Place          string // names WorkDir in what approvals are bound to; empty: WorkDir
	Temperature    float64
	MaxSteps       int // model calls in this attempt, 0 = no limit
	Meter          agent.Meter
	Inbox          func(ctx context.Context) ([]agent.Steer, error) // read at turn boundaries; may be nil
	Draining       func() bool                                      // true: stop at the next turn boundary; may be nil
	Observe        func(agent.Observation)                          // may be nil
	Redact         func(string) string                              // applied before anything is appended or observed
	LiveRedact     func() agent.TextFilter                          // for streamed text; nil with Redact set: text is observed message by message
	Resolve        func(path string) string                         // tool.Files.Resolve, for rules on paths; nil: cleaned below WorkDir
	Notebook       *agent.Notebook                                  // the one whose Note the tools got in tool.Env; nil: none of them takes notes
	MaxTokens      int                                              // per model call, 0 leaves the vendor's default
	BlockedRepeats int                                              // [agent].goal_blocked_repeats, 0 means 1
	Standing       *Standing                                        // phase and posture; nil: no posture of its own, and plan mode starts one
	ReadOnlyBox    bool                                             // the shell makes the workspace read-only while Standing.Planning
	PostureBy      func() string                                    // who changed the posture last; may be nil
	Unasked        string                                           // what the model hears when it asks a question here; empty: the attempt stops and waits
	SignOff        bool                                             // complete_step is offered; Notebook must be set then
	Hooks          *Hooks                                           // the user's commands; nil: none
}

// Snapshot keeps the state of the workspace at turn boundaries.
type Snapshot interface {
	// Boundary is called before each model call; changed tells that calls with effects ran since the last one. It must not wait for
	// what it starts: that may work while the model thinks.
	Boundary(ctx context.Context, changed bool)
	// Quiet returns when nothing of it reads the workspace any more. It is called before a call with effects starts.
	Quiet(ctx context.Context)
}

// Outcome is how the attempt ended.
type Outcome struct {
	agent.Outcome
	Report   *goal.Report // last report of the goal, nil when there was none
	Duration time.Duration
}
