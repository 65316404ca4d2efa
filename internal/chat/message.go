package chat

import "time"

// MessageKind says what a message is for; adapters may choose a layout by it.
type MessageKind string

// The kinds of message.
const (
	KindAck    MessageKind = "ack"    // the request was accepted
	KindStatus MessageKind = "status" // edited in place while a task runs
	KindAsk    MessageKind = "ask"    // needs a person
	KindResult MessageKind = "result" // the final word on a task
	KindNotice MessageKind = "notice" // refusals, help, reminders
)

// Message is what the host wants said. Text is markdown written by the host or the model; adapters escape it for their platform.
type Message struct {
	Kind     MessageKind `json:"kind"`
	TaskID   string      `json:"task_id,omitempty"`
	Title    string      `json:"title,omitempty"`
	Text     string      `json:"text,omitempty"`
	Blocks   []Block     `json:"blocks,omitempty"`   // verbatim text, shown whole or sent along as a file
	Fields   []Field     `json:"fields,omitempty"`   // short labelled facts
	Buttons  []Button    `json:"buttons,omitempty"`  // only on asks
	Mentions []Actor     `json:"mentions,omitempty"` // who should be notified
	Footer   string      `json:"footer,omitempty"`
	AskID    string      `json:"ask_id,omitempty"`
	Settled  bool        `json:"settled,omitempty"` // the ask was answered: no live buttons any more
}

// Block is verbatim text. An adapter that cannot show all of it attaches the whole as a file named Name.
type Block struct {
	Name string `json:"name"` // e.g. "command.sh", "changes.diff"
	Lang string `json:"lang,omitempty"`
	Text string `json:"text"`
}

// Field is one labelled fact.
type Field struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// Button answers the ask it stands on.
type Button struct {
	Label  string `json:"label"`
	Choice string `json:"choice"`
	Style  string `json:"style,omitempty"` // "", primary, danger
	Input  bool   `json:"input,omitempty"` // opens a free-text field
	// Optional: with Input, the text may be left empty.
	Optional bool `json:"optional,omitempty"`
}

// Ref is a platform's reference to a post.
type Ref struct {
	Connection string `json:"connection"`
	Channel    string `json:"channel"`
	Thread     string `json:"thread,omitempty"`
	ID         string `json:"id"`
	URL        string `json:"url,omitempty"`
}

// Post is one delivery that the outbox wants made.
type Post struct {
	Key     string // idempotency key: the same key is posted once
	Place   Place
	Message Message
	Edits   *Ref // edit this post instead of making a new one
	Created time.Time
}
