package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/creachadair/tomledit"
	"github.com/creachadair/tomledit/parser"

	"reasonix/internal/filelock"
)

// List is a list of texts in a configuration file that the host itself may add to.
type List struct{ Table, Key string }

// The lists that grants are written into.
var (
	AllowRules = List{"permissions", "allow"}
	WriteDirs  = List{"sandbox", "allow_write"}
)

// ErrAbsent: the list of that file does not hold the text.
var ErrAbsent = errors.New("not in this file")

// Editor changes lists of configuration files. Locks is a folder of the host's for lock files.
type Editor struct{ Locks string }

// Add puts a text at the end of a list of the file, which is made where it is missing. What else stands there keeps its bytes, comments
// included. A text that is there already changes nothing. The file is replaced atomically; a link is followed.
func (ed Editor) Add(ctx context.Context, l List, path, text string) error {
	return ed.edit(ctx, l, path, func(have []string) ([]string, error) {
		if slices.Contains(have, text) {
			return have, nil
		}
		return append(have, text), nil
	})
}

// Remove takes a text out of a list of the file; ErrAbsent when it does not hold it.
func (ed Editor) Remove(ctx context.Context, l List, path, text string) error {
	return ed.edit(ctx, l, path, func(have []string) ([]string, error) {
		if !slices.Contains(have, text) {
			return nil, ErrAbsent
		}
		return slices.DeleteFunc(have, func(s string) bool { return s == text }), nil
	})
}

func (ed Editor) edit(ctx context.Context, l List, path string, change func([]string) ([]string, error)) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if err := os.MkdirAll(ed.Locks, 0o700); err != nil {
		return fmt.Errorf("change %s: %w", path, err)
	}
	name := sha256.Sum256([]byte(path))
	unlock, err := filelock.Take(ctx, filepath.Join(ed.Locks, hex.EncodeToString(name[:8])+".lock"))
	if err != nil {
		return fmt.Errorf("change %s: %w", path, err)
	}
	defer unlock()
	data, mode, err := current(path)
	if err != nil {
		return fmt.Errorf("change %s: %w", path, err)
	}
	after, err := l.rewrite(data, change)
	if err != nil {
		return fmt.Errorf("change %s.%s in %s: %w", l.Table, l.Key, path, err)
	}
	if bytes.Equal(after, data) {
		return nil
	}
	return replaceFile(path, after, mode)
}

func current(path string) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	if err != nil {
		return nil, 0, err
	}
	data, err := os.ReadFile(path)
	return data, info.Mode().Perm(), err
}

// replaceFile writes beside the file and renames, so that a reader sees the old or the new whole file.
func replaceFile(path string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".reasonix-*.toml")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// rewrite gives the file's new text: the one key's lines are replaced, or a table is put behind the rest. It checks that nothing but the list
// has another value afterwards.
func (l List) rewrite(data []byte, change func([]string) ([]string, error)) ([]byte, error) {
	before, have, err := l.read(data)
	if err != nil {
		return nil, err
	}
	want, err := change(slices.Clone(have))
	if err != nil {
		return nil, err
	}
	if slices.Equal(have, want) {
		return data, nil
	}
	after, err := l.splice(data, want)
	if err != nil {
		return nil, err
	}
	now, got, err := l.read(after)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(got, want) || !reflect.DeepEqual(before, now) {
		return nil, errors.New("the file is written in a form that cannot be changed safely; add the line by hand")
	}
	return after, nil
}

// read decodes everything but the list, and the list.
func (l List) read(data []byte) (rest map[string]any, list []string, err error) {
	if err := toml.Unmarshal(data, &rest); err != nil {
		return nil, nil, err
	}
	table, ok := rest[l.Table].(map[string]any)
	if !ok {
		return rest, nil, nil
	}
	if v, there := table[l.Key]; there {
		items, ok := v.([]any)
		if !ok {
			return nil, nil, errors.New("it is not a list of texts")
		}
		for _, item := range items {
			s, ok := item.(string)
			if !ok {
				return nil, nil, errors.New("it is not a list of texts")
			}
			list = append(list, s)
		}
	}
	delete(table, l.Key)
	if len(table) == 0 {
		delete(rest, l.Table)
	}
	return rest, list, nil
}

func (l List) splice(data []byte, want []string) ([]byte, error) {
	doc, err := tomledit.Parse(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	lines := strings.SplitAfter(string(data), "\n")
	for _, e := range doc.Find(l.Table, l.Key) {
		if e.KeyValue == nil || e.Section.Heading == nil || len(e.KeyValue.Name) != 1 {
			continue
		}
		text, err := l.assignment(e.KeyValue, want)
		if err != nil {
			return nil, err
		}
		from := e.KeyValue.Line - 1
		to, err := endOf(lines, from)
		if err != nil {
			return nil, err
		}
		return []byte(strings.Join(lines[:from], "") + text + strings.Join(lines[to:], "")), nil
	}
	text := l.Key + " = [" + quoted(want[0]) + "]\n" // a list that is not there held nothing, so one was added
	for _, s := range doc.Sections {
		if s.Heading.Name.Equals(parser.Key{l.Table}) && !s.Heading.IsArray {
			at := s.Heading.Line
			return []byte(ended(strings.Join(lines[:at], "")) + text + strings.Join(lines[at:], "")), nil
		}
	}
	before := ended(string(data))
	if before != "" {
		before += "\n"
	}
	return []byte(before + "[" + l.Table + "]\n" + text), nil
}

func ended(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		return text + "\n"
	}
	return text
}

// endOf finds the line behind the assignment that begins at from: the first one up to which it parses.
func endOf(lines []string, from int) (int, error) {
	for to := from + 1; to <= len(lines); to++ {
		items, err := parser.New(strings.NewReader(strings.Join(lines[from:to], ""))).Items()
		if err == nil && len(items) == 1 {
			return to, nil
		}
	}
	return 0, errors.New("its end cannot be found; change it by hand")
}

// assignment writes the list anew: items that stay keep their spelling and their comments.
func (l List) assignment(kv *parser.KeyValue, want []string) (string, error) {
	array, ok := kv.Value.X.(parser.Array)
	if !ok {
		return "", errors.New("it is not a list")
	}
	want = slices.Clone(want)
	var rows []string
	comments := false
	for _, item := range array {
		switch v := item.(type) {
		case parser.Comments:
			comments = true
			rows = append(rows, v.Clean()...)
		case parser.Value:
			var held struct{ V string }
			if err := toml.Unmarshal([]byte("V = "+v.X.String()), &held); err != nil {
				return "", err
			}
			if len(want) == 0 || want[0] != held.V {
				continue // taken out
			}
			want = want[1:]
			rows = append(rows, strings.TrimRight(v.X.String()+", "+v.Trailer, " "))
			comments = comments || v.Trailer != ""
		}
	}
	for _, s := range want {
		rows = append(rows, quoted(s)+",")
	}
	tail := strings.TrimRight("]  "+kv.Value.Trailer, " ") + "\n"
	if len(rows) == 0 || len(rows) == 1 && !comments {
		return l.Key + " = [" + strings.TrimSuffix(strings.Join(rows, ""), ",") + tail, nil
	}
	return l.Key + " = [\n  " + strings.Join(rows, "\n  ") + "\n" + tail, nil
}

func quoted(s string) string {
	var b bytes.Buffer
	if err := toml.NewEncoder(&b).Encode(map[string]string{"v": s}); err != nil {
		return `""` // the check after the change refuses it
	}
	return strings.TrimSpace(strings.TrimPrefix(b.String(), "v = "))
}
