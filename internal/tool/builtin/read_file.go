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
	readDescription = `Read a text file. Lines come numbered ("    12\ttext"); the number and the tab are not part of the file.
Without a limit up to 2000 lines are shown; a longer file says where to go on. Binary files are named, not shown.`

	readSchema = `{"type":"object","additionalProperties":false,"required":["path"],"properties":{` +
		`"path":{"type":"string","minLength":1,"description":"Relative to the workspace, or absolute."},` +
		`"offset":{"type":"integer","minimum":1,"description":"First line, from 1."},` +
		`"limit":{"type":"integer","minimum":1,"maximum":10000,"description":"Number of lines."}}}`

	readLines = 2000
	readMax   = 16 << 20              // bytes of a file that is opened at all
	readShown = tool.MaxContent - 512 // leaves room for the last line of the answer
)

func init() { tool.Register(newReadFile) }

func newReadFile(env tool.Env) tool.Tool {
	if env.Files == nil {
		return nil
	}
	return readFile{card: card{"read_file", readDescription, readSchema, true}, desk: desk{env}}
}

type readFile struct {
	card
	onePath
	desk
}

type readArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

func (t readFile) Execute(ctx context.Context, raw json.RawMessage) (string, error) {
	a, err := decode[readArgs](raw)
	if err != nil {
		return "", err
	}
	data, version, err := t.env.Files.Read(ctx, a.Path, readMax)
	switch {
	case errors.Is(err, tool.ErrTooLarge):
		return "", fmt.Errorf("%w: use grep, or a command that prints a part", err)
	case errors.Is(err, tool.ErrSpecial):
		return "", fmt.Errorf("%w: use ls for folders", err)
	case err != nil:
		return "", t.missing(ctx, a.Path, err)
	}
	t.saw(a.Path, version)
	if isBinary(data) {
		return fmt.Sprintf("%s is a binary file of %s; it is not shown.", a.Path, size(int64(len(data)))), nil
	}
	return a.show(strings.TrimPrefix(string(data), "\uFEFF"))
}

// show numbers the lines of the wanted part and says how to go on.
func (a readArgs) show(text string) (string, error) {
	lines := splitLines(text)
	if len(lines) == 0 {
		return "(the file is empty)", nil
	}
	first := max(a.Offset, 1)
	if first > len(lines) {
		return "", fmt.Errorf("offset %d is behind the end: the file has %s", first, plural(len(lines), "line"))
	}
	limit := a.Limit
	if limit == 0 {
		limit = readLines
	}
	var b strings.Builder
	next := first
	for ; next <= len(lines) && next < first+limit; next++ {
		line := fmt.Sprintf("%6d\t%s\n", next, shorten(lines[next-1], maxLine))
		if b.Len()+len(line) > readShown {
			break
		}
		b.WriteString(line)
	}
	if next <= len(lines) {
		fmt.Fprintf(&b, "(lines %d to %d of %d; go on with offset %d)\n", first, next-1, len(lines), next)
	}
	return b.String(), nil
}
