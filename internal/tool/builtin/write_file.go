package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"reasonix/internal/tool"
)

const (
	writeDescription = `Create a file, or replace the whole of one that you have read in this task. Missing parent folders are made.
For a change inside a file use edit_file.`

	writeSchema = `{"type":"object","additionalProperties":false,"required":["path","content"],"properties":{` +
		`"path":{"type":"string","minLength":1,"description":"Relative to the workspace, or absolute."},` +
		`"content":{"type":"string","description":"The whole new content."}}}`
)

func init() { tool.Register(newWriteFile) }

func newWriteFile(env tool.Env) tool.Tool {
	if env.Files == nil {
		return nil
	}
	return writeFile{card: card{name: "write_file", description: writeDescription, schema: writeSchema}, desk: desk{env}}
}

type writeFile struct {
	card
	onePath
	desk
}

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (t writeFile) Execute(ctx context.Context, raw json.RawMessage) (string, error) {
	a, err := decode[writeArgs](raw)
	if err != nil {
		return "", err
	}
	old, version, err := t.env.Files.Read(ctx, a.Path, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := t.put(ctx, a.Path, []byte(a.Content), tool.VersionAbsent); err != nil {
			return "", err
		}
		return fmt.Sprintf("created %s (%s)", a.Path, plural(countLines(a.Content), "line")), nil
	case errors.Is(err, tool.ErrSpecial), errors.Is(err, tool.ErrTooLarge):
		return "", fmt.Errorf("%w: what is there cannot be replaced", err)
	case err != nil:
		return "", err
	}
	if _, seen := t.env.Versions.Last(t.key(a.Path)); !seen {
		return "", fmt.Errorf("%s exists and you have not read it: read it first, or use edit_file", a.Path)
	}
	if err := t.unchanged(a.Path, version); err != nil {
		return "", err
	}
	if string(old) == a.Content {
		return fmt.Sprintf("%s already has this content; nothing was written", a.Path), nil
	}
	if err := t.put(ctx, a.Path, []byte(a.Content), version); err != nil {
		return "", err
	}
	return fmt.Sprintf("replaced %s (%s, before %d)", a.Path, plural(countLines(a.Content), "line"), countLines(string(old))), nil
}
