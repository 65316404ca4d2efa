package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// canonicalSchema gives the schema as a tree and as bytes: sorted keys, no white space. The same meaning in another order
// gives the same bytes.
func canonicalSchema(raw json.RawMessage) (map[string]any, json.RawMessage, error) {
	tree, err := parseStrict(string(raw))
	if err != nil {
		return nil, nil, fmt.Errorf("schema: %w", err)
	}
	root, ok := tree.(map[string]any)
	if !ok || root["type"] != "object" {
		return nil, nil, errors.New(`schema: the root must have "type": "object"`)
	}
	if _, ok := root["properties"]; !ok {
		root["properties"] = map[string]any{} // some vendors refuse an object schema without it
	}
	if err := mustBeClosed(root, ""); err != nil {
		return nil, nil, err
	}
	canonical, err := encodeCanonical(root)
	if err != nil {
		return nil, nil, fmt.Errorf("schema: %w", err)
	}
	return root, canonical, nil
}

// mustBeClosed demands additionalProperties false wherever properties are listed: an undeclared argument must never pass.
func mustBeClosed(node any, at string) error {
	switch n := node.(type) {
	case map[string]any:
		if _, listed := n["properties"].(map[string]any); listed && n["additionalProperties"] != false {
			return fmt.Errorf(`schema: %s needs "additionalProperties": false`, place(at))
		}
		for _, k := range sortedKeys(n) {
			if err := mustBeClosed(n[k], at+"/"+k); err != nil {
				return err
			}
		}
	case []any:
		for i, v := range n {
			if err := mustBeClosed(v, fmt.Sprintf("%s/%d", at, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// noLoader keeps a schema from making the host read a file or an address.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("schema refers to %s: references outside the schema are refused", url)
}

func compileSchema(name string, tree map[string]any) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.DefaultDraft(jsonschema.Draft2020)
	address := "tool:///" + name
	if err := c.AddResource(address, tree); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	s, err := c.Compile(address)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return s, nil
}

func propertyNames(tree map[string]any) []string {
	props, _ := tree["properties"].(map[string]any)
	return sortedKeys(props)
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func place(pointer string) string {
	if pointer == "" {
		return "the root"
	}
	return pointer
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// nearest finds the name that the model most likely meant: the same letters in another case or with other separators.
func nearest(name string, known []string) string {
	fold := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r == '_' || r == '-' || r == ' ' {
				return -1
			}
			return r
		}, strings.ToLower(s))
	}
	for _, k := range known {
		if fold(k) == fold(name) {
			return k
		}
	}
	return ""
}
