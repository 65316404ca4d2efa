// Package flow is the story: one file per arrow, from an event to the result in the place where it was asked for.
package flow

import (
	"context"
	"errors"
	"time"

	"reasonix/internal/approval"
	"reasonix/internal/budget"
	"reasonix/internal/chat"
	"reasonix/internal/provider"
	"reasonix/internal/session"
	"reasonix/internal/task"
)

// Ledger is everything that must be durable. Every method of Arrows is one transaction that also records the event's key,
// so that a crash cannot swallow an event; the job that it queues and the posts that it makes commit with it.
type Ledger interface {
	Arrows
	Outbox
	Board
	Lease
	Jobs
	Purse
	// Transcript is the session of a task. Appends check the fence; fence 0 gives a log that can only be read.
	Transcript(taskID, sessionID string, fence int64) session.Log
	Close() error
}

// Promised errors of the Ledger.
var (
	// ErrDuplicate: the event's key had its effect earlier; the returned value is that of the first time.
	ErrDuplicate = errors.New("event had its effect before")
	// ErrBusy: a live task holds the conversation.
	ErrBusy = errors.New("a task in this conversation is still live")
	// ErrState: the task is not in a state that the arrow may leave from.
	ErrState = errors.New("task is in another state")
	// ErrLeased: another worker holds a live lease.
	ErrLeased = errors.New("task is leased by another worker")
	// ErrFenced: this worker's lease is gone; nothing was written. It is session.ErrFenced.
	ErrFenced = session.ErrFenced
	// ErrUnknown: no such task or ask.
	ErrUnknown = errors.New("unknown id")
)

// Arrows are the durable steps of the story, in its order.
type Arrows interface {
	// Open stores a queued task with its first job and its posts. A key seen before: the first task and ErrDuplicate. A live
	// task in the conversation: that task and ErrBusy.
	Open(ctx context.Context, o Opening) (task.Task, error)
	// Steer leaves text in the inbox of a live task. ErrDuplicate; ErrState when the task has ended meanwhile.
	Steer(ctx context.Context, s Steering) error
	// Cancel ends a queued or parked task at once (its open asks become cancelled) and marks a running one with CancelBy.
	// It returns the task as stored. ErrDuplicate, ErrState when it has ended.
	Cancel(ctx context.Context, c Cancelling) (task.Task, error)
	// Record notes an event that was knowingly ignored or refused, with its posts. ErrDuplicate.
	Record(ctx context.Context, r Recording) error
	// Claim takes the lease of a queued task, or of a running one whose lease has expired: state running, fence+1,
	// attempts+1. ErrLeased, ErrState.
	Claim(ctx context.Context, taskID, host string, ttl time.Duration) (Claim, error)
	// Park stores the asks with their posts and frees the lease. ErrFenced.
	Park(ctx context.Context, p Parking) error
	// Decide loads the ask and its task inside the transaction, lets judge decide, stores the ask it returns and, when the
	// ask is answered and no open ask of the task is left, queues the task with a job. judge must be pure; it may run twice.
	// ErrDuplicate, ErrUnknown.
	Decide(ctx context.Context, eventKey, askID string, judge func(approval.Ask, task.Task) Judged) (Judged, error)
	// Expire does the same for an ask whose time has come, without an event key; judge gets only asks that are open.
	Expire(ctx context.Context, askID string, judge func(approval.Ask, task.Task) Judged) (Judged, error)
	// Alter changes the fields of a live task that an admin may change at run time, and records the event. ErrDuplicate.
	Alter(ctx context.Context, eventKey, taskID string, change func(*task.Task) error, posts []NewPost) (task.Task, error)
	// Publish stores the intent, or later the outcome, of publishing. ErrFenced.
	Publish(ctx context.Context, ref Held, p task.Published) error
	// Yield ends an attempt at a turn boundary: the task is queued again with a job. ErrFenced.
	Yield(ctx context.Context, ref Held, p Progress) error
	// Finish stores the end with the final posts and frees the lease. ErrFenced.
	Finish(ctx context.Context, f Finishing) error
	// Retry queues an ended (failed, cancelled, expired) task again. ErrState.
	Retry(ctx context.Context, eventKey, taskID string, posts []NewPost) (task.Task, error)
}

// Held names a lease.
type Held struct {
	TaskID string
	Fence  int64
}

// NewPost is a post for the outbox. Edits names the key of an earlier post to edit in place; it waits until that one is made.
type NewPost struct {
	Key     string
	TaskID  string
	AskID   string
	Place   chat.Place
	Message chat.Message
	Edits   string
}

// Opening is a new task.
type Opening struct {
	EventKey string
	Task     task.Task // ID, Conversation, Place, Requester, Prompt, Spec, SessionID, … are set; State becomes queued
	Posts    []NewPost
}

// Steering is a reply while a task is live.
type Steering struct {
	EventKey string
	TaskID   string
	Actor    string
	Text     string
	Posts    []NewPost
}

// InboxItem is steering text that waits for the next turn boundary.
type InboxItem struct {
	ID    int64
	Actor string
	Text  string
	At    time.Time
}

// Cancelling is a stop.
type Cancelling struct {
	EventKey string
	TaskID   string
	By       string
	Posts    []NewPost // posted only when the task ended at once
}

