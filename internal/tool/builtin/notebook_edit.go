package builtin

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"reasonix/internal/tool"
)

const (
	notebookDescription = `Replace, insert or delete one cell of a Jupyter notebook. A changed code cell loses its outputs. Cells count from 0; insert puts the new one before cell.`

	notebookSchema = `{"type":"object","additionalProperties":false,"required":["path","cell","mode"],"properties":{` +
		`"path":{"type":"string","minLength":1},` +
		`"cell":{"type":"integer","minimum":0},` +
		`"mode":{"type":"string","enum":["replace","insert","delete"]},` +
		`"cell_type":{"type":"string","enum":["code","markdown","raw"],"description":"Of an inserted cell; code when absent."},` +
		`"source":{"type":"string","description":"Whole new text of the cell."}}}`
)

func init() { tool.Register(newNotebookEdit) }

func newNotebookEdit(env tool.Env) tool.Tool {
	if env.Files == nil {
		return nil
	}
	return notebookEdit{card: card{name: "notebook_edit", description: notebookDescription, schema: notebookSchema}, desk: desk{env}}
}

type notebookEdit struct {
	card
	onePath
	desk
}

type notebookArgs struct {
	Path   string  `json:"path"`
	Cell   int     `json:"cell"`
	Mode   string  `json:"mode"`
	Type   string  `json:"cell_type"`
	Source *string `json:"source"`
}

// Execute implements tool.Tool.
func (t notebookEdit) Execute(ctx context.Context, raw json.RawMessage) (string, error) {
	a, err := decode[notebookArgs](raw)
	if err != nil {
		return "", err
	}
	if a.Mode != "delete" && a.Source == nil {
		return "", errors.New("source is missing: " + a.Mode + " needs the text of the cell")
	}
	before, version, err := t.text(ctx, a.Path)
	if err != nil {
		return "", err
	}
	after, err := a.apply(before)
	if err != nil {
		return "", fmt.Errorf("%s: %w", a.Path, err)
	}
	if err := t.put(ctx, a.Path, after, version); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: cell %d: %s\n%s", a.Path, a.Cell, a.Mode, difference(a.Path, before, string(after))), nil
}

// object keeps what it does not know, byte for byte.
type object = map[string]json.RawMessage

// apply changes the notebook's JSON and writes it as Jupyter does: sorted keys, one space of indentation.
func (a notebookArgs) apply(text string) ([]byte, error) {
	var book object
	var cells []object
	if err := json.Unmarshal([]byte(text), &book); err != nil {
		return nil, fmt.Errorf("it is no notebook: %w", err)
	}
	if err := json.Unmarshal(book["cells"], &cells); err != nil || book["nbformat"] == nil {
		return nil, errors.New("it is no notebook of format 4: it has no list of cells")
	}
	last := len(cells) - 1
	if a.Mode == "insert" {
		last++
	}
	if a.Cell > last {
		return nil, fmt.Errorf("cell %d does not exist: the notebook has %s, counted from 0", a.Cell, plural(len(cells), "cell"))
	}
	switch a.Mode {
	case "delete":
		cells = append(cells[:a.Cell], cells[a.Cell+1:]...)
	case "insert":
		cells = append(cells[:a.Cell], append([]object{a.fresh(book)}, cells[a.Cell:]...)...)
	default:
		if a.Type != "" && encoded(a.Type) != string(cells[a.Cell]["cell_type"]) {
			return nil, fmt.Errorf("cell %d is of type %s: delete it and insert another one to change that", a.Cell, cells[a.Cell]["cell_type"])
		}
		a.fill(cells[a.Cell])
	}
	raw, err := plainJSON(cells, "")
	if err != nil {
		return nil, err
	}
	book["cells"] = raw
	return plainJSON(book, " ")
}

// plainJSON leaves out the escapes that only HTML needs.
func plainJSON(v any, indent string) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(v)
	return out.Bytes(), err
}

// fill puts the new text into a cell; outputs of the old one would claim what the new one never did.
func (a notebookArgs) fill(cell object) {
	var lines []string
	if *a.Source != "" {
		lines = strings.SplitAfter(*a.Source, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
	}
	parts := make([]string, len(lines))
	for i, l := range lines {
		parts[i] = encoded(l)
	}
	cell["source"] = json.RawMessage("[" + strings.Join(parts, ",") + "]")
	if string(cell["cell_type"]) == `"code"` {
		cell["outputs"], cell["execution_count"] = json.RawMessage("[]"), json.RawMessage("null")
	}
}

// fresh is a new cell; from format 4.5 on each has an id.
func (a notebookArgs) fresh(book object) object {
	kind := a.Type
	if kind == "" {
		kind = "code"
	}
	cell := object{"cell_type": json.RawMessage(encoded(kind)), "metadata": json.RawMessage("{}")}
	var minor int
	if json.Unmarshal(book["nbformat_minor"], &minor) == nil && minor >= 5 {
		var id [4]byte
		_, _ = rand.Read(id[:]) // never fails
		cell["id"] = json.RawMessage(encoded(hex.EncodeToString(id[:])))
	}
	a.fill(cell)
	return cell
}

func encoded(s string) string {
	b, _ := plainJSON(s, "") // a string always encodes
	return strings.TrimSuffix(string(b), "\n")
}
