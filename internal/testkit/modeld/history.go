package modeld

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var functionName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// parse reads a request and refuses what a strict vendor refuses.
func parse(raw []byte) (Request, error) {
	var in struct {
		Model         string    `json:"model"`
		Messages      []Message `json:"messages"`
		Tools         []Tool    `json:"tools"`
		Stream        bool      `json:"stream"`
		StreamOptions *struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Temperature         *float64 `json:"temperature"`
		MaxTokens           int      `json:"max_tokens"`
		MaxCompletionTokens int      `json:"max_completion_tokens"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return Request{}, fmt.Errorf("the body is not valid JSON: %w", err)
	}
	r := Request{Model: in.Model, Messages: in.Messages, Tools: in.Tools, Stream: in.Stream, Temperature: in.Temperature,
		MaxTokens: max(in.MaxTokens, in.MaxCompletionTokens), WantUsage: in.StreamOptions != nil && in.StreamOptions.IncludeUsage}
	switch {
	case in.Model == "":
		return r, errors.New("you must provide a model parameter")
	case in.StreamOptions != nil && !in.Stream:
		return r, errors.New("stream_options is only allowed with stream")
	case in.Temperature != nil && (*in.Temperature < 0 || *in.Temperature > 2):
		return r, errors.New("temperature must be between 0 and 2")
	}
	if err := checkTools(in.Tools); err != nil {
		return r, err
	}
	return r, CheckHistory(in.Messages)
}

func checkTools(tools []Tool) error {
	seen := map[string]bool{}
	for i, t := range tools {
		name := t.Function.Name
		switch {
		case t.Type != "function":
			return fmt.Errorf("tools[%d]: type must be function", i)
		case !functionName.MatchString(name):
			return fmt.Errorf("tools[%d]: the name %q is not allowed", i, name)
		case seen[name]:
			return fmt.Errorf("tools[%d]: the name %s is there twice", i, name)
		}
		seen[name] = true
		if err := checkSchema(t.Function.Parameters); err != nil {
			return fmt.Errorf("tools[%d] %s: invalid schema: %w", i, name, err)
		}
	}
	return nil
}

func checkSchema(raw json.RawMessage) error {
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	object, ok := tree.(map[string]any)
	if !ok || object["type"] != "object" {
		return errors.New("it must be of type object")
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///schema.json", tree); err != nil {
		return err
	}
	_, err = c.Compile("mem:///schema.json")
	return err
}

// CheckHistory refuses a conversation that a strict vendor refuses; the error names the message.
func CheckHistory(messages []Message) error {
	h := history{answered: map[string]bool{}}
	for i, m := range messages {
		if err := h.add(m); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	switch {
	case len(messages) == 0:
		return errors.New("messages is empty")
	case len(h.open) > 0:
		return fmt.Errorf("an assistant message with tool_calls must be followed by tool messages for each tool_call_id; missing: %v", h.open)
	case h.last != "user" && h.last != "tool":
		return fmt.Errorf("the last message must be of role user or tool, not %s", h.last)
	}
	return nil
}

// history walks a conversation.
type history struct {
	last     string
	open     []string        // ids of the last assistant message without an answer
	answered map[string]bool // ids of the last assistant message with one
}

func (h *history) add(m Message) error {
	if len(h.open) > 0 && m.Role != "tool" {
		return fmt.Errorf("role %s, but these tool_call_ids have no answer yet: %v", m.Role, h.open)
	}
	var err error
	switch m.Role {
	case "system", "developer":
		if h.last != "" && h.last != "system" && h.last != "developer" {
			err = errors.New("a system message must come first")
		}
	case "user":
	case "assistant":
		err = h.assistant(m)
	case "tool":
		err = h.tool(m)
	default:
		err = fmt.Errorf("unknown role %q", m.Role)
	}
	if err == nil && m.Role != "assistant" && m.Content == nil {
		err = errors.New("content is missing")
	}
	if err == nil && m.Role != "assistant" && len(m.ToolCalls) > 0 {
		err = errors.New("only an assistant may call tools")
	}
	if err == nil && m.Role == "user" && m.Text() == "" {
		err = errors.New("content is empty")
	}
	h.last = m.Role
	return err
}

func (h *history) assistant(m Message) error {
	switch h.last {
	case "assistant":
		return errors.New("two assistant messages in a row")
	case "", "system", "developer":
		return errors.New("a conversation must begin with a user message")
	}
	if m.Text() == "" && len(m.ToolCalls) == 0 {
		return errors.New("an assistant message needs content or tool_calls")
	}
	h.answered = map[string]bool{}
	seen := map[string]bool{}
	for i, c := range m.ToolCalls {
		var args map[string]json.RawMessage
		switch {
		case c.ID == "" || len(c.ID) > 40:
			return fmt.Errorf("tool_calls[%d]: the id must have 1 to 40 characters", i)
		case seen[c.ID]:
			return fmt.Errorf("tool_calls[%d]: the id %s is there twice", i, c.ID)
		case c.Type != "function":
			return fmt.Errorf("tool_calls[%d]: type must be function", i)
		case !functionName.MatchString(c.Function.Name):
			return fmt.Errorf("tool_calls[%d]: the name %q is not allowed", i, c.Function.Name)
		case json.Unmarshal([]byte(c.Function.Arguments), &args) != nil || args == nil:
			return fmt.Errorf("tool_calls[%d]: arguments must be a JSON object", i)
		}
		seen[c.ID] = true
		h.open = append(h.open, c.ID)
	}
	return nil
}

func (h *history) tool(m Message) error {
	if h.answered[m.ToolCallID] {
		return fmt.Errorf("the tool_call_id %s is answered twice", m.ToolCallID)
	}
	for i, id := range h.open {
		if id == m.ToolCallID {
			h.open = append(h.open[:i:i], h.open[i+1:]...)
			h.answered[id] = true
			return nil
		}
	}
	return fmt.Errorf("a tool message must follow an assistant message with its tool_call_id; %q is unknown", m.ToolCallID)
}
