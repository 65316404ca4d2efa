// Package session is the transcript: append-only, the one truth about where a task stands.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"reasonix/internal/provider"
)

// Kind says what an entry records.
type Kind string

// The kinds of entry. Only system, user, assistant and result reach the model.
const (
	KindSystem    Kind = "system"    // Message
	KindUser      Kind = "user"      // Message: request, steering, goal block, host notes to the model
	KindAssistant Kind = "assistant" // Message with its tool calls
	KindIntent    Kind = "intent"    // CallID: a call with effects is about to start
	KindResult    Kind = "result"    // Message with role tool, CallID, Fact
	KindPending   Kind = "pending"   // CallID: the call stopped for a person; Data is the pending
	KindDecision  Kind = "decision"  // CallID: a person answered; Data is the answer
	KindUsage     Kind = "usage"     // Usage of one model call
	KindNote      Kind = "note"      // host facts: posture changes, retries, ended processes, goal reports, todos; Name says which
	KindEnd       Kind = "end"       // the attempt or the session ended; Data says how
)

// Entry is one line of the transcript.
type Entry struct {
	Seq     int64             `json:"seq"`
	At      time.Time         `json:"at"`
	Kind    Kind              `json:"kind"`
	Name    string            `json:"name,omitempty"`
	CallID  string            `json:"call_id,omitempty"`
	Message *provider.Message `json:"message,omitempty"`
	Usage   *provider.Usage   `json:"usage,omitempty"`
	Fact    *Fact             `json:"fact,omitempty"`
	Data    json.RawMessage   `json:"data,omitempty"`
}

// Fact is what the host knows about an executed call, beside the text that the model reads.
type Fact struct {
	Tool       string   `json:"tool"`
	OK         bool     `json:"ok"`
	Refused    bool     `json:"refused,omitempty"` // policy, hook or a person said no
	Unknown    bool     `json:"unknown,omitempty"` // found started without a result
	Changes    bool     `json:"changes,omitempty"` // the tool is one that may change files of the workspace
	Live       bool     `json:"live,omitempty"`    // it looked at a background command that still runs
	Command    string   `json:"command,omitempty"`
	ExitCode   int      `json:"exit_code,omitempty"`
	Paths      []string `json:"paths,omitempty"`
	DurationMS int64    `json:"duration_ms,omitempty"`
	Digest     string   `json:"digest,omitempty"`   // of the approved action
	Approved   string   `json:"approved,omitempty"` // who approved
}

// Log is the transcript of one session. Append assigns Seq (from 1, without holes) and At, and is all or nothing.
type Log interface {
	ID() string
	// Append writes after checking that the writer may still write: ErrFenced when its lease is gone.
	Append(ctx context.Context, entries ...Entry) error
	// Entries returns everything after the given Seq, in order.
	Entries(ctx context.Context, after int64) ([]Entry, error)
}

// ErrFenced: another worker holds the session; whatever this one still does must leave no trace.
var ErrFenced = errors.New("lease lost: another worker holds this session")
