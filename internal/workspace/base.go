package workspace

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// baseTree is what the base commit says: which paths it tracks, their blobs, and its ignore rules. The task cannot change it.
type baseTree struct {
	blobs  map[string]string // path → git blob id
	dirs   map[string]bool   // folders that hold a tracked path
	ignore gitignore.Matcher
}

const baseLimit = 256 << 20 // bytes of a tree listing

func (s *Store) readBase(ctx context.Context, id, base string) (*baseTree, error) {
	dir := s.hostGit(id)
	out, err := s.run(ctx, gitCall{dir: dir, args: []string{"ls-tree", "-r", "-z", "--full-tree", base}, limit: baseLimit})
	if err != nil {
		return nil, err
	}
	b := &baseTree{blobs: map[string]string{}, dirs: map[string]bool{}}
	var ignoreFiles []string
	for _, line := range lines(out) {
		head, file, ok := strings.Cut(line, "\t")
		fields := strings.Fields(head)
		if !ok || len(fields) != 3 {
			return nil, fmt.Errorf("unexpected tree line %q", line)
		}
		b.blobs[file] = fields[2]
		for d := path.Dir(file); d != "." && !b.dirs[d]; d = path.Dir(d) {
			b.dirs[d] = true
		}
		if path.Base(file) == ".gitignore" && strings.HasPrefix(fields[0], "100") {
			ignoreFiles = append(ignoreFiles, file)
		}
	}
	patterns, err := s.ignorePatterns(ctx, dir, base, ignoreFiles)
	if err != nil {
		return nil, err
	}
	b.ignore = gitignore.NewMatcher(patterns)
	return b, nil
}

// ignorePatterns are in rising priority: deeper files overrule higher ones.
func (s *Store) ignorePatterns(ctx context.Context, dir, base string, files []string) ([]gitignore.Pattern, error) {
	slices.SortStableFunc(files, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	var out []gitignore.Pattern
	for _, file := range files {
		text, err := s.run(ctx, gitCall{dir: dir, args: []string{"cat-file", "blob", base + ":" + file}, limit: 1 << 20})
		if err != nil {
			return nil, fmt.Errorf("ignore rules %s: %w", file, err)
		}
		var domain []string
		if d := path.Dir(file); d != "." {
			domain = strings.Split(d, "/")
		}
		for _, line := range bytes.Split(text, []byte("\n")) {
			rule := strings.TrimRight(string(line), "\r")
			if rule != "" && !strings.HasPrefix(rule, "#") {
				out = append(out, gitignore.ParsePattern(rule, domain))
			}
		}
	}
	return out, nil
}

// ignored never says so of a tracked path or of a folder on the way to one.
func (b *baseTree) ignored(at string, dir bool) bool {
	if _, tracked := b.blobs[at]; tracked || b.dirs[at] {
		return false
	}
	return b.ignore.Match(strings.Split(at, "/"), dir)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
