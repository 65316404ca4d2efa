package flow

import (
	"fmt"
	"strings"

	"reasonix/internal/approval"
	"reasonix/internal/chat"
	"reasonix/internal/task"
)

// redacted masks every secret the host knows in every text of the posts: nothing leaves without it (invariant 9).
func (h *Host) redacted(posts []NewPost) []NewPost {
	r := h.Redactor.String
	for i := range posts {
		m := &posts[i].Message
		m.Title, m.Text, m.Footer = r(m.Title), r(m.Text), r(m.Footer)
		for j := range m.Blocks {
			m.Blocks[j].Text = r(m.Blocks[j].Text)
		}
		for j := range m.Fields {
			m.Fields[j].Value = r(m.Fields[j].Value)
		}
	}
	return posts
}

func ackKey(t task.Task) string { return "task:" + t.ID + ":ack" }

// ackPosts is the acknowledgement, which later status edits replace in place.
func ackPosts(t task.Task) []NewPost {
	return []NewPost{{Key: ackKey(t), TaskID: t.ID, Place: t.Place, Message: statusMessage(t, chat.KindAck, "Queued")}}
}

func statusMessage(t task.Task, kind chat.MessageKind, state string) chat.Message {
	return chat.Message{
		Kind: kind, TaskID: t.ID, Title: t.Title, Text: state + ".",
		Fields: []chat.Field{
			{Label: "Task", Value: t.ID},
			{Label: "Route", Value: t.Spec.Route},
			{Label: "Mode", Value: string(t.Spec.Mode)},
			{Label: "Posture", Value: t.Spec.Posture},
		},
		Footer: "Reply here to steer it; `stop` ends it.",
	}
}

// statusPost edits the acknowledgement; mark makes its key unique.
func statusPost(t task.Task, state, mark string) NewPost {
	return NewPost{Key: "task:" + t.ID + ":status:" + mark, TaskID: t.ID, Place: t.Place, Edits: ackKey(t), Message: statusMessage(t, chat.KindStatus, state)}
}

func cancelPosts(t task.Task, by string) []NewPost {
	return []NewPost{finalPost(t, "cancelled", "Stopped by "+by+". Nothing of it was published; the work so far stays in the task's workspace.", nil, "")}
}

// finalPost is the last word on one run of a task; the number of retries keeps a later run's word apart.
func finalPost(t task.Task, state, text string, fields []chat.Field, diff string) NewPost {
	m := chat.Message{Kind: chat.KindResult, TaskID: t.ID, Title: capital(state) + ": " + t.Title, Text: text, Fields: fields}
	if t.Requester.Actor.Kind == t.Place.Kind { // a clock, or a person of another platform, cannot be called here
		m.Mentions = []chat.Actor{t.Requester.Actor}
	}
	if diff != "" {
		m.Blocks = []chat.Block{{Name: "changes.diff", Lang: "diff", Text: diff}}
	}
	return NewPost{Key: fmt.Sprintf("task:%s:final:%d", t.ID, t.Attempts), TaskID: t.ID, Place: t.Place, Message: m}
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// askPlace is where a task's questions go.
func askPlace(t task.Task) chat.Place {
	if t.Spec.AskPlace != nil {
		return *t.Spec.AskPlace
	}
	return t.Place
}

// askPost is the question as people see it: whole, with the digest, and with mentions of those who may answer.
func askPost(a approval.Ask, t task.Task, people task.People) NewPost {
	place := askPlace(t)
	return NewPost{Key: "ask:" + a.ID, TaskID: t.ID, AskID: a.ID, Place: place, Message: askMessage(a, t, mentions(a, people, place.Kind))}
}

func askMessage(a approval.Ask, t task.Task, who []chat.Actor) chat.Message {
	m := chat.Message{Kind: chat.KindAsk, TaskID: t.ID, AskID: a.ID, Title: a.Title, Text: a.Text, Blocks: a.Blocks, Fields: askFields(a, t), Mentions: who}
	for _, c := range a.Choices {
		m.Buttons = append(m.Buttons, chat.Button{Label: c.Label, Choice: c.ID, Style: c.Style, Input: c.Input, Optional: c.Optional})
	}
	m.Footer = "Request " + a.ID
	if a.Digest != "" {
		m.Footer += " · digest " + a.Digest
	}
	return m
}

func askFields(a approval.Ask, t task.Task) []chat.Field {
	f := append([]chat.Field{{Label: "Task", Value: t.Title}, {Label: "Asked for by", Value: t.Spec.Asks.Requester}}, a.Fields...)
	if a.Rules.Quorum > 1 {
		f = append(f, chat.Field{Label: "Needed", Value: fmt.Sprintf("%d persons (%d so far)", a.Rules.Quorum, len(a.Votes))})
	}
	if !a.Expires.IsZero() {
		then := map[string]string{"park": "a reminder", "cancel": "the task ends"}[a.Rules.Then]
		if then == "" {
			then = "it counts as denied"
		}
		f = append(f, chat.Field{Label: "Until", Value: a.Expires.UTC().Format("2006-01-02 15:04 MST") + ", then " + then})
	}
	return f
}

func mentions(a approval.Ask, people task.People, kind string) []chat.Actor {
	var out []chat.Actor
	for _, name := range a.Rules.Approvers {
		if name == a.Rules.Requester && !a.Rules.RequesterMayAnswer {
			continue
		}
		if p, ok := people.Find(name); ok && p.Identities[kind] != "" {
			out = append(out, chat.Actor{Kind: kind, ID: p.Identities[kind], Name: p.Name})
		}
	}
	return out
}

// settledPost edits a card after its ask was closed: what was asked stays readable, the buttons go.
func settledPost(a approval.Ask, t task.Task, word string) NewPost {
	place := askPlace(t)
	m := askMessage(a, t, nil)
	m.Buttons, m.Settled, m.Text = nil, true, strings.TrimSpace(word+"\n\n"+m.Text)
	return NewPost{Key: "ask:" + a.ID + ":settled", TaskID: t.ID, AskID: a.ID, Place: place, Edits: "ask:" + a.ID, Message: m}
}

// votedPost edits a card that counted one more consent and stays open.
func votedPost(a approval.Ask, t task.Task) NewPost {
	p := settledPost(a, t, "")
	p.Key = fmt.Sprintf("ask:%s:votes:%d", a.ID, len(a.Votes))
	p.Message = askMessage(a, t, nil)
	return p
}