// Recording is an event without a task of its own.
type Recording struct {
	EventKey string
	Kind     chat.OutcomeKind
	Reason   string
	Actor    string
	Posts    []NewPost
}

// Claim is what a worker gets with the lease. Asks are all asks of the task, answered ones included.
type Claim struct {
	Task task.Task
	Asks []approval.Ask
}

// Held names the claim's lease.
func (c Claim) Held() Held { return Held{c.Task.ID, c.Task.Fence} }

// Progress is what an attempt spent.
type Progress struct {
	Spent budget.Spent   // of this attempt
	Usage provider.Usage // of this attempt
}

// Parking is the end of an attempt that waits for people.
type Parking struct {
	Held
	Progress
	Reason     approval.Kind
	Asks       []approval.Ask // each with a unique id; state open
	Supersedes []string       // ids of asks that these replace: they become superseded
	Posts      []NewPost
}

// Judged is what became of an ask: the verdict, the posts that follow, and what it means for the task.
type Judged struct {
	Verdict approval.Verdict
	Posts   []NewPost
	Cancel  bool // the task ends as cancelled (or expired, on Expire) instead of being queued
	Result  string
	Alter   func(*task.Task) // applied to the task in the same transaction, may be nil (a raised budget, a grant)
	Grants  []Grant          // kept in the same transaction
	Raises  []DayRaise       // the same
}

// Grant is a rule that a person added for a route (always) or a task (session).
type Grant struct {
	ID     int64
	Route  string // set for always
	TaskID string // set for this task only
	Rule   string
	By     string
	AskID  string
	At     time.Time
}

// Finishing is the end of a task.
type Finishing struct {
	Held
	Progress
	State   task.State // completed, failed, cancelled, expired
	Result  string
	Failure string
	Diff    string
	Receipt *chat.ReceiptView
	Posts   []NewPost
}

// Outbox is the queue of posts that must reach a platform.
type Outbox interface {
	// Due takes up to n posts of the connections whose time has come and whose edited post exists, oldest first; per place in order.
	// A taken post is invisible to others for the given time.
	Due(ctx context.Context, connections []string, n int, hold time.Duration) ([]Queued, error)
	// Sent stores the platform's reference. A post taken and neither sent nor delayed comes back with Uncertain set.
	Sent(ctx context.Context, key string, ref chat.Ref) error
	// Delay schedules another try; Uncertain says that the post may already exist.
	Delay(ctx context.Context, key string, until time.Time, cause string, uncertain bool) error
	// Dead gives up on a post; it stays visible with its cause.
	Dead(ctx context.Context, key string, cause string) error
	// Woken is signalled when there may be something due.
	Woken() <-chan struct{}
}

// Queued is a post in the outbox.
type Queued struct {
	NewPost
	Tries     int
	Uncertain bool
	State     string // pending, sent, dead
	Cause     string
	Ref       *chat.Ref // own reference when sent
	EditRef   *chat.Ref // reference of the post that Edits names
	Created   time.Time
	NextAt    time.Time
}

// Board is what can be read.
type Board interface {
	Task(ctx context.Context, id string) (task.Task, error)
	Tasks(ctx context.Context, f chat.TaskFilter) ([]task.Task, error)
	// Live returns the live task of a conversation, Last the newest ended one; ErrUnknown when there is none.
	Live(ctx context.Context, conversation string) (task.Task, error)
	Last(ctx context.Context, conversation string) (task.Task, error)
	Ask(ctx context.Context, id string) (approval.Ask, error)
	// Asks lists asks of one task, or of all when taskID is empty, newest first.
	Asks(ctx context.Context, taskID string, openOnly bool) ([]approval.Ask, error)
	// Due lists open asks whose reminder or expiry has come.
	DueAsks(ctx context.Context, now time.Time) ([]approval.Ask, error)
	Inbox(ctx context.Context, taskID string) ([]InboxItem, error)
	Posts(ctx context.Context, taskID string) ([]Queued, error)
	Grants(ctx context.Context, route, taskID string) ([]Grant, error)
	RevokeGrant(ctx context.Context, id int64) error
	// Counted returns how many events ended with each outcome kind and reason.
	Counted(ctx context.Context) (map[string]int64, error)
	// Changed is closed at the next change of a task, its asks or its transcript in this process.
	Changed(taskID string) <-chan struct{}
}

// Lease keeps a claim alive and finds the ones that died.
type Lease interface {
	// Renew extends the lease and returns the task as it is: CancelBy tells the worker to stop. ErrFenced.
	Renew(ctx context.Context, h Held, ttl time.Duration) (task.Task, error)
	// Consumed removes inbox items after they are in the transcript. ErrFenced.
	Consumed(ctx context.Context, h Held, ids []int64) error
	// Sweep queues a job for every task that should run and has none: queued ones, and running ones whose lease expired. It
	// clears job rows of dead hosts and returns the ids it woke.
	Sweep(ctx context.Context, now time.Time) ([]string, error)
}

// Jobs wakes workers. Work calls attempt for each job, at most max at once, until ctx ends, then waits for those running.
// An error of attempt is logged and never retried by the engine: the task row is the truth and the sweeper its guardian.
type Jobs interface {
	Work(ctx context.Context, host string, max int, attempt func(ctx context.Context, taskID string) error) error
}
