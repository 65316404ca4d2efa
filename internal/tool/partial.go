package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// DecodePartial is Decode for arguments of which some may be missing: policy tests name only what the rules look at. What is there
// is held to the schema all the same. For a tool that the registry lacks, any one JSON object will do.
func (r *Registry) DecodePartial(name, raw string) (json.RawMessage, error) {
	if strings.TrimSpace(raw) == "" {
		raw = "{}"
	}
	tree, err := parseStrict(raw)
	if err != nil {
		return nil, fmt.Errorf("%w for %s: %w", ErrArguments, name, err)
	}
	args, ok := tree.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%w for %s: they must be one JSON object", ErrArguments, name)
	}
	if e, err := r.find(name); err == nil {
		var ve *jsonschema.ValidationError
		if verr := e.check.Validate(knownPath(args, e.fields)); verr != nil && !(errors.As(verr, &ve) && onlyMissing(ve)) {
			return nil, fmt.Errorf("%w for %s: %s", ErrArguments, name, explain(verr, e.fields))
		}
	}
	return encodeCanonical(tree)
}

// onlyMissing tells whether every finding is a missing field of the root object.
func onlyMissing(ve *jsonschema.ValidationError) bool {
	if len(ve.Causes) == 0 {
		_, missing := ve.ErrorKind.(*kind.Required)
		return missing && len(ve.InstanceLocation) == 0
	}
	for _, c := range ve.Causes {
		if !onlyMissing(c) {
			return false
		}
	}
	return true
}

// knownPath spells a path the way the tool does: rules read path and file_path alike (Spec, section 3.7), and so may a policy test.
func knownPath(args map[string]any, fields []string) map[string]any {
	path, given := args["file_path"]
	if !given || slices.Contains(fields, "file_path") || !slices.Contains(fields, "path") {
		return args
	}
	out := maps.Clone(args)
	delete(out, "file_path")
	out["path"] = path
	return out
}
