package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// fake is a tool with nothing but a schema.
type fake struct {
	name, schema string
	got          json.RawMessage
}

func (f *fake) Name() string            { return f.name }
func (f *fake) Description() string     { return "a tool of the tests" }
func (f *fake) Schema() json.RawMessage { return json.RawMessage(f.schema) }
func (f *fake) ReadOnly() bool          { return true }
func (f *fake) Execute(_ context.Context, args json.RawMessage) (string, error) {
	f.got = args
	return "", nil
}

const moveSchema = `{"type":"object","additionalProperties":false,"required":["path"],"properties":{
	"path":{"type":"string"},"limit":{"type":"integer","minimum":1},"all":{"type":"boolean"},"ratio":{"type":"number"},
	"edits":{"type":"array","items":{"type":"object","additionalProperties":false,"properties":{"old":{"type":"string"}}}}}}`

func TestRegistryOffersToolsInTheOrderOfAddingWithStableBytes(t *testing.T) {
	shuffled := `{ "properties": {"path": {"type": "string"}}, "additionalProperties": false, "type": "object" }`
	sorted := `{"additionalProperties":false,"properties":{"path":{"type":"string"}},"type":"object"}`
	r, err := NewRegistry(&fake{name: "b", schema: shuffled}, &fake{name: "a", schema: sorted})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.Names(), " "); got != "b a" {
		t.Fatalf("order of the offer: %s", got)
	}
	s := r.Schemas()
	if string(s[0].Parameters) != sorted || !bytes.Equal(s[0].Parameters, s[1].Parameters) {
		t.Fatalf("equal schemas got different bytes:\n%s\n%s", s[0].Parameters, s[1].Parameters)
	}
	before := r.Fingerprint()
	s[0].Parameters[0] = 'X' // a caller that scribbles must not change the next request
	if !bytes.Equal(before, r.Fingerprint()) {
		t.Fatal("a caller could change the registry's schema")
	}
}

