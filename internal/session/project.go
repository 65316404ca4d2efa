package session

import (
	"encoding/json"

	"reasonix/internal/provider"
)

// Messages is the conversation as the model reads it. Appending entries only ever appends messages.
func Messages(entries []Entry) []provider.Message {
	var out []provider.Message
	for _, e := range entries {
		if m, ok := e.ForModel(); ok {
			out = append(out, m)
		}
	}
	return out
}

// ForModel gives the message that the entry adds to the conversation, if it adds one.
func (e Entry) ForModel() (provider.Message, bool) {
	switch e.Kind {
	case KindSystem, KindUser, KindAssistant, KindResult:
		if e.Message != nil {
			return *e.Message, true
		}
	}
	return provider.Message{}, false
}

// Open is a call without a result: where the session stands.
type Open struct {
	Call     provider.ToolCall
	Index    int             // position in its message
	Started  bool            // its intent stands in the transcript: it may have had its effect
	Pending  json.RawMessage // the last question to a person about it, nil when there was none
	Decision json.RawMessage // the answer to that question, nil while it waits
}

// OpenCalls lists the calls of the last assistant message that lack a result, in call order.
func OpenCalls(entries []Entry) []Open {
	var w Where
	for _, e := range entries {
		w.Apply(e)
	}
	return w.Open()
}

// Where follows a transcript entry by entry and knows the open calls. Ids count within the last assistant message only,
// because vendors use the same id again in later messages.
type Where struct {
	open []Open
}

// Apply takes the next entry.
func (w *Where) Apply(e Entry) {
	if e.Kind == KindAssistant && e.Message != nil {
		w.open = w.open[:0:0]
		for i, c := range e.Message.ToolCalls {
			w.open = append(w.open, Open{Call: c, Index: i})
		}
		return
	}
	for i := range w.open {
		if w.open[i].Call.ID != e.CallID || e.CallID == "" {
			continue
		}
		w.take(i, e)
		return
	}
}

func (w *Where) take(i int, e Entry) {
	switch e.Kind {
	case KindIntent:
		w.open[i].Started = true
	case KindPending:
		w.open[i].Pending, w.open[i].Decision = e.Data, nil
	case KindDecision:
		w.open[i].Decision = e.Data
	case KindResult:
		w.open = append(w.open[:i:i], w.open[i+1:]...)
	}
}

// Open returns a copy of the open calls in call order.
func (w *Where) Open() []Open { return append([]Open(nil), w.open...) }
