package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"reasonix/internal/tool"
)

const (
	editDescription = `Replace text in a file. old_string must match exactly, white space included, and be unique unless replace_all is set.
A file that changed since you read it is refused: read it again. Line endings are kept.`

	editSchema = `{"type":"object","additionalProperties":false,"required":["path","old_string","new_string"],"properties":{` +
		`"path":{"type":"string","minLength":1,"description":"Relative to the workspace, or absolute."},` +
		`"old_string":{"type":"string","minLength":1,"description":"Text to replace, without line numbers."},` +
		`"new_string":{"type":"string","description":"Text to put there; empty deletes."},` +
		`"replace_all":{"type":"boolean","description":"Replace every occurrence."}}}`
)

func init() { tool.Register(newEditFile) }

func newEditFile(env tool.Env) tool.Tool {
	if env.Files == nil {
		return nil
	}
	return editFile{card: card{name: "edit_file", description: editDescription, schema: editSchema}, desk: desk{env}}
}

type editFile struct {
	card
	onePath
	desk
}

type editArgs struct {
	Path string `json:"path"`
	change
}

func (t editFile) Execute(ctx context.Context, raw json.RawMessage) (string, error) {
	a, err := decode[editArgs](raw)
	if err != nil {
		return "", err
	}
	return t.edit(ctx, a.Path, []change{a.change})
}

// edit applies all changes or none. A file that was never read may be edited: an exact match proves that its text is known.
func (d desk) edit(ctx context.Context, path string, changes []change) (string, error) {
	data, version, err := d.env.Files.Read(ctx, path, maxEdit)
	if err != nil {
		return "", d.missing(ctx, path, err)
	}
	if err := d.unchanged(path, version); err != nil {
		return "", err
	}
	if isBinary(data) {
		return "", errors.New(path + " is a binary file; it cannot be edited as text")
	}
	before, total := string(data), 0
	after := before
	for i, c := range changes {
		next, n, err := c.apply(after)
		if err != nil && len(changes) > 1 {
			return "", fmt.Errorf("edit %d of %d: %w; nothing was changed", i+1, len(changes), err)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		after, total = next, total+n
	}
	if after == before {
		return "", fmt.Errorf("%s: the edits cancel each other out; nothing was changed", path)
	}
	if err := d.put(ctx, path, []byte(after), version); err != nil {
		return "", err
	}
	return fmt.Sprintf("edited %s (%s)\n%s", path, plural(total, "replacement"), difference(path, before, after)), nil
}
