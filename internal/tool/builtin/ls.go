package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"reasonix/internal/tool"
)

const (
	lsDescription = `List a folder: folders end in /, links in @, files show their size. For a search over folders use glob.`

	lsSchema = `{"type":"object","additionalProperties":false,"properties":{` +
		`"path":{"type":"string","description":"Folder; the workspace when absent."}}}`

	lsMost = 1000 // entries shown
)

func init() { tool.Register(newLs) }

func newLs(env tool.Env) tool.Tool {
	if env.Files == nil {
		return nil
	}
	return ls{card: card{"ls", lsDescription, lsSchema, true}, desk: desk{env}}
}

type ls struct {
	card
	onePath
	desk
}

func (t ls) Execute(ctx context.Context, raw json.RawMessage) (string, error) {
	a, err := decode[struct {
		Path string `json:"path"`
	}](raw)
	if err != nil {
		return "", err
	}
	entries, err := t.env.Files.List(ctx, orHere(a.Path))
	if err != nil {
		return "", t.missing(ctx, a.Path, err)
	}
	if len(entries) == 0 {
		return "(the folder is empty)", nil
	}
	var b strings.Builder
	for i, e := range entries {
		line := entryLine(e)
		if i == lsMost || b.Len()+len(line) > readShown {
			fmt.Fprintf(&b, "(%d more of %d)\n", len(entries)-i, len(entries))
			break
		}
		b.WriteString(line)
	}
	return b.String(), nil
}

func entryLine(e fs.DirEntry) string {
	switch {
	case e.IsDir():
		return e.Name() + "/\n"
	case e.Type()&fs.ModeSymlink != 0:
		return e.Name() + "@\n"
	case !e.Type().IsRegular():
		return e.Name() + " (special file)\n"
	}
	info, err := e.Info()
	if err != nil {
		return e.Name() + "\n"
	}
	return fmt.Sprintf("%s (%s)\n", e.Name(), size(info.Size()))
}
