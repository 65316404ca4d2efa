package session

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"reasonix/internal/filelock"
)

// Ext is the file name extension of a transcript; maxLine bounds one stored entry.
const (
	Ext     = ".jsonl"
	maxLine = 64 << 20
)

// ErrCorrupt: a line before the end of a transcript cannot be read. What stands before it is intact.
var ErrCorrupt = errors.New("transcript is damaged")

// File is a transcript as JSON lines: one entry per line, appended and never rewritten. It is safe for concurrent use.
type File struct {
	path string
	now  func() time.Time

	mu     sync.Mutex
	file   *os.File
	unlock func() error // nil: this handle can only read
	broken error        // set when a failed write could not be undone
	starts []int64      // byte offset of entry Seq-1
	end    int64        // offset behind the last whole batch
}

// line is an entry as stored. More says that the entries of one Append go on; a batch whose last line is missing never was.
type line struct {
	Entry
	More bool `json:"more,omitempty"`
}

// OpenFile opens the transcript at path. With lock it creates what is missing, takes the lock file beside it and drops what a
// crash left half written; while another process holds the lock it returns ErrFenced. Without lock the file must exist and
// every Append returns ErrFenced. The caller closes it.
func OpenFile(path string, lock bool) (*File, error) {
	f := &File{path: path, now: time.Now}
	if err := f.open(lock); err != nil {
		f.Close()
		return nil, fmt.Errorf("open session %s: %w", f.ID(), err)
	}
	return f, nil
}

func (f *File) open(lock bool) error {
	flags := os.O_RDONLY
	if lock {
		if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
			return err
		}
		unlock, err := filelock.Try(f.path + ".lock") // it ends with the process, so it is never stale
		if errors.Is(err, filelock.ErrLocked) {
			return ErrFenced
		}
		if err != nil {
			return err
		}
		f.unlock, flags = unlock, os.O_RDWR|os.O_APPEND|os.O_CREATE
	}
	file, err := os.OpenFile(f.path, flags, 0o600)
	if err != nil {
		return err
	}
	f.file = file
	if err := f.scan(nil); err != nil {
		return err
	}
	if lock {
		return f.dropTail()
	}
	return nil
}

// dropTail removes what a crash left behind the last whole batch. It goes by path: an append handle may not truncate on
// every system.
func (f *File) dropTail() error {
	stat, err := f.file.Stat()
	if err != nil || stat.Size() == f.end {
		return err
	}
	return os.Truncate(f.path, f.end)
}

// ID is the file's name without its extension.
func (f *File) ID() string { return strings.TrimSuffix(filepath.Base(f.path), Ext) }

// Close gives the lock back. Appends afterwards return ErrFenced.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	if f.file != nil {
		errs = append(errs, f.file.Close())
		f.file = nil
	}
	if f.unlock != nil {
		errs = append(errs, f.unlock())
		f.unlock = nil
	}
	return errors.Join(errs...)
}

// Append writes the entries in one write and, where an effect or a person depends on them, waits for the disk.
func (f *File) Append(ctx context.Context, entries ...Entry) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("append to session %s: %w", f.ID(), err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unlock == nil || f.file == nil {
		return fmt.Errorf("append to session %s: %w", f.ID(), ErrFenced)
	}
	if f.broken != nil {
		return fmt.Errorf("append to session %s: %w", f.ID(), f.broken)
	}
	if len(entries) == 0 {
		return nil
	}
	batch, starts, err := f.encode(entries)
	if err != nil {
		return fmt.Errorf("append to session %s: %w", f.ID(), err)
	}
	if err := f.write(batch, durable(entries)); err != nil {
		return fmt.Errorf("append to session %s: %w", f.ID(), err)
	}
	f.starts = append(f.starts, starts...)
	f.end += int64(len(batch))
	return nil
}

func (f *File) encode(entries []Entry) (batch []byte, starts []int64, err error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	at := f.now().UTC()
	for i, e := range entries {
		e.Seq, e.At = int64(len(f.starts)+i+1), at
		starts = append(starts, f.end+int64(b.Len()))
		if err := enc.Encode(line{e, i < len(entries)-1}); err != nil {
			return nil, nil, err
		}
		if f.end+int64(b.Len())-starts[i] > maxLine {
			return nil, nil, fmt.Errorf("entry of kind %s is larger than %d MiB", e.Kind, maxLine>>20)
		}
	}
	return b.Bytes(), starts, nil
}

// write is all or nothing: what a full disk left half written is taken back.
func (f *File) write(batch []byte, sync bool) error {
	_, err := f.file.Write(batch)
	if err == nil && sync {
		err = f.file.Sync()
	}
	if err == nil {
		return nil
	}
	if undo := f.dropTail(); undo != nil {
		f.broken = fmt.Errorf("an earlier write could be neither finished nor undone: %w", errors.Join(err, undo))
	}
	return err
}

// durable tells whether an effect, a question or an end depends on the entries.
func durable(entries []Entry) bool {
	for _, e := range entries {
		switch e.Kind {
		case KindIntent, KindPending, KindDecision, KindEnd:
			return true
		}
	}
	return false
}

// Entries returns everything after the given Seq, also what another process appended since. A batch that is only half
// written is not seen.
func (f *File) Entries(ctx context.Context, after int64) ([]Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil, fmt.Errorf("read session %s: %w", f.ID(), os.ErrClosed)
	}
	if after < 0 {
		after = 0
	}
	var out []Entry
	if after < int64(len(f.starts)) {
		known := io.NewSectionReader(f.file, f.starts[after], f.end-f.starts[after])
		err := eachLine(known, func(l line, _ int64) { out = append(out, l.Entry) })
		if err != nil {
			return nil, fmt.Errorf("read session %s: %w", f.ID(), err)
		}
	}
	err := f.scan(func(e Entry) {
		if e.Seq > after {
			out = append(out, e)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", f.ID(), err)
	}
	return out, ctx.Err()
}

// scan reads whole batches behind f.end into the index.
func (f *File) scan(see func(Entry)) error {
	var starts []int64
	var batch []Entry
	at := f.end
	r := io.NewSectionReader(f.file, f.end, 1<<62)
	err := eachLine(r, func(l line, n int64) {
		starts, batch = append(starts, at), append(batch, l.Entry)
		at += n
		if l.More {
			return
		}
		f.starts, f.end = append(f.starts, starts...), at
		for _, e := range batch {
			if see != nil {
				see(e)
			}
		}
		starts, batch = nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s line %d: %w", f.path, len(f.starts)+len(starts)+1, err)
	}
	return nil
}

// eachLine reads lines until the end; a last line without its newline, or one that a crash tore, ends it in silence.
func eachLine(r io.Reader, do func(line, int64)) error {
	br := bufio.NewReaderSize(r, 64<<10)
	for {
		raw, err := readLine(br)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			if _, more := br.Peek(1); errors.Is(more, io.EOF) {
				return nil
			}
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		do(l, int64(len(raw)))
	}
}

func readLine(br *bufio.Reader) ([]byte, error) {
	var whole []byte
	for {
		part, err := br.ReadSlice('\n')
		whole = append(whole, part...)
		if len(whole) > maxLine+1 {
			return nil, fmt.Errorf("%w: a line is larger than %d MiB", ErrCorrupt, maxLine>>20)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return whole, err
		}
	}
}
