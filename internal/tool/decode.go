package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Limits of one call's arguments.
const (
	MaxArgs  = 4 << 20 // bytes
	MaxDepth = 32      // nested objects and arrays
)

// ErrArguments: the arguments of a call do not decode strictly; the text says what to change.
var ErrArguments = errors.New("invalid arguments")

// Decode is the one decoding of a call. Rules, digest, hooks and Execute all get its result, so a call cannot mean one thing to
// the judge and another to the tool. It refuses duplicate keys, keys that differ only in case, unknown and missing fields,
// wrong types, trailing data, broken UTF-8, and anything over MaxArgs or MaxDepth. The result has sorted keys and no white
// space; decoding it again gives the same bytes. Empty text counts as {}.
func (r *Registry) Decode(name, raw string) (json.RawMessage, error) {
	e, err := r.find(name)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(raw) == "" {
		raw = "{}"
	}
	tree, err := parseStrict(raw)
	if err != nil {
		return nil, fmt.Errorf("%w for %s: %w", ErrArguments, name, err)
	}
	if _, ok := tree.(map[string]any); !ok {
		return nil, fmt.Errorf("%w for %s: they must be one JSON object", ErrArguments, name)
	}
	if err := e.check.Validate(tree); err != nil {
		return nil, fmt.Errorf("%w for %s: %s", ErrArguments, name, explain(err, e.fields))
	}
	canonical, err := encodeCanonical(tree)
	if err != nil {
		return nil, fmt.Errorf("%w for %s: %w", ErrArguments, name, err)
	}
	return canonical, nil
}

// explain turns the findings of the schema into sentences that say what to fix, all of them at once, bounded.
func explain(err error, fields []string) string {
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return err.Error()
	}
	var out []string
	collect(ve, fields, &out)
	const most = 8
	if len(out) > most {
		out = append(out[:most], fmt.Sprintf("and %d more", len(out)-most))
	}
	return Bound(strings.Join(out, "; "), 2000)
}

func collect(ve *jsonschema.ValidationError, fields []string, out *[]string) {
	if len(ve.Causes) > 0 {
		for _, c := range ve.Causes {
			collect(c, fields, out)
		}
		return
	}
	at := "/" + strings.Join(ve.InstanceLocation, "/")
	switch k := ve.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, p := range k.Properties {
			*out = append(*out, unknownField(p, at, len(ve.InstanceLocation) == 0, fields))
		}
	case *kind.Required:
		for _, m := range k.Missing {
			*out = append(*out, fmt.Sprintf("field %q is missing%s", m, inside(at)))
		}
	case *kind.Type:
		*out = append(*out, fmt.Sprintf("%s must be %s, not %s", at, strings.Join(k.Want, " or "), k.Got))
	default:
		*out = append(*out, at+": "+k.LocalizedString(message.NewPrinter(language.English)))
	}
}

func unknownField(name, at string, root bool, fields []string) string {
	s := fmt.Sprintf("unknown field %q%s", name, inside(at))
	if !root {
		return s
	}
	if near := nearest(name, fields); near != "" {
		return s + fmt.Sprintf(": did you mean %q?", near)
	}
	return s + ": the fields are " + list(fields)
}

func inside(at string) string {
	if at == "/" {
		return ""
	}
	return " in " + at
}
