// Package builtin holds the tools that every run has: files, search, shell, todos and the question. One file per tool, its
// description beside it; importing the package registers them.
package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"reasonix/internal/tool"
)

// maxEdit is the size in bytes of a file that the editing tools take.
const maxEdit = 16 << 20

// card is what a tool says about itself.
type card struct {
	name, description, schema string
	readOnly                  bool
}

func (c card) Name() string            { return c.name }
func (c card) Description() string     { return c.description }
func (c card) Schema() json.RawMessage { return json.RawMessage(c.schema) }
func (c card) ReadOnly() bool          { return c.readOnly }

// decode reads arguments that Registry.Decode accepted; it is strict once more, for callers that did not ask it.
func decode[T any](args json.RawMessage) (T, error) {
	var v T
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, fmt.Errorf("%w: %w", tool.ErrArguments, err)
	}
	return v, nil
}

// onePath is tool.Pather for arguments with a single path; an absent one is the workspace.
type onePath struct{}

// Paths names the path of a call.
func (onePath) Paths(args json.RawMessage) []string {
	var a struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(args, &a) != nil {
		return nil
	}
	return []string{orHere(a.Path)}
}

func orHere(p string) string {
	if p == "" {
		return "."
	}
	return p
}

// desk is the file side of a run: the port, and what the model has seen through it.
type desk struct{ env tool.Env }

// key names a file independently of where the workspace lies, so that a task continued on another host knows it again.
func (d desk) key(p string) string {
	full := d.env.Files.Resolve(p)
	rel, err := filepath.Rel(d.env.Files.Resolve("."), full)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return filepath.ToSlash(full)
	}
	return filepath.ToSlash(rel)
}

// saw records what the model knows now; version "" forgets the file.
func (d desk) saw(p, version string) {
	key := d.key(p)
	if version == "" {
		d.env.Versions.Forget(key)
	} else {
		if last, ok := d.env.Versions.Last(key); ok && last == version {
			return
		}
		d.env.Versions.See(key, version)
	}
	if d.env.Note == nil {
		return
	}
	if data, err := json.Marshal(tool.Seen{Path: key, Version: version}); err == nil {
		d.env.Note(tool.NoteSeen, data)
	}
}

// unchanged refuses when the file is no longer what the model saw last.
func (d desk) unchanged(p, version string) error {
	if last, ok := d.env.Versions.Last(d.key(p)); ok && last != version {
		return fmt.Errorf("%s: %w: read it again before changing it", p, tool.ErrChanged)
	}
	return nil
}

// put writes over exactly the version that was looked at, and remembers the new one.
func (d desk) put(ctx context.Context, p string, data []byte, version string) error {
	err := d.env.Files.Write(ctx, p, data, version)
	if errors.Is(err, tool.ErrChanged) {
		return fmt.Errorf("%w: read it again before changing it", err)
	}
	if err != nil {
		return err
	}
	now, v, err := d.env.Files.Read(ctx, p, maxEdit)
	if err != nil || !bytes.Equal(now, data) {
		return nil // somebody was faster: the next change will ask for a read
	}
	d.saw(p, v)
	return nil
}

// missing adds to a not-found error what there is instead.
func (d desk) missing(ctx context.Context, p string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, base := path.Split(filepath.ToSlash(p))
	entries, lerr := d.env.Files.List(ctx, orHere(dir))
	if lerr != nil {
		return err
	}
	for _, e := range entries {
		if strings.EqualFold(e.Name(), base) || strings.EqualFold(stem(e.Name()), stem(base)) {
			return fmt.Errorf("%w: did you mean %s?", err, path.Join(dir, e.Name()))
		}
	}
	return err
}

func stem(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }
