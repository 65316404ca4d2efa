package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// Info is one transcript in a folder.
type Info struct {
	ID       string
	Path     string
	Modified time.Time
	Size     int64
}

// List returns the transcripts of a folder, the last written first. A missing folder holds none.
func List(dir string) ([]Info, error) {
	items, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	var out []Info
	for _, item := range items {
		id, ok := strings.CutSuffix(item.Name(), Ext)
		if !ok || !item.Type().IsRegular() {
			continue
		}
		stat, err := item.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		out = append(out, Info{id, filepath.Join(dir, item.Name()), stat.ModTime(), stat.Size()})
	}
	sort.Slice(out, func(i, j int) bool {
		if !out[i].Modified.Equal(out[j].Modified) {
			return out[i].Modified.After(out[j].Modified)
		}
		return out[i].ID > out[j].ID
	})
	return out, nil
}

// FilePath is where the session with that id lives in a folder; an id that is no plain file name is refused.
func FilePath(dir, id string) (string, error) {
	if id == "" || id != filepath.Base(id) || strings.HasPrefix(id, ".") || strings.ContainsAny(id, `/\`) || len(id) > 200 {
		return "", fmt.Errorf("session id %q is not a plain name", id)
	}
	return filepath.Join(dir, id+Ext), nil
}

// Export writes any transcript as JSON lines, one entry per line, in order.
func Export(ctx context.Context, log Log, w io.Writer) error {
	entries, err := log.Entries(ctx, 0)
	if err != nil {
		return fmt.Errorf("export session %s: %w", log.ID(), err)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, e := range entries {
		if err := enc.Encode(e); err != nil {
			return fmt.Errorf("export session %s: %w", log.ID(), err)
		}
	}
	return nil
}
