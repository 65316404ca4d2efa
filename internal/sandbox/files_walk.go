package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"reasonix/internal/tool"
)

const (
	maxIgnoreFile = 256 << 10 // bytes of one ignore file
	maxWalkDepth  = 128       // each level holds a descriptor
)

// walker visits one tree.
type walker struct {
	ctx    context.Context
	files  *Files
	forbid []string
	fn     func(path string, d fs.DirEntry) error
}

// walked is a regular file that can be read through the descriptor of its folder while fn runs.
type walked struct {
	fs.DirEntry
	files *Files
	dir   *os.Root
}

var _ tool.Content = walked{}

// Read returns the content.
func (w walked) Read(max int64) ([]byte, error) { return w.files.readIn(w.dir, w.Name(), max) }

// Info describes the file through the descriptor.
func (w walked) Info() (fs.FileInfo, error) {
	info, err := w.dir.Lstat(w.Name())
	return info, pathless(err)
}

// Walk visits regular files below path in lexical order, or path itself when it is a file. It leaves out .git, forbidden paths,
// links and what .gitignore files name; a path that is itself ignored was asked for, so only the rules below it count.
func (f *Files) Walk(ctx context.Context, path string, fn func(path string, d fs.DirEntry) error) error {
	err := f.visit(ctx, path, fn)
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("walk %s: %w", path, err)
	}
	return nil
}

func (f *Files) visit(ctx context.Context, path string, fn func(path string, d fs.DirEntry) error) error {
	spot, err := f.locate(ctx, path, forReading)
	if err != nil {
		return err
	}
	w := &walker{ctx: ctx, files: f, forbid: f.forbiddenNow(), fn: fn}
	parent, err := openFolder(spot.root, spot.parents, false)
	if err != nil {
		return err
	}
	defer parent.Close()
	info, err := parent.Lstat(spot.name)
	if err != nil {
		return pathless(err)
	}
	if !info.IsDir() {
		if err := mustBeRegular(info); err != nil {
			return err
		}
		return fn(f.shown(spot.path), walked{fs.FileInfoToDirEntry(info), f, parent})
	}
	dir, err := stepInto(parent, spot.name, false)
	if err != nil {
		return err
	}
	defer dir.Close()
	return w.folder(dir, spot.path, f.rulesAbove(spot.path), 0)
}

// shown is the path as the model reads it.
func (f *Files) shown(full string) string {
	if rel, err := filepath.Rel(f.workspace, full); err == nil && insidePath(full, f.workspace) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(full)
}

func (w *walker) folder(dir *os.Root, full string, rules []gitignore.Pattern, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if depth > maxWalkDepth {
		return fmt.Errorf("%w: folders nested deeper than %d", tool.ErrTooLarge, maxWalkDepth)
	}
	entries, err := entriesOf(dir)
	if err != nil {
		return err
	}
	rules = append(rules[:len(rules):len(rules)], w.files.rulesIn(dir, full)...)
	match := gitignore.NewMatcher(rules)
	for _, e := range entries {
		path := filepath.Join(full, e.Name())
		if w.skips(e, path, match) {
			continue
		}
		if e.IsDir() {
			err = w.descend(dir, e.Name(), path, rules, depth)
		} else {
			err = w.fn(w.files.shown(path), walked{e, w.files, dir})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) skips(e fs.DirEntry, path string, match gitignore.Matcher) bool {
	if !e.IsDir() && !e.Type().IsRegular() {
		return true
	}
	if isGitName(e.Name()) || insideAny(path, w.forbid) {
		return true
	}
	return match.Match(w.files.domain(path), e.IsDir())
}

func (w *walker) descend(dir *os.Root, name, path string, rules []gitignore.Pattern, depth int) error {
	next, err := stepInto(dir, name, false)
	if err != nil {
		return nil // it vanished, was swapped or may not be entered: the walk shows what can be seen
	}
	defer next.Close()
	return w.folder(next, path, rules, depth+1)
}

// domain gives the components that ignore rules are matched against.
func (f *Files) domain(full string) []string { return splitPath(f.shown(full)) }

// rulesAbove collects the ignore rules from the workspace down to the parent of full.
func (f *Files) rulesAbove(full string) []gitignore.Pattern {
	if full == f.workspace || !insidePath(full, f.workspace) {
		return nil
	}
	var rules []gitignore.Pattern
	parts := f.domain(full)
	at := f.workspace
	for i := range parts {
		dir, err := openFolder(f.workspace, parts[:i], false)
		if err != nil {
			return nil
		}
		rules = append(rules, f.rulesIn(dir, at)...)
		dir.Close()
		at = filepath.Join(at, parts[i])
	}
	if gitignore.NewMatcher(rules).Match(parts, true) {
		return nil
	}
	return rules
}

// rulesIn reads the .gitignore of an open folder.
func (f *Files) rulesIn(dir *os.Root, full string) []gitignore.Pattern {
	data, err := f.readIn(dir, ".gitignore", maxIgnoreFile)
	if err != nil {
		return nil // none, or none that can be trusted
	}
	var domain []string
	if full != f.workspace {
		domain = f.domain(full)
	}
	var out []gitignore.Pattern
	for _, line := range strings.Split(string(bytes.TrimPrefix(data, []byte("\uFEFF"))), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		out = append(out, gitignore.ParsePattern(line, domain))
	}
	return out
}
