package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"reasonix/internal/tool"
)

const (
	grepDescription = `Search file contents by regular expression (RE2), line by line; answers "path:line: text".
Ignored files (.gitignore, .git), binary files and files over 4 MiB are left out.`

	grepSchema = `{"type":"object","additionalProperties":false,"required":["pattern"],"properties":{` +
		`"pattern":{"type":"string","minLength":1,"maxLength":1000},` +
		`"path":{"type":"string","description":"File or folder; the workspace when absent."},` +
		`"glob":{"type":"string","description":"Only files of this pattern, as in the tool glob."},` +
		`"ignore_case":{"type":"boolean"},` +
		`"files_only":{"type":"boolean","description":"Only the names of matching files."},` +
		`"context":{"type":"integer","minimum":0,"maximum":10,"description":"Lines shown around a match."}}}`

	grepMost = 200     // matches shown
	grepFile = 4 << 20 // bytes of a file that is searched
	grepLine = 300     // bytes of a line that is shown
)

func init() { tool.Register(newGrep) }

func newGrep(env tool.Env) tool.Tool {
	if env.Files == nil {
		return nil
	}
	return grep{card: card{"grep", grepDescription, grepSchema, true}, desk: desk{env}}
}

type grep struct {
	card
	onePath
	desk
}

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	IgnoreCase bool   `json:"ignore_case"`
	FilesOnly  bool   `json:"files_only"`
	Context    int    `json:"context"`
}

// Execute searches in the host process and not with a search program: only the file port holds the roots and the forbidden reads.
func (t grep) Execute(ctx context.Context, raw json.RawMessage) (string, error) {
	a, err := decode[grepArgs](raw)
	if err != nil {
		return "", err
	}
	s, err := a.search(t.base(a.Path))
	if err != nil {
		return "", err
	}
	if err := t.env.Files.Walk(ctx, orHere(a.Path), s.visit); err != nil {
		return "", t.missing(ctx, a.Path, err)
	}
	return s.answer(), nil
}

func (a grepArgs) search(base string) (*search, error) {
	expr := a.Pattern
	if a.IgnoreCase {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w (RE2 syntax; escape brackets and dots that are meant literally)", err)
	}
	s := &search{args: a, finder: finder{re, requiredLiteral(expr)}, base: base}
	if a.Glob != "" {
		if s.names, err = nameMatcher(a.Glob); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// search collects the answer of one call.
type search struct {
	args         grepArgs
	finder       finder
	names        func(string) bool
	base         string
	out          strings.Builder
	matches      int
	files, large int
	full         bool
}

func (s *search) visit(p string, d fs.DirEntry) error {
	if s.names != nil && !s.names(below(s.base, p)) {
		return nil
	}
	c, ok := d.(tool.Content)
	if !ok {
		return fmt.Errorf("the file port cannot read %s while walking", p)
	}
	data, err := c.Read(grepFile)
	if err != nil {
		s.large++ // too large, vanished or not readable: counted, the search goes on
		return nil
	}
	if isBinary(data) {
		return nil
	}
	most := grepMost - s.matches
	if s.args.FilesOnly {
		most = 1
	}
	hits := s.finder.lines(data, most)
	if len(hits) == 0 {
		return nil
	}
	s.files++
	s.show(p, data, hits)
	if s.full {
		return fs.SkipAll
	}
	return nil
}

func (s *search) show(p string, data []byte, hits []int) {
	if s.args.FilesOnly {
		s.add(p + "\n")
		return
	}
	lines := splitLines(string(data))
	last := -1 // last line shown
	for _, h := range hits {
		from, to := max(h-s.args.Context, last+1), min(h+s.args.Context, len(lines)-1)
		if s.args.Context > 0 && last >= 0 && from > last+1 {
			s.add("--\n")
		}
		for i := from; i <= to; i++ {
			mark := ":"
			if i != h && !contains(hits, i) {
				mark = "-"
			}
			s.add(fmt.Sprintf("%s:%d%s %s\n", p, i+1, mark, shorten(lines[i], grepLine)))
		}
		last = max(last, to)
		if s.matches++; s.matches >= grepMost {
			s.full = true
		}
		if s.full {
			return
		}
	}
}

func (s *search) add(line string) {
	if s.out.Len()+len(line) > readShown {
		s.full = true
		return
	}
	s.out.WriteString(line)
}

func (s *search) answer() string {
	var notes []string
	if s.full {
		notes = append(notes, "there may be more: narrow the pattern, the path or the glob")
	}
	if s.large > 0 {
		notes = append(notes, plural(s.large, "file")+" left out: too large or not readable")
	}
	if s.files == 0 {
		s.out.WriteString("no match for " + shorten(s.args.Pattern, 200) + "\n")
	}
	if len(notes) > 0 {
		s.out.WriteString("(" + strings.Join(notes, "; ") + ")\n")
	}
	return s.out.String()
}

func contains(sorted []int, n int) bool {
	for _, v := range sorted {
		if v == n {
			return true
		}
	}
	return false
}
