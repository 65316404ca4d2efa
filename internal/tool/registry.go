package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"reasonix/internal/provider"
)

// ErrUnknownTool: the model called a tool that this run does not offer.
var ErrUnknownTool = errors.New("unknown tool")

// nameShape is what every vendor accepts as a function name.
var nameShape = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// Registry holds the tools of one run, in the order in which they were added. The zero value is empty and usable. It is
// filled by one goroutine; afterwards any number may read.
type Registry struct {
	tools  []entry
	byName map[string]int
}

type entry struct {
	tool   Tool
	schema provider.ToolSchema
	check  *jsonschema.Schema
	fields []string // of the root object, for error texts
}

// NewRegistry adds the tools in order.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{}
	for _, t := range tools {
		if err := r.Add(t); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Add canonicalises the tool's schema and offers it. It refuses a name that no vendor accepts, a name twice, and a schema
// that is not a closed object (type object, additionalProperties false at every object that lists properties).
func (r *Registry) Add(t Tool) error {
	name := t.Name()
	if !nameShape.MatchString(name) {
		return fmt.Errorf("add tool %q: a name is 1 to 64 letters, digits, _ or -", name)
	}
	if _, dup := r.byName[name]; dup {
		return fmt.Errorf("add tool %s: the name is taken", name)
	}
	tree, canonical, err := canonicalSchema(t.Schema())
	if err != nil {
		return fmt.Errorf("add tool %s: %w", name, err)
	}
	check, err := compileSchema(name, tree)
	if err != nil {
		return fmt.Errorf("add tool %s: %w", name, err)
	}
	if r.byName == nil {
		r.byName = map[string]int{}
	}
	r.byName[name] = len(r.tools)
	r.tools = append(r.tools, entry{
		tool:   t,
		schema: provider.ToolSchema{Name: name, Description: t.Description(), Parameters: canonical},
		check:  check,
		fields: propertyNames(tree),
	})
	return nil
}

// Get returns the tool of that exact name.
func (r *Registry) Get(name string) (Tool, bool) {
	i, ok := r.byName[name]
	if !ok {
		return nil, false
	}
	return r.tools[i].tool, true
}

// Names lists the tools in the order in which they were added.
func (r *Registry) Names() []string {
	names := make([]string, len(r.tools))
	for i, e := range r.tools {
		names[i] = e.schema.Name
	}
	return names
}

// Schemas is what the model is offered. The bytes are the same for the same tools, whatever built them: a changed byte here
// costs the whole prompt cache.
func (r *Registry) Schemas() []provider.ToolSchema {
	out := make([]provider.ToolSchema, len(r.tools))
	for i, e := range r.tools {
		out[i] = e.schema
		out[i].Parameters = bytes.Clone(e.schema.Parameters)
	}
	return out
}

// find explains an unknown name so that the model can pick a real one.
func (r *Registry) find(name string) (entry, error) {
	if i, ok := r.byName[name]; ok {
		return r.tools[i], nil
	}
	if near := nearest(name, r.Names()); near != "" {
		return entry{}, fmt.Errorf("%w %q: did you mean %s?", ErrUnknownTool, name, near)
	}
	return entry{}, fmt.Errorf("%w %q: the tools are %s", ErrUnknownTool, name, list(r.Names()))
}

// Fingerprint is every schema with its description as the bytes that a request carries; equal fingerprints mean that the
// prompt cache survives.
func (r *Registry) Fingerprint() []byte {
	b, err := json.Marshal(r.Schemas())
	if err != nil { // the schemas are already canonical JSON
		return nil
	}
	return b
}
