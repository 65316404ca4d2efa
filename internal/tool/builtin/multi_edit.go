package builtin

import (
	"context"
	"encoding/json"

	"reasonix/internal/tool"
)

const (
	multiDescription = `Several replacements in one file, applied in order to the result of the one before. All of them or none.`

	multiSchema = `{"type":"object","additionalProperties":false,"required":["path","edits"],"properties":{` +
		`"path":{"type":"string","minLength":1,"description":"Relative to the workspace, or absolute."},` +
		`"edits":{"type":"array","minItems":1,"maxItems":100,"items":{"type":"object","additionalProperties":false,` +
		`"required":["old_string","new_string"],"properties":{` +
		`"old_string":{"type":"string","minLength":1},"new_string":{"type":"string"},"replace_all":{"type":"boolean"}},` +
		`"description":"As in edit_file."}}}}`
)

func init() { tool.Register(newMultiEdit) }

func newMultiEdit(env tool.Env) tool.Tool {
	if env.Files == nil {
		return nil
	}
	return multiEdit{card: card{name: "multi_edit", description: multiDescription, schema: multiSchema}, desk: desk{env}}
}

type multiEdit struct {
	card
	onePath
	desk
}

func (t multiEdit) Execute(ctx context.Context, raw json.RawMessage) (string, error) {
	a, err := decode[struct {
		Path  string   `json:"path"`
		Edits []change `json:"edits"`
	}](raw)
	if err != nil {
		return "", err
	}
	return t.edit(ctx, a.Path, a.Edits)
}
