package console

import (
	"time"

	"reasonix/internal/chat"
)

// taskJSON is a task in the JSON interface; its names are a contract with other front ends.
type taskJSON struct {
	ID          string       `json:"id"`
	Title       string       `json:"title"`
	Request     string       `json:"request"`
	State       string       `json:"state"`
	Ended       bool         `json:"ended"`
	Route       string       `json:"route"`
	Mode        string       `json:"mode"`
	Posture     string       `json:"posture"`
	Repo        string       `json:"repo,omitempty"`
	Branch      string       `json:"branch,omitempty"`
	Requester   string       `json:"requester"`
	Place       chat.Place   `json:"place"`
	Created     time.Time    `json:"created"`
	Updated     time.Time    `json:"updated"`
	Model       string       `json:"model"`
	Scripted    bool         `json:"scripted"`
	Attempts    int          `json:"attempts"`
	Result      string       `json:"result,omitempty"`
	Diff        string       `json:"diff,omitempty"`
	PullRequest string       `json:"pull_request,omitempty"`
	Controls    []chat.Field `json:"controls"`
	Trouble     []string     `json:"trouble"`
	Asks        []askJSON    `json:"asks"`
	Receipt     *receiptJSON `json:"receipt,omitempty"`
}

type askJSON struct {
	ID        string        `json:"id"`
	TaskID    string        `json:"task_id"`
	Kind      string        `json:"kind"`
	State     string        `json:"state"`
	Title     string        `json:"title"`
	Text      string        `json:"text,omitempty"`
	Blocks    []chat.Block  `json:"blocks"`
	Fields    []chat.Field  `json:"fields"`
	Buttons   []chat.Button `json:"buttons"`
	Digest    string        `json:"digest,omitempty"`
	Approvers []string      `json:"approvers"`
	Created   time.Time     `json:"created"`
	Expires   time.Time     `json:"expires,omitzero"`
	Answer    string        `json:"answer,omitempty"`
}

type receiptJSON struct {
	AskedBy    string       `json:"asked_by"`
	Approvals  []string     `json:"approvals"`
	Tools      []chat.Field `json:"tools"`
	Checks     []chat.Field `json:"checks"`
	Sources    []string     `json:"sources"`
	Usage      []chat.Field `json:"usage"`
	HostFacts  []string     `json:"host_facts"`
	BaseCommit string       `json:"base_commit,omitempty"`
	HeadCommit string       `json:"head_commit,omitempty"`
}

func taskOf(t chat.TaskView) taskJSON {
	out := taskJSON{
		ID: t.ID, Title: t.Title, Request: t.Request, State: t.State, Ended: ended(t.State), Route: t.Route, Mode: t.Mode,
		Posture: t.Posture, Repo: t.Repo, Branch: t.Branch, Requester: t.Requester, Place: t.Place, Created: t.Created,
		Updated: t.Updated, Model: t.Model, Scripted: t.Scripted, Attempts: t.Attempts, Result: t.Result, Diff: t.Diff,
		PullRequest: t.PullRequest, Controls: list(t.Controls), Trouble: list(t.Trouble), Asks: []askJSON{},
	}
	for _, a := range t.Asks {
		out.Asks = append(out.Asks, askOf(a))
	}
	if r := t.Receipt; r != nil {
		out.Receipt = &receiptJSON{
			AskedBy: r.AskedBy, Approvals: list(r.Approvals), Tools: list(r.Tools), Checks: list(r.Checks),
			Sources: list(r.Sources), Usage: list(r.Usage), HostFacts: list(r.HostFacts),
			BaseCommit: r.BaseCommit, HeadCommit: r.HeadCommit,
		}
	}
	return out
}

func askOf(a chat.AskView) askJSON {
	return askJSON{
		ID: a.ID, TaskID: a.TaskID, Kind: a.Kind, State: a.State, Title: a.Title, Text: a.Text, Blocks: list(a.Blocks),
		Fields: list(a.Fields), Buttons: list(a.Buttons), Digest: a.Digest, Approvers: list(a.Approvers),
		Created: a.Created, Expires: a.Expires, Answer: a.Answer,
	}
}

// list makes an absent list an empty one: a reader loops over it either way.
func list[T any](in []T) []T {
	if in == nil {
		return []T{}
	}
	return in
}
