package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"sync"

	"reasonix/internal/provider"
)

// maxConversations bounds how many conversations keep their encoded form.
const maxConversations = 8

// encoder keeps the encoded messages of recent conversations. A message is encoded once and appended ever after, so the
// bytes of a request are a prefix of the next one's, up to the closing brackets: the messages are the last field.
type encoder struct {
	mu    sync.Mutex
	kept  []*conversation // most recently used first
	count int             // messages encoded so far, for tests
}

type conversation struct {
	messages []provider.Message
	bytes    []byte // the messages, with commas between them
}

// body is one request, ready to be sent any number of times. Its parts are never written again.
type body struct {
	head     []byte // {"model":…,"messages":[
	messages []byte
}

var tail = []byte("]}")

func (b body) size() int64 { return int64(len(b.head) + len(b.messages) + len(tail)) }

func (b body) reader() io.ReadCloser {
	return io.NopCloser(io.MultiReader(bytes.NewReader(b.head), bytes.NewReader(b.messages), bytes.NewReader(tail)))
}

func (p *Provider) encode(req provider.Request) (body, error) {
	head, err := p.head(req)
	if err != nil {
		return body{}, err
	}
	messages, err := p.wire.messages(req.Messages)
	return body{head, messages}, err
}

// head is everything before the messages, in a fixed order.
func (p *Provider) head(req provider.Request) ([]byte, error) {
	var h fields
	h.add("model", p.model)
	h.add("stream", true)
	if !p.opts.noUsage {
		h.add("stream_options", map[string]bool{"include_usage": true})
	}
	if !p.opts.noTemperature {
		h.add("temperature", req.Temperature)
	}
	if req.MaxTokens > 0 {
		h.add(p.opts.tokensField, req.MaxTokens)
	}
	if len(req.Tools) > 0 {
		h.add("tools", wireTools(req.Tools))
	}
	if h.err != nil {
		return nil, h.err
	}
	return append(h.buf.Bytes(), `,"messages":[`...), nil
}

// fields writes an object whose keys keep their order.
type fields struct {
	buf bytes.Buffer
	err error
}

func (f *fields) add(name string, value any) {
	f.buf.WriteByte("{,"[min(f.buf.Len(), 1)])
	f.buf.WriteString(`"` + name + `":`)
	raw, err := marshal(value)
	if err != nil && f.err == nil {
		f.err = err
	}
	f.buf.Write(raw)
}

type wireTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func wireTools(tools []provider.ToolSchema) []wireTool {
	out := make([]wireTool, len(tools))
	for i, t := range tools {
		out[i].Type = "function"
		out[i].Function.Name, out[i].Function.Description, out[i].Function.Parameters = t.Name, t.Description, t.Parameters
	}
	return out
}

// messages encodes what is new since the last request of the same conversation.
func (e *encoder) messages(all []provider.Message) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.find(all)
	for _, m := range all[len(c.messages):] {
		raw, err := encodeMessage(m)
		if err != nil {
			return nil, err
		}
		if len(c.bytes) > 0 {
			c.bytes = append(c.bytes, ',')
		}
		c.bytes = append(c.bytes, raw...)
		c.messages = append(c.messages, m)
		e.count++
	}
	return c.bytes[:len(c.bytes):len(c.bytes)], nil
}

// find takes the longest conversation that all goes on with, or begins one, and moves it to the front.
func (e *encoder) find(all []provider.Message) *conversation {
	best := -1
	for i, c := range e.kept {
		if (best < 0 || len(c.messages) > len(e.kept[best].messages)) && isPrefix(c.messages, all) {
			best = i
		}
	}
	if best < 0 {
		e.kept = append([]*conversation{{}}, e.kept[:min(len(e.kept), maxConversations-1)]...)
		return e.kept[0]
	}
	c := e.kept[best]
	copy(e.kept[1:best+1], e.kept[:best])
	e.kept[0] = c
	return c
}

func isPrefix(known, all []provider.Message) bool {
	if len(known) > len(all) {
		return false
	}
	for i := range known {
		k, a := &known[i], &all[i]
		if k.Role != a.Role || k.ToolCallID != a.ToolCallID || k.Name != a.Name || k.Content != a.Content || !slices.Equal(k.ToolCalls, a.ToolCalls) {
			return false
		}
	}
	return true
}

type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// encodeMessage writes the fields that the role has. An assistant's content is null beside calls when it said nothing.
func encodeMessage(m provider.Message) ([]byte, error) {
	var f fields
	f.add("role", m.Role)
	switch {
	case m.Role == provider.RoleTool:
		f.add("tool_call_id", m.ToolCallID)
		f.add("content", m.Content)
	case m.Content == "" && len(m.ToolCalls) > 0:
		f.add("content", nil)
	default:
		f.add("content", m.Content)
	}
	if len(m.ToolCalls) > 0 {
		calls := make([]wireCall, len(m.ToolCalls))
		for i, c := range m.ToolCalls {
			calls[i].ID, calls[i].Type = c.ID, "function"
			calls[i].Function.Name, calls[i].Function.Arguments = c.Name, c.Arguments
		}
		f.add("tool_calls", calls)
	}
	if f.err != nil {
		return nil, f.err
	}
	return append(f.buf.Bytes(), '}'), nil
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
