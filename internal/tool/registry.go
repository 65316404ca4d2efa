package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"reasonix/internal/provider"
)

// Registry holds the tools of one run, in the order in which they were added.
type Registry struct {
	tools []Tool
}

// Add offers a tool; a name twice is refused.
func (r *Registry) Add(t Tool) error {
	if _, dup := r.Get(t.Name()); dup {
		return fmt.Errorf("add tool %s: the name is taken", t.Name())
	}
	r.tools = append(r.tools, t)
	return nil
}

// Get returns the tool of that exact name.
func (r *Registry) Get(name string) (Tool, bool) {
	for _, t := range r.tools {
		if t.Name() == name {
			return t, true
		}
	}
	return nil, false
}

// Names lists the tools in the order in which they were added.
func (r *Registry) Names() []string {
	names := make([]string, len(r.tools))
	for i, t := range r.tools {
		names[i] = t.Name()
	}
	return names
}

// Schemas is what the model is offered.
func (r *Registry) Schemas() []provider.ToolSchema {
	out := make([]provider.ToolSchema, len(r.tools))
	for i, t := range r.tools {
		out[i] = provider.ToolSchema{Name: t.Name(), Description: t.Description(), Parameters: t.Schema()}
	}
	return out
}

// Decode checks that raw is one JSON object for a known tool. Empty text counts as {}.
func (r *Registry) Decode(name, raw string) (json.RawMessage, error) {
	if _, ok := r.Get(name); !ok {
		return nil, fmt.Errorf("unknown tool %q: the tools are %s", name, strings.Join(r.Names(), ", "))
	}
	if strings.TrimSpace(raw) == "" {
		raw = "{}"
	}
	var fields map[string]json.RawMessage
	dec := json.NewDecoder(strings.NewReader(raw))
	if err := dec.Decode(&fields); err != nil || fields == nil || dec.More() {
		return nil, fmt.Errorf("invalid arguments for %s: they must be one JSON object", name)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(raw)); err != nil {
		return nil, fmt.Errorf("invalid arguments for %s: %w", name, err)
	}
	return b.Bytes(), nil
}
