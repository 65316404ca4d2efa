// Package task is one piece of requested work: its states, and the routes that turn an event into it.
package task

import (
	"time"

	"reasonix/internal/approval"
	"reasonix/internal/budget"
	"reasonix/internal/chat"
	"reasonix/internal/provider"
)

// State is where a task is in its life; docs/state-machine.md draws the transitions.
type State string

// The states.
const (
	Queued    State = "queued"
	Running   State = "running"
	Parked    State = "parked"
	Completed State = "completed"
	Failed    State = "failed"
	Cancelled State = "cancelled"
	Expired   State = "expired"
)

// Ended tells whether no transition leads out.
func (s State) Ended() bool {
	return s == Completed || s == Failed || s == Cancelled || s == Expired
}

// Mode is how the work is organised.
type Mode string

// The modes.
const (
	ModeRun  Mode = "run"
	ModeGoal Mode = "goal"
	ModePlan Mode = "plan"
)

// Role is what a person may do.
type Role string

// The roles, in rising order.
const (
	RoleNone     Role = "none"
	RoleUser     Role = "user"
	RoleApprover Role = "approver"
	RoleAdmin    Role = "admin"
)

// AtLeast compares roles.
func (r Role) AtLeast(o Role) bool { return rank[r] >= rank[o] }

var rank = map[Role]int{RoleUser: 1, RoleApprover: 2, RoleAdmin: 3}

// Requester is who asked, with the person and role that were assigned at that time.
type Requester struct {
	Actor  chat.Actor `json:"actor"`
	Person string     `json:"person,omitempty"`
	Role   Role       `json:"role"`
}

// Spec is what the route fixed when the task was opened; a later change of the configuration does not change it.
type Spec struct {
	Route     string         `json:"route"`
	Mode      Mode           `json:"mode"`
	Posture   string         `json:"posture"`
	PostureBy string         `json:"posture_by,omitempty"` // who changed it since the route set it
	Headless  bool           `json:"headless,omitempty"`   // no person can be asked: an ask becomes a refusal
	Model     string         `json:"model"`
	Repo      string         `json:"repo,omitempty"`      // name in [[repos]]
	RepoSlug  string         `json:"repo_slug,omitempty"` // the platform's name, for pull requests
	Base      string         `json:"base,omitempty"`      // base branch
	SHA       string         `json:"sha,omitempty"`       // pinned commit
	Asks      approval.Rules `json:"asks"`
	Expire    time.Duration  `json:"expire,omitempty"`    // 0: never
	AskPlace  *chat.Place    `json:"ask_place,omitempty"` // nil: the task's own place
	Limits    budget.Limits  `json:"limits"`
	MaxSteps  int            `json:"max_steps,omitempty"`
	Publish   *Publish       `json:"publish,omitempty"`
	Network   bool           `json:"network,omitempty"`
}

// Publish says what the host publishes when the task completes.
type Publish struct {
	Connection string   `json:"connection"` // door that opens the pull request
	PR         bool     `json:"pr"`
	Draft      bool     `json:"draft"`
	Protect    []string `json:"protect,omitempty"` // globs that may not change
}

// Task is one row: the truth about a piece of work. Host, Fence and LeaseUntil belong to the lease.
type Task struct {
	ID           string            `json:"id"`
	Conversation string            `json:"conversation"` // Place.Key
	Place        chat.Place        `json:"place"`
	State        State             `json:"state"`
	Reason       approval.Kind     `json:"reason,omitempty"` // why it is parked
	Requester    Requester         `json:"requester"`
	Title        string            `json:"title"`
	Prompt       string            `json:"prompt"`
	Sources      []chat.Source     `json:"sources,omitempty"`
	Target       *chat.Target      `json:"target,omitempty"`
	Spec         Spec              `json:"spec"`
	SessionID    string            `json:"session_id"`
	WorkspaceID  string            `json:"workspace_id"` // a follow-up works on its parent's
	Branch       string            `json:"branch,omitempty"`
	Parent       string            `json:"parent,omitempty"`
	Attempts     int               `json:"attempts"`
	Spent        budget.Spent      `json:"spent"`
	Usage        provider.Usage    `json:"usage"`
	CancelBy     string            `json:"cancel_by,omitempty"` // a cancellation was asked for; the worker ends it
	Published    *Published        `json:"published,omitempty"`
	Result       string            `json:"result,omitempty"`
	Failure      string            `json:"failure,omitempty"`
	Receipt      *chat.ReceiptView `json:"receipt,omitempty"`
	Diff         string            `json:"diff,omitempty"`
	Created      time.Time         `json:"created"`
	Updated      time.Time         `json:"updated"`
	Ended        time.Time         `json:"ended,omitzero"`
	Host         string            `json:"host,omitempty"`
	Fence        int64             `json:"fence"`
	LeaseUntil   time.Time         `json:"lease_until,omitzero"`
}

// Published is the intent and then the outcome of publishing.
type Published struct {
	Branch  string   `json:"branch"`
	HeadSHA string   `json:"head_sha"`
	Pushed  bool     `json:"pushed,omitempty"`
	PR      chat.Ref `json:"pr,omitzero"`
	Done    bool     `json:"done,omitempty"`
}
