package workspace

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
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
	texts, err := s.blobsOf(ctx, dir, base, files)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text := texts[file]
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

// blobsOf reads files of a commit, in one run of git; longer ones than a megabyte count as empty.
func (s *Store) blobsOf(ctx context.Context, dir, commit string, files []string) (map[string][]byte, error) {
	var ask strings.Builder
	for _, file := range files {
		if !strings.Contains(file, "\n") {
			ask.WriteString(commit + ":" + file + "\n")
		}
	}
	if ask.Len() == 0 {
		return nil, nil
	}
	out, err := s.run(ctx, gitCall{dir: dir, args: []string{"cat-file", "--batch=%(objectsize)"}, stdin: strings.NewReader(ask.String()), limit: baseLimit})
	if err != nil {
		return nil, fmt.Errorf("read ignore rules: %w", err)
	}
	texts := map[string][]byte{}
	for _, file := range files {
		if strings.Contains(file, "\n") {
			continue
		}
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		size, err := strconv.Atoi(string(head))
		if err != nil || size >= len(rest) {
			return nil, fmt.Errorf("read ignore rules %s: unexpected answer %q", file, head)
		}
		if out = rest[size+1:]; size <= 1<<20 {
			texts[file] = rest[:size]
		}
	}
	return texts, nil
}

// ignored never says so of a tracked path or of a folder on the way to one.
func (b *baseTree) ignored(at string, dir bool) bool {
	if _, tracked := b.blobs[at]; tracked || b.dirs[at] {
		return false
	}
	return b.ignore.Match(strings.Split(at, "/"), dir)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
