package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"

	"reasonix/internal/tool"
)

const (
	symbolDescription = `Delete a top-level declaration of a Go file with its doc comment: Name, or Type.Method. Other languages: use delete_range.`

	symbolSchema = `{"type":"object","additionalProperties":false,"required":["path","name"],"properties":{` +
		`"path":{"type":"string","minLength":1},"name":{"type":"string","minLength":1}}}`
)

func init() { tool.Register(newDeleteSymbol) }

func newDeleteSymbol(env tool.Env) tool.Tool {
	if env.Files == nil {
		return nil
	}
	return deleteSymbol{card: card{name: "delete_symbol", description: symbolDescription, schema: symbolSchema}, desk: desk{env}}
}

type deleteSymbol struct {
	card
	onePath
	desk
}

// Execute implements tool.Tool.
func (t deleteSymbol) Execute(ctx context.Context, raw json.RawMessage) (string, error) {
	a, err := decode[struct {
		Path string `json:"path"`
		Name string `json:"name"`
	}](raw)
	if err != nil {
		return "", err
	}
	if ext := path.Ext(a.Path); ext != ".go" {
		return "", fmt.Errorf("delete_symbol understands Go files only, not %q: use delete_range or edit_file", ext)
	}
	before, version, err := t.text(ctx, a.Path)
	if err != nil {
		return "", err
	}
	after, err := withoutSymbol(before, a.Name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", a.Path, err)
	}
	if err := t.put(ctx, a.Path, []byte(after), version); err != nil {
		return "", err
	}
	return fmt.Sprintf("deleted %s from %s; uses of it and imports that only it needed are left\n%s", a.Name, a.Path, difference(a.Path, before, after)), nil
}

// withoutSymbol cuts the one declaration of that name out of Go source, with its comments and one blank line.
func withoutSymbol(src, name string) (string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", fmt.Errorf("the file does not parse, so nothing can be found in it: %w", err)
	}
	var found []ast.Node
	var names []string
	for _, d := range file.Decls {
		for _, s := range symbols(d) {
			names = append(names, s.names...)
			for _, n := range s.names {
				if n != name {
					continue
				}
				if len(s.names) > 1 {
					return "", fmt.Errorf("%s is declared together with %s: use edit_file", name, strings.Join(s.names, ", "))
				}
				found = append(found, s.node)
			}
		}
	}
	switch {
	case len(found) == 0:
		return "", fmt.Errorf("there is no top-level declaration %s; there are %s", name, shorten(strings.Join(names, ", "), 1000))
	case len(found) > 1:
		return "", fmt.Errorf("%s is declared %d times: use delete_range", name, len(found))
	}
	from, to := extent(files, file, found[0])
	after := cut(src, from, to)
	if _, err := parser.ParseFile(token.NewFileSet(), "", after, parser.SkipObjectResolution); err != nil {
		return "", errors.New("without it the file would not parse: use edit_file")
	}
	return after, nil
}

// symbol is what can be deleted at once.
type symbol struct {
	node  ast.Node
	names []string
}

func symbols(d ast.Decl) []symbol {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil && len(d.Recv.List) > 0 {
			name = receiver(d.Recv.List[0].Type) + "." + name
		}
		return []symbol{{d, []string{name}}}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return nil
		}
		var out []symbol
		for _, spec := range d.Specs {
			s := symbol{node: spec}
			if len(d.Specs) == 1 {
				s.node = d
			}
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				s.names = []string{spec.Name.Name}
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					s.names = append(s.names, n.Name)
				}
			}
			out = append(out, s)
		}
		return out
	}
	return nil
}

func receiver(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// extent is the node with its doc comment and the comment behind it, as offsets.
func extent(files *token.FileSet, file *ast.File, n ast.Node) (from, to int) {
	start, end := n.Pos(), n.End()
	var doc, behind *ast.CommentGroup
	switch n := n.(type) {
	case *ast.FuncDecl:
		doc = n.Doc
	case *ast.GenDecl:
		doc = n.Doc
	case *ast.TypeSpec:
		doc, behind = n.Doc, n.Comment
	case *ast.ValueSpec:
		doc, behind = n.Doc, n.Comment
	}
	if doc != nil {
		start = doc.Pos()
	}
	if behind != nil {
		end = behind.End()
	}
	line := files.Position(end).Line
	for _, c := range file.Comments { // one that ends the same line
		if c.Pos() >= end && files.Position(c.Pos()).Line == line {
			end = c.End()
		}
	}
	return files.Position(start).Offset, files.Position(end).Offset
}

// cut takes whole lines out, and one of two blank lines that would meet.
func cut(src string, from, to int) string {
	head := strings.TrimRight(src[:from], " \t")
	tail := src[to:]
	if rest := strings.TrimLeft(tail, " \t\r;"); strings.HasPrefix(rest, "\n") && (head == "" || strings.HasSuffix(head, "\n")) {
		tail = rest[1:]
	} else if tail != "" {
		return src[:from] + strings.TrimLeft(tail, "; \t")
	}
	blank := strings.HasSuffix(head, "\n\n") || strings.HasSuffix(head, "\n\r\n")
	for _, nl := range []string{"\r\n", "\n"} {
		if blank && strings.HasPrefix(tail, nl) {
			return head + tail[len(nl):]
		}
	}
	if blank && tail == "" {
		return strings.TrimRight(head, "\r\n") + head[len(strings.TrimRight(head, "\r\n")):][:lineEnd(head)]
	}
	return head + tail
}

// lineEnd is the length of the line ending that head uses.
func lineEnd(head string) int {
	if strings.HasSuffix(head, "\r\n") {
		return 2
	}
	return 1
}
