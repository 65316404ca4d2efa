package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"reasonix/internal/tool"
)

const (
	globDescription = `Find files by name. * stays in a folder, ** crosses folders, {a,b} chooses; a pattern without / matches names at any depth.
Ignored files (.gitignore, .git) are left out.`

	globSchema = `{"type":"object","additionalProperties":false,"required":["pattern"],"properties":{` +
		`"pattern":{"type":"string","minLength":1,"description":"For example **/*_test.go"},` +
		`"path":{"type":"string","description":"Folder to search; the workspace when absent."}}}`

	globMost = 1000 // paths shown
)

func init() { tool.Register(newGlob) }

func newGlob(env tool.Env) tool.Tool {
	if env.Files == nil {
		return nil
	}
	return glob{card: card{"glob", globDescription, globSchema, true}, desk: desk{env}}
}

type glob struct {
	card
	onePath
	desk
}

func (t glob) Execute(ctx context.Context, raw json.RawMessage) (string, error) {
	a, err := decode[struct {
		Pattern string `json:"pattern"`
		Path    string `json:"path"`
	}](raw)
	if err != nil {
		return "", err
	}
	match, err := nameMatcher(a.Pattern)
	if err != nil {
		return "", err
	}
	base := t.base(a.Path)
	var b strings.Builder
	found, shown := 0, 0
	err = t.env.Files.Walk(ctx, orHere(a.Path), func(p string, _ fs.DirEntry) error {
		if !match(below(base, p)) {
			return nil
		}
		found++
		if shown < globMost && b.Len()+len(p) < readShown {
			b.WriteString(p + "\n")
			shown++
		}
		return nil
	})
	switch {
	case err != nil:
		return "", t.missing(ctx, a.Path, err)
	case found == 0:
		return "no file matches " + a.Pattern, nil
	case shown < found:
		fmt.Fprintf(&b, "(%d more of %d; narrow the pattern or the path)\n", found-shown, found)
	}
	return b.String(), nil
}

// base is the searched folder as a walk names it.
func (d desk) base(p string) string {
	if key := d.key(orHere(p)); key != "." {
		return key
	}
	return ""
}

// below makes p relative to base; a base that is the file itself gives its name.
func below(base, p string) string {
	if base == p {
		return path.Base(p)
	}
	if base == "" {
		return p
	}
	return strings.TrimPrefix(p, strings.TrimSuffix(base, "/")+"/")
}

// nameMatcher compiles a pattern; one without a slash looks at the name alone.
func nameMatcher(pattern string) (func(string) bool, error) {
	if !doublestar.ValidatePattern(pattern) {
		return nil, fmt.Errorf("pattern %q is not valid: check its brackets and braces", pattern)
	}
	if path.IsAbs(pattern) || strings.HasPrefix(pattern, "../") || strings.Contains(pattern, "/../") {
		return nil, fmt.Errorf("pattern %q must be relative: put the folder into path", pattern)
	}
	pattern = strings.TrimPrefix(pattern, "./")
	whole := strings.Contains(pattern, "/")
	return func(p string) bool {
		if !whole {
			p = path.Base(p)
		}
		ok, err := doublestar.Match(pattern, p)
		return ok && err == nil
	}, nil
}
