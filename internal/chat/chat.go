// Package chat is the neutral language between the house and its doors: what came in, what goes out, and what a surface may read and do.
package chat

import (
	"fmt"
	"time"
)

// Actor is a verified platform identity. Only an adapter that checked a signature, a token or a session creates one.
type Actor struct {
	Kind   string `json:"kind"`             // slack, github, console, cli, schedule
	ID     string `json:"id"`               // the platform's stable id: Slack user id, GitHub login, console person
	Team   string `json:"team,omitempty"`   // Slack team id; empty elsewhere
	Name   string `json:"name,omitempty"`   // for display only, never for decisions
	Bot    bool   `json:"bot,omitempty"`    // another program speaks
	Access string `json:"access,omitempty"` // the platform's own word on the repository: "", none, read, write, maintain, admin
}

// String is how an actor is named in records.
func (a Actor) String() string {
	if a.Name != "" {
		return fmt.Sprintf("%s:%s (%s)", a.Kind, a.ID, a.Name)
	}
	return a.Kind + ":" + a.ID
}

// Place is where a conversation lives: a Slack thread, an issue, a pull request, a console room.
type Place struct {
	Connection string `json:"connection"`       // configured name of the door
	Kind       string `json:"kind"`             // slack, github, console, cli
	Channel    string `json:"channel"`          // Slack channel id, "owner/repo", console room
	Thread     string `json:"thread,omitempty"` // Slack thread ts, issue or PR number; empty: the channel itself
	URL        string `json:"url,omitempty"`    // link for people
}

// Key identifies the conversation; the URL is no part of it.
func (p Place) Key() string {
	return p.Connection + "\x1f" + p.Channel + "\x1f" + p.Thread
}

// Verb is what a person asks of the host itself, by an explicit command word; everything else is a request or a reply.
type Verb string

// The verbs. VerbWork is a request for work or a reply; consent never comes from its prose.
const (
	VerbWork    Verb = ""
	VerbStop    Verb = "stop"
	VerbStatus  Verb = "status"
	VerbHelp    Verb = "help"
	VerbPress   Verb = "press"   // Press is set
	VerbPosture Verb = "posture" // Text is the posture
	VerbIgnore  Verb = "ignore"  // translated but knowingly without effect: Text says why
)

// Event is one thing that happened on a platform, verified and translated.
type Event struct {
	Key      string    // identity of its meaning: the same key has the same effect once, however often and however it is delivered
	On       string    // slack.command, slack.mention, slack.message, github.comment, github.label, console, cli, schedule
	Actor    Actor     // who did it
	Place    Place     // where
	Verb     Verb      // what is asked of the host
	Command  string    // the explicit command word(s), e.g. "/reasonix fix"; empty for prose
	Text     string    // the text without command and mention
	Repo     string    // the platform's repository, "acme/api"; empty where the platform knows none
	Press    *Press    // VerbPress
	Target   *Target   // the issue or pull request that it happened on
	Route    string    // schedules name their route; doors leave it empty
	Slot     *Slot     // schedules: which of their moments it is
	Context  []Source  // text by others that may inform the task, never steer it
	Received time.Time // when the host got it
}

// Press is an answer to an ask, by whatever means: button, comment, command, console, CLI.
type Press struct {
	AskID  string
	Choice string // allow, deny, or a choice of the ask
	Text   string // free text of an answer
}

// Target is the issue or pull request that an event happened on, with facts as the platform reports them.
type Target struct {
	Number  int
	IsPR    bool
	HeadSHA string // pinned head of a PR, empty when unknown
	BaseRef string
	Fork    bool // the head lies in another repository, or in none any more
}

// Source is text that somebody else wrote.
type Source struct {
	Title  string
	Author string
	Text   string
	URL    string
}
