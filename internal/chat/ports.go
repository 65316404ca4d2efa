package chat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// Sink takes events. Accept returns only after the effect is durable, or the event was knowingly ignored; an error means
// that nothing happened and that the platform should deliver again.
type Sink interface {
	Accept(ctx context.Context, e Event) (Outcome, error)
}

// OutcomeKind says what an event did.
type OutcomeKind string

// The outcomes.
const (
	OutcomeOpened    OutcomeKind = "opened"
	OutcomeSteered   OutcomeKind = "steered"
	OutcomeCancelled OutcomeKind = "cancelled"
	OutcomeAnswered  OutcomeKind = "answered"
	OutcomeRefused   OutcomeKind = "refused"   // the actor may not, or it was answered before: Text says which
	OutcomeDuplicate OutcomeKind = "duplicate" // the key had its effect earlier
	OutcomeIgnored   OutcomeKind = "ignored"   // without effect, with the reason
	OutcomeInfo      OutcomeKind = "info"      // status, help
)

// Outcome is what the actor may be told privately and at once.
type Outcome struct {
	Kind   OutcomeKind
	TaskID string
	Text   string // complete sentence that says what to do next; empty: nothing to say
}

// Channel is the way out. Send makes or edits exactly one post; Lookup finds a post by its key after an uncertain Send.
type Channel interface {
	Capabilities() Capabilities
	Send(ctx context.Context, p Post) (Ref, error)
	Lookup(ctx context.Context, p Post) (ref Ref, found bool, err error)
}

// Capabilities are the optional abilities of a Channel, as data.
type Capabilities struct {
	Buttons   bool   // buttons are live; otherwise the text must say which command answers
	Edit      bool   // posts can be edited in place
	Files     bool   // verbatim text can go along as a file
	Lookup    bool   // Lookup can find posts
	Private   bool   // the Outcome of an event reaches its actor privately
	TextLimit int    // characters of one post, 0 = none
	Answer    string // how to answer without buttons: "/approve %s" with the ask's id, empty when Buttons
}

// RetryError asks for another try, not earlier than After.
type RetryError struct {
	After time.Duration
	Err   error
}

func (e *RetryError) Error() string { return fmt.Sprintf("try again in %s: %v", e.After, e.Err) }
func (e *RetryError) Unwrap() error { return e.Err }

// Promised errors of Channel.Send.
var (
	// ErrGone: the place or the post does not exist any more, or may not be written; no retry will help.
	ErrGone = errors.New("place is gone or closed to the bot")
	// ErrUncertain: the post may or may not have been made; look it up before trying again.
	ErrUncertain = errors.New("unknown whether the post was made")
)

// Desk is what a surface may read, in chat's own views; flow implements it.
type Desk interface {
	Tasks(ctx context.Context, f TaskFilter) ([]TaskView, error)
	Task(ctx context.Context, id string) (TaskView, error)
	Asks(ctx context.Context, openOnly bool) ([]AskView, error)
	// Watch streams the feed of a task from the item after the given number, live until ctx ends or the task ended.
	Watch(ctx context.Context, taskID string, after int64) (<-chan FeedItem, error)
	// Health lists what works and what does not.
	Health(ctx context.Context) []HealthItem
}

// ErrNotFound is returned for an id that the desk does not know.
var ErrNotFound = errors.New("not found")

// TaskFilter narrows a list; the zero value lists the newest 50.
type TaskFilter struct {
	Conversation string // Place.Key
	State        string
	Limit        int
}

// TaskView is a task as a person may see it.
type TaskView struct {
	ID, Title, Request, State, Route, Mode, Posture, Repo, Branch string
	Requester                                                     string
	Place                                                         Place
	Created, Updated                                              time.Time
	Result                                                        string
	Model                                                         string
	Scripted                                                      bool // the model is a written scenario
	Attempts                                                      int
	Diff                                                          string // unified diff of a finished task, may be empty
	Asks                                                          []AskView
	Receipt                                                       *ReceiptView
	PullRequest                                                   string
	Controls                                                      []Field  // mode, posture, contract, permission, box: side by side
	Trouble                                                       []string // undelivered posts, retries
}

// AskView is an ask as a person may see it: whole.
type AskView struct {
	ID, TaskID, Kind, State, Title, Text string
	Blocks                               []Block
	Fields                               []Field
	Buttons                              []Button
	Digest                               string
	Approvers                            []string
	Created                              time.Time
	Expires                              time.Time // zero: never
	Answer                               string    // who answered what, when State is not open
}

// ReceiptView is what a finished task shows for itself.
type ReceiptView struct {
	AskedBy    string
	Approvals  []string // who approved which digest
	Tools      []Field  // tool → count
	Checks     []Field  // command → outcome
	Sources    []string // untrusted sources that it read
	Usage      []Field  // tokens, cost, steps, time
	HostFacts  []string // failed commands, open todos, refused calls
	BaseCommit string
	HeadCommit string
}

// FeedItem is one thing that happened in a task.
type FeedItem struct {
	Seq  int64     `json:"seq"` // position in the feed, rising; 0 for live text that is not yet durable
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // text, call, output, result, ask, decision, state, note
	Tool string    `json:"tool,omitempty"`
	ID   string    `json:"id,omitempty"` // call id
	Text string    `json:"text"`
	OK   bool      `json:"ok"`
}

// HealthItem is one line of doctor.
type HealthItem struct {
	Name string
	OK   bool
	Text string // what was seen
	Mend string // what to do, when not OK
}

// PullRequest is what the host wants opened for a pushed branch.
type PullRequest struct {
	Key         string // idempotency key
	Repo        string // "acme/api"
	Branch      string
	Base        string
	Title       string
	Body        string
	Draft       bool
	HeadSHA     string
	IssueNumber int
}

// Publisher opens pull requests; optional for a door.
type Publisher interface {
	FindPullRequest(ctx context.Context, pr PullRequest) (ref Ref, found bool, err error)
	OpenPullRequest(ctx context.Context, pr PullRequest) (Ref, error)
}

// Credentials give the host process access to a repository for clone and push; optional for a door. They never enter a box.
type Credentials interface {
	GitCredentials(ctx context.Context, repo string) (user, secret string, err error)
}

// Host is what a door gets to work with.
type Host struct {
	Sink   Sink
	Desk   Desk
	Log    *slog.Logger // redacting
	Client *http.Client // for the platform's API
	People []Person     // configured identities, for doors that link console or CLI users
	Notice string       // shown by surfaces, e.g. that the model is scripted
}

// Person is one human with several identities.
type Person struct {
	Name       string
	Role       string            // user, approver, admin
	Identities map[string]string // kind → id
}

// Door is one configured connection. Handler may be nil; it is mounted on the webhook listener below /hooks/<name>/.
// Run works until ctx ends; it returns an error only when the door cannot go on.
type Door interface {
	Channel
	Handler(h Host) http.Handler
	Run(ctx context.Context, h Host) error
	Check(ctx context.Context) []HealthItem
}

// DoorConfig is what a factory gets: the connection's own block, strictly decoded by Decode, and the environment for *_env keys.
type DoorConfig struct {
	Name   string
	Decode func(any) error
	Getenv func(string) string
	Client *http.Client // for the platform's API; nil: one with a time limit of 30 s
}
