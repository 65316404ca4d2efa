// Package tui is the terminal chat: a conversation with one person who sits at it, whose questions are asked and answered right there.
package tui

import (
	"context"
	"errors"

	"reasonix/internal/agent"
	"reasonix/internal/budget"
	"reasonix/internal/permission"
	"reasonix/internal/run"
	"reasonix/internal/session"
)

// Bench equips attempts in one folder; cli implements it.
type Bench interface {
	// Equip fills a spec: model, tools, rules, box, prompt of the system. fresh says that a new request begins, so that changed
	// configuration counts; within a request the rules stay as they are, and what was granted meanwhile comes with now.
	Equip(ctx context.Context, now Now, fresh bool) (run.Spec, error)
	// Keep writes a grant into the configuration file of its scope and returns the file.
	Keep(ctx context.Context, s Scope, g Grant) (file string, err error)
	// Describe is what status shows of the bench: model, permission, sandbox.
	Describe(now Now) []Line
	// Files are the configuration files of the scopes Project and User; empty: that scope is not offered.
	Files() (project, user string)
	// Limits are those of a request in that mode, from the command line or the configuration.
	Limits(mode string) budget.Limits
	// Price is that of the model in use.
	Price() budget.Price
}

// Now is what the conversation adds to the configuration.
type Now struct {
	Session  session.Log
	Standing *run.Standing
	Mode     string
	Grants   []permission.Rule
	Dirs     []string // folders opened for writing
}

// Line is one line of status.
type Line struct{ Label, Text string }

// Screen is where the person reads and types. Its methods are called from one goroutine at a time, except Print, Observe.
type Screen interface {
	// Print shows host text.
	Print(text string)
	// Observe shows what the run does, live.
	Observe(o agent.Observation)
	// Line waits for a line. io.EOF: no more comes. ErrInterrupted: the person pressed Ctrl-C.
	Line(ctx context.Context, prompt string) (string, error)
	// Typed gives lines that the person types while a run works; nil where lines are only read when asked for.
	Typed() <-chan string
	// Interrupts tells of Ctrl-C while a run works.
	Interrupts() <-chan struct{}
}

// ErrInterrupted: the person pressed Ctrl-C at a prompt.
var ErrInterrupted = errors.New("interrupted")

// ErrTooLong: the message was longer than 1 MiB and was dropped.
var ErrTooLong = errors.New("the message is longer than 1 MiB and was dropped: put it into a file and name that")

// Options of a Talk.
type Options struct {
	Session session.Log
	Bench   Bench
	Screen  Screen
	By      string        // who sits here, for the transcript
	NewID   func() string // keys of requests
	Posture string        // of the command line; empty: that of the session, or ask
	Mode    string        // of the command line; empty: run
	First   string        // a first message, as if it had been typed
	Redact  func(string) string
}

// Next is what the person wants after a Talk: nothing, a new session, or another one.
type Next struct {
	New    bool
	Resume string
}
