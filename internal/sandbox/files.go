package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"reasonix/internal/tool"
)

// Limits of the file port.
const (
	maxReadDefault = 64 << 20 // bytes read when the caller names no limit
	maxListed      = 100_000  // entries of one folder
)

// FilesConfig is what the file tools of one task may touch. Relative entries start at Workspace.
type FilesConfig struct {
	Workspace    string   // must exist
	Write        []string // further folders that may be written; they may appear later
	Readable     []string // further folders that may be read
	ReadAnywhere bool     // terminal use: everything outside may be read, except what is forbidden
	ReadOnly     bool     // nothing is written, in Write neither
	ForbidRead   []string // files or folders that are neither read, listed nor searched; they may appear later
	Protected    []string // further paths that are not written, beside .git, .reasonix, reasonix.toml and .mcp.json
}

// Files implements tool.Files. A path is resolved once and then opened folder by folder through descriptors without following
// any link, so that a link swapped in between cannot win. It holds no descriptor between calls and may be used concurrently.
type Files struct {
	workspace    string
	write, read  []string
	readAnywhere bool
	readOnly     func() bool
	forbid       []string
	protected    []string
}

var _ tool.Files = (*Files)(nil)

// NewFiles checks the workspace and cleans the lists.
func NewFiles(c FilesConfig) (*Files, error) {
	if c.Workspace == "" {
		return nil, errors.New("open file tools: no workspace given")
	}
	abs, err := filepath.Abs(c.Workspace)
	if err != nil {
		return nil, fmt.Errorf("open file tools: %w", err)
	}
	ws := resolveLinks(abs)
	info, err := os.Stat(ws)
	if err != nil {
		return nil, fmt.Errorf("open file tools: workspace: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open file tools: workspace %s is not a folder", ws)
	}
	f := &Files{workspace: ws, readAnywhere: c.ReadAnywhere, readOnly: func() bool { return c.ReadOnly }}
	f.write = f.absolute(c.Write)
	f.read = f.absolute(c.Readable)
	f.forbid = f.absolute(c.ForbidRead)
	f.protected = f.absolute(append([]string{".reasonix", "reasonix.toml", ".mcp.json"}, c.Protected...))
	return f, nil
}

// While gives the same files, which are not written as long as now says so: a plan that nobody has approved yet. It is a layer of its own below
// the gate, which refuses the same calls.
func (f *Files) While(now func() bool) *Files {
	narrowed, before := *f, f.readOnly
	narrowed.readOnly = func() bool { return before() || now() }
	return &narrowed
}

func (f *Files) absolute(list []string) []string {
	var out []string
	for _, p := range list {
		if p == "" {
			continue
		}
		if !filepath.IsAbs(p) {
			p = filepath.Join(f.workspace, p)
		}
		out = append(out, filepath.Clean(p))
	}
	return out
}

// Read returns the whole content and its version, which is the hash of the content: the same bytes restored on another host
// are the same version. A max of 0 means 64 MiB.
func (f *Files) Read(ctx context.Context, path string, max int64) ([]byte, string, error) {
	data, err := f.contents(ctx, path, max)
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", path, err)
	}
	return data, version(data), nil
}

func (f *Files) contents(ctx context.Context, path string, max int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	spot, err := f.locate(ctx, path, forReading)
	if err != nil {
		return nil, err
	}
	dir, err := openFolder(spot.root, spot.parents, false)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return f.readIn(dir, spot.name, max)
}

// readIn reads one regular file of an open folder.
func (f *Files) readIn(dir *os.Root, name string, max int64) ([]byte, error) {
	if max <= 0 {
		max = maxReadDefault
	}
	file, info, err := openRegular(dir, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() > max {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", tool.ErrTooLarge, info.Size(), max)
	}
	if links(file, info) > 1 {
		if other, same := linkedInto(info, f.forbid); same {
			return nil, fmt.Errorf("%w: it is another name of %s", tool.ErrForbidden, other)
		}
	}
	var data bytes.Buffer
	data.Grow(int(info.Size()) + bytes.MinRead) // one allocation for a file that does not grow meanwhile
	if _, err := data.ReadFrom(io.LimitReader(file, max+1)); err != nil {
		return nil, pathless(err)
	}
	if int64(data.Len()) > max {
		return nil, fmt.Errorf("%w: it grew over the limit of %d bytes", tool.ErrTooLarge, max)
	}
	return data.Bytes(), nil
}

func version(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Stat describes the file itself, after resolving links.
func (f *Files) Stat(ctx context.Context, path string) (fs.FileInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	info, err := f.describe(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", path, err)
	}
	return info, nil
}

func (f *Files) describe(ctx context.Context, path string) (fs.FileInfo, error) {
	spot, err := f.locate(ctx, path, forReading)
	if err != nil {
		return nil, err
	}
	dir, err := openFolder(spot.root, spot.parents, false)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	info, err := dir.Lstat(spot.name)
	if err != nil {
		return nil, pathless(err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, errSwapped
	}
	return info, nil
}

// List returns the entries of a folder in lexical order, forbidden ones left out.
func (f *Files) List(ctx context.Context, path string) ([]fs.DirEntry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	spot, err := f.locate(ctx, path, forReading)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	dir, err := openFolder(spot.root, spot.whole(), false)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	defer dir.Close()
	entries, err := entriesOf(dir)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	out, forbid := entries[:0], f.forbiddenNow()
	for _, e := range entries {
		if insideAny(filepath.Join(spot.path, e.Name()), forbid) {
			continue
		}
		if info, err := dir.Lstat(e.Name()); err == nil { // through the descriptor; the entry's own Info would walk the path again
			out = append(out, fs.FileInfoToDirEntry(info))
		}
	}
	return out, nil
}

// entriesOf reads the names of an open folder, sorted.
func entriesOf(dir *os.Root) ([]fs.DirEntry, error) {
	d, err := dir.Open(".")
	if err != nil {
		return nil, pathless(err)
	}
	defer d.Close()
	entries, err := d.ReadDir(maxListed + 1)
	if err != nil && err != io.EOF {
		return nil, pathless(err)
	}
	if len(entries) > maxListed {
		return nil, fmt.Errorf("%w: the folder has more than %d entries", tool.ErrTooLarge, maxListed)
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	return entries, nil
}
