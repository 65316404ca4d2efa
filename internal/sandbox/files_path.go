package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"reasonix/internal/tool"
)

// errSwapped: somebody exchanged a part of the path between judging and opening it.
var errSwapped = errors.New("the path changed while it was being opened: try again")

type access int

const (
	forReading access = iota
	forWriting
)

// spot is a resolved place: a root folder and the way down from it, with no link in it.
type spot struct {
	path    string   // absolute
	root    string   // folder to start from
	parents []string // components between root and name
	name    string   // last component; "." for the root itself
}

func (s spot) whole() []string {
	if s.name == "." {
		return s.parents
	}
	return append(s.parents[:len(s.parents):len(s.parents)], s.name)
}

// Resolve gives the cleaned, symlink-free absolute path for rules. Unlike a lexical cleaning it follows a link before a ".." behind it, as
// the kernel does. What does not exist yet keeps its name below its deepest existing ancestor.
func (f *Files) Resolve(path string) string {
	if !filepath.IsAbs(path) {
		path = f.workspace + string(filepath.Separator) + path
	}
	return resolveLinks(path)
}

// resolveLinks resolves an absolute path component by component. A path with too many links comes back with links in it,
// and opening it fails.
func resolveLinks(path string) string {
	vol := filepath.VolumeName(path)
	sep := string(filepath.Separator)
	done, rest := vol+sep, splitPath(path[len(vol):])
	for hops := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		if part == ".." {
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, part)
		target, err := os.Readlink(next)
		if err != nil { // no link, or nothing there
			done = next
			continue
		}
		if hops++; hops > 64 {
			return filepath.Join(append([]string{next}, rest...)...)
		}
		rest = append(splitPath(target), rest...)
		if filepath.IsAbs(target) {
			vol = filepath.VolumeName(target)
			rest = rest[len(splitPath(vol)):]
			done = vol + sep
		}
	}
	return done
}

func splitPath(p string) []string {
	return strings.FieldsFunc(p, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) })
}

// locate judges a path as the model wrote it and says from which root it is opened.
func (f *Files) locate(ctx context.Context, path string, want access) (spot, error) {
	if path == "" {
		return spot{}, errors.New("the path is empty")
	}
	if strings.ContainsRune(path, 0) {
		return spot{}, errors.New("the path contains a NUL byte")
	}
	full := f.Resolve(path)
	if f.forbidden(full) {
		return spot{}, tool.ErrForbidden
	}
	if want == forWriting {
		if f.readOnly() {
			return spot{}, tool.ErrReadOnly
		}
		if what, is := f.guarded(full); is {
			return spot{}, fmt.Errorf("%w: %s is changed by people only", tool.ErrProtected, what)
		}
	}
	root, err := f.rootOf(ctx, full, want)
	if err != nil {
		return spot{}, err
	}
	rel, err := filepath.Rel(root, full)
	if err != nil {
		return spot{}, err
	}
	parts := splitPath(rel)
	if rel == "." {
		return spot{path: full, root: root, name: "."}, nil
	}
	return spot{path: full, root: root, parents: parts[:len(parts)-1], name: parts[len(parts)-1]}, nil
}

func (f *Files) rootOf(ctx context.Context, full string, want access) (string, error) {
	if insidePath(full, f.workspace) {
		return f.workspace, nil
	}
	for _, r := range f.write {
		if real := resolveLinks(r); insidePath(full, real) {
			return real, nil
		}
	}
	for _, g := range tool.Writes(ctx) {
		if full == g {
			return filepath.Dir(g), nil
		}
		if insidePath(full, g) {
			return g, nil
		}
	}
	if want == forReading {
		for _, r := range f.read {
			if real := resolveLinks(r); insidePath(full, real) {
				return real, nil
			}
		}
		if f.readAnywhere {
			if insidePath(full, "/proc") || insidePath(full, "/dev") || insidePath(full, "/sys") {
				return "", fmt.Errorf("%w: %s is no place of files", tool.ErrSpecial, full)
			}
			return filepath.VolumeName(full) + string(filepath.Separator), nil
		}
	}
	return "", fmt.Errorf("%w (%s)", tool.ErrOutside, full)
}

// forbidden compares with the entries as written and as they resolve now, because they may appear or become links later.
func (f *Files) forbidden(full string) bool { return insideAny(full, f.forbiddenNow()) }

// forbiddenNow is looked up once for a walk: it costs a call to the system per component.
func (f *Files) forbiddenNow() []string {
	all := f.forbid[:len(f.forbid):len(f.forbid)]
	for _, p := range f.forbid {
		if real := resolveLinks(p); real != p {
			all = append(all, real)
		}
	}
	return all
}

func insideAny(full string, dirs []string) bool {
	for _, d := range dirs {
		if insidePath(full, d) {
			return true
		}
	}
	return false
}

// guarded tells which protected path full is or lies in. A .git is protected at any depth, whatever its spelling.
func (f *Files) guarded(full string) (string, bool) {
	for _, p := range f.protected {
		if insideFolded(full, p) || insideFolded(full, resolveLinks(p)) {
			return filepath.Base(p), true
		}
	}
	for _, part := range splitPath(strings.TrimPrefix(full, f.workspace)) {
		if isGitName(part) {
			return ".git", true
		}
	}
	return "", false
}

// isGitName covers the names that case-insensitive and Windows file systems take for .git.
func isGitName(part string) bool {
	p := strings.ToLower(strings.TrimRight(part, ". "))
	p, _, _ = strings.Cut(p, ":")
	return p == ".git" || p == "git~1"
}

// insidePath tells whether path is dir or lies below it, with the case rules of this system's usual file system.
func insidePath(path, dir string) bool {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return insideFolded(path, dir)
	}
	return insideExact(path, dir)
}

func insideFolded(path, dir string) bool {
	return insideExact(strings.ToLower(path), strings.ToLower(dir))
}

func insideExact(path, dir string) bool {
	sep := string(filepath.Separator)
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, sep)+sep)
}

// pathless drops the host path that os errors carry: the caller names the path as the model wrote it.
func pathless(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		return le.Err
	}
	return err
}
