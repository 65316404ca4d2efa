package builtin

import (
	"context"
	"encoding/json"
	"fmt"

	"reasonix/internal/tool"
)

const (
	moveDescription = `Move or rename a file or folder. The destination must not exist; its parent folders are made.`

	moveSchema = `{"type":"object","additionalProperties":false,"required":["source_path","destination_path"],"properties":{` +
		`"source_path":{"type":"string","minLength":1},"destination_path":{"type":"string","minLength":1}}}`
)

func init() { tool.Register(newMoveFile) }

func newMoveFile(env tool.Env) tool.Tool {
	if env.Files == nil {
		return nil
	}
	return moveFile{card: card{name: "move_file", description: moveDescription, schema: moveSchema}, desk: desk{env}}
}

type moveFile struct {
	card
	desk
}

type moveArgs struct {
	From string `json:"source_path"`
	To   string `json:"destination_path"`
}

// Paths names both ends: a rule that protects either decides.
func (moveFile) Paths(raw json.RawMessage) []string {
	a, err := decode[moveArgs](raw)
	if err != nil {
		return nil
	}
	return []string{a.From, a.To}
}

func (t moveFile) Execute(ctx context.Context, raw json.RawMessage) (string, error) {
	a, err := decode[moveArgs](raw)
	if err != nil {
		return "", err
	}
	from := t.key(a.From)
	version, seen := t.env.Versions.Last(from)
	if err := t.env.Files.Move(ctx, a.From, a.To); err != nil {
		return "", t.missing(ctx, a.From, err)
	}
	if seen {
		t.saw(a.From, "")
		t.saw(a.To, version)
	}
	return fmt.Sprintf("moved %s to %s", a.From, a.To), nil
}
