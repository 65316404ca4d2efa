package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"reasonix/internal/tool"
)

const (
	rangeDescription = `Delete whole lines of a file that you have read in this task. text is what stands on line first: it guards against shifted numbers.`

	rangeSchema = `{"type":"object","additionalProperties":false,"required":["path","first","last","text"],"properties":{` +
		`"path":{"type":"string","minLength":1},` +
		`"first":{"type":"integer","minimum":1,"description":"First line to delete, from 1."},` +
		`"last":{"type":"integer","minimum":1,"description":"Last line to delete."},` +
		`"text":{"type":"string","description":"Line first, without its number."}}}`
)

func init() { tool.Register(newDeleteRange) }

func newDeleteRange(env tool.Env) tool.Tool {
	if env.Files == nil {
		return nil
	}
	return deleteRange{card: card{name: "delete_range", description: rangeDescription, schema: rangeSchema}, desk: desk{env}}
}

type deleteRange struct {
	card
	onePath
	desk
}

// Execute implements tool.Tool.
func (t deleteRange) Execute(ctx context.Context, raw json.RawMessage) (string, error) {
	a, err := decode[struct {
		Path  string `json:"path"`
		First int    `json:"first"`
		Last  int    `json:"last"`
		Text  string `json:"text"`
	}](raw)
	if err != nil {
		return "", err
	}
	before, version, err := t.text(ctx, a.Path)
	if err != nil {
		return "", err
	}
	if _, seen := t.env.Versions.Last(t.key(a.Path)); !seen {
		return "", fmt.Errorf("%s: you have not read it, so its line numbers are not known: read it first", a.Path)
	}
	lines := strings.SplitAfter(before, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	switch {
	case a.Last < a.First:
		return "", fmt.Errorf("last (%d) stands before first (%d)", a.Last, a.First)
	case a.Last > len(lines):
		return "", fmt.Errorf("last is %d, and %s has %s", a.Last, a.Path, plural(len(lines), "line"))
	}
	if is := lines[a.First-1]; strings.TrimSpace(is) != strings.TrimSpace(a.Text) {
		return "", fmt.Errorf("line %d is %q, not %q: read the file again; nothing was changed", a.First, shorten(strings.TrimRight(is, "\r\n"), 200), shorten(a.Text, 200))
	}
	after := strings.Join(lines[:a.First-1], "") + strings.Join(lines[a.Last:], "")
	if err := t.put(ctx, a.Path, []byte(after), version); err != nil {
		return "", err
	}
	return fmt.Sprintf("deleted %s of %s\n%s", plural(a.Last-a.First+1, "line"), a.Path, difference(a.Path, before, after)), nil
}

// text reads a text file that is about to be changed.
func (d desk) text(ctx context.Context, path string) (text, version string, err error) {
	data, version, err := d.env.Files.Read(ctx, path, maxEdit)
	if err != nil {
		return "", "", d.missing(ctx, path, err)
	}
	if err := d.unchanged(path, version); err != nil {
		return "", "", err
	}
	if isBinary(data) {
		return "", "", errors.New(path + " is a binary file; it cannot be edited as text")
	}
	return string(data), version, nil
}