func TestRegistryRefusesWhatItCannotOffer(t *testing.T) {
	closed := `{"type":"object","additionalProperties":false}`
	for name, c := range map[string]struct{ tool, schema, want string }{
		"the same name twice": {"taken", closed, "taken"},
		"a name with a space": {"two words", closed, "letters"},
		"an open schema":      {"x", `{"type":"object","properties":{"a":{"type":"string"}}}`, "additionalProperties"},
		"an open inner object": {"x", `{"type":"object","additionalProperties":false,"properties":{"a":{"type":"array",
			"items":{"type":"object","properties":{"b":{}}}}}}`, "/properties/a/items"},
		"an array schema":          {"x", `{"type":"array"}`, `"type": "object"`},
		"no JSON":                  {"x", `{`, "JSON"},
		"a key twice":              {"x", `{"type":"object","type":"object","additionalProperties":false}`, "twice"},
		"a reference to a file":    {"x", `{"type":"object","additionalProperties":false,"properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "refused"},
		"a wrong value of keyword": {"x", `{"type":"object","additionalProperties":false,"properties":{"a":{"type":"strin"}}}`, "schema"},
	} {
		r, err := NewRegistry(&fake{name: "taken", schema: closed})
		if err != nil {
			t.Fatal(err)
		}
		err = r.Add(&fake{name: c.tool, schema: c.schema})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want a refusal that names %q", name, err, c.want)
		}
		if len(r.Names()) != 1 {
			t.Errorf("%s: the refused tool is offered", name)
		}
	}
}

func TestDecodeRefusesWhatTwoReadersCouldUnderstandDifferently(t *testing.T) {
	r, err := NewRegistry(&fake{name: "move_file", schema: moveSchema})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ raw, want string }{
		"a key twice":                     {`{"path":"a","path":"b"}`, `"path" appears twice`},
		"a key twice, once escaped":       {`{"path":"a","p\u0061th":"b"}`, `appears twice`},
		"a key twice, deep":               {`{"path":"a","edits":[{"old":"x","old":"y"}]}`, `/edits/0`},
		"keys that differ in case":        {`{"path":"a","Path":"b"}`, `differ only in case`},
		"keys that fold through Unicode":  {"{\"path\":\"a\",\"li\u006dit\":1,\"LIMIT\":2}", `differ only in case`},
		"a wrong case":                    {`{"Path":"a"}`, `did you mean "path"?`},
		"an undeclared switch":            {`{"path":"a","disable_sandbox":true}`, `unknown field "disable_sandbox"`},
		"an undeclared field, deep":       {`{"path":"a","edits":[{"new":"x"}]}`, `unknown field "new" in /edits/0`},
		"a missing field":                 {`{}`, `"path" is missing`},
		"nothing at all":                  {``, `"path" is missing`},
		"a number for a text":             {`{"path":1}`, `/path must be string, not number`},
		"a text for a number":             {`{"path":"a","limit":"3"}`, `/limit must be integer, not string`},
		"null":                            {`{"path":null}`, `/path must be string, not null`},
		"a fraction":                      {`{"path":"a","limit":1.5}`, `/limit must be integer`},
		"below the minimum":               {`{"path":"a","limit":0}`, `/limit`},
		"text behind":                     {`{"path":"a"} {"path":"b"}`, `JSON`},
		"NaN":                             {`{"path":"a","ratio":NaN}`, `JSON`},
		"a number beyond float64":         {`{"path":"a","ratio":1e999}`, `out of range`},
		"a number that explodes":          {`{"path":"a","ratio":1e-999999999}`, `out of range`},
		"broken UTF-8":                    {"{\"path\":\"a\xff\"}", `UTF-8`},
		"half a character":                {`{"path":"\ud83d"}`, `half of a character`},
		"half a character, second half":   {`{"path":"\ude00"}`, `half of a character`},
		"a list":                          {`["a"]`, `one JSON object`},
		"a bare text":                     {`"a"`, `one JSON object`},
		"too deep":                        {`{"path":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, `deeper than 32`},
		"a million openers":               {strings.Repeat(`[`, 1<<20), `deeper than 32`},
		"too large":                       {`{"path":"` + strings.Repeat("a", MaxArgs) + `"}`, `more than the limit`},
		"a comment":                       {`{"path":"a"/* hm */}`, `JSON`},
		"single quotes":                   {`{'path':'a'}`, `JSON`},
		"a trailing comma":                {`{"path":"a",}`, `JSON`},
		"a byte order mark":               {"\uFEFF{\"path\":\"a\"}", `JSON`},
		"several mistakes are named once": {`{"Path":1,"limit":"x"}`, `; `},
	} {
		_, err := r.Decode("move_file", c.raw)
		if !errors.Is(err, ErrArguments) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want a refusal that says %q", name, err, c.want)
		}
		if err != nil && len(err.Error()) > 3000 {
			t.Errorf("%s: the refusal has %d bytes", name, len(err.Error()))
		}
	}
}

func TestDecodeGivesOneSpelling(t *testing.T) {
	r, err := NewRegistry(&fake{name: "move_file", schema: moveSchema})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"all":true,"limit":20,"path":"a<b>&é😀"}`
	for _, raw := range []string{
		want,
		` { "path" : "a<b>&é😀", "limit": 2e1, "all": true } `,
		`{"p\u0061th":"a\u003cb>&\u00e9\ud83d\ude00","limit":20.0,"all":true}`,
	} {
		got, err := r.Decode("move_file", raw)
		if err != nil || string(got) != want {
			t.Errorf("%s\n got %s, %v\nwant %s", raw, got, err, want)
		}
	}
}

func TestDecodeNamesTheToolThatWasMeant(t *testing.T) {
	r, err := NewRegistry(&fake{name: "move_file", schema: moveSchema})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"MoveFile": "did you mean move_file?", "delete": "the tools are move_file"} {
		_, err := r.Decode(name, `{}`)
		if !errors.Is(err, ErrUnknownTool) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var empty Registry
	if _, err := empty.Decode("x", "{}"); !errors.Is(err, ErrUnknownTool) {
		t.Errorf("an empty registry: %v", err)
	}
}
