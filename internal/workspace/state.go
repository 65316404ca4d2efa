package workspace

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // git's own blob ids, compared with git's own tree; never what an approval is bound to
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"reasonix/internal/agent"
	"reasonix/internal/sandbox"
)

const (
	hashedWhole = 64 << 20  // larger files are known by size and change time, which a task cannot set
	keptText    = 256 << 10 // larger files show up in a difference by name and size only
	keptNew     = 32 << 20  // bytes of text that one state may add to what is kept; more of it shows up by name and size only
	maxLevels   = 1000      // each holds a descriptor while the tree is read
	maxAdded    = 1 << 20   // files and links that a tree may have beyond the base's: the host remembers each
)

// entry is one file of a state. Hash covers content; Base tells that the base commit has this very content at this path.
type entry struct {
	Mode string `json:"m"` // f, x (executable), l (link), s (special)
	Hash string `json:"h"`
	Size int64  `json:"s"`
	Base bool   `json:"b,omitempty"`
	Kept bool   `json:"k,omitempty"` // content is among the blobs
}

// ErrTree: the tree is of a shape that the host does not read.
var ErrTree = errors.New("the workspace cannot be read")

// cached is a hash with what would tell that the file changed; the change time cannot be set by a task.
type cached struct {
	entry
	stamp string
}

// State hashes the tree by walking descriptors with the base commit's ignore rules, never through the task's index, and keeps what
// Difference needs later. Tracked files of the base count even when an ignore rule names them.
func (w *Workspace) State(ctx context.Context) (agent.TreeState, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entries, state, err := w.scan(ctx)
	if err != nil {
		return agent.TreeState{}, fmt.Errorf("hash workspace %s: %w", w.ID, err)
	}
	if err := w.keep(state.Hash, entries, state.Head); err != nil {
		return agent.TreeState{}, fmt.Errorf("hash workspace %s: %w", w.ID, err)
	}
	return state, nil
}

func (w *Workspace) scan(ctx context.Context) (map[string]entry, agent.TreeState, error) {
	if w.base == nil {
		base, err := w.store.readBase(ctx, w.ID, w.BaseSHA)
		if err != nil {
			return nil, agent.TreeState{}, err
		}
		w.base = base
	}
	if w.cache == nil {
		w.cache = w.store.readIndex(w.ID)
	}
	root, err := os.OpenRoot(w.Dir)
	if err != nil {
		return nil, agent.TreeState{}, err
	}
	defer root.Close()
	walk := &walker{ctx: ctx, base: w.base, old: w.cache, fresh: map[string]cached{}, entries: map[string]entry{},
		blobs: w.blobsDir(), now: time.Now()}
	if err := os.MkdirAll(walk.blobs, 0o700); err != nil {
		return nil, agent.TreeState{}, err
	}
	if err := walk.dir(root, "", 0); err != nil {
		return nil, agent.TreeState{}, err
	}
	if walk.read > 0 || len(walk.fresh) != len(w.cache) {
		if err := w.store.writeIndex(w.ID, walk.fresh); err != nil {
			return nil, agent.TreeState{}, err
		}
	}
	w.cache = walk.fresh
	return walk.entries, agent.TreeState{Hash: hashOf(walk.entries), Base: w.BaseSHA, Head: headOf(root)}, nil
}

func hashOf(entries map[string]entry) string {
	sum := sha256.New()
	for _, p := range sortedKeys(entries) {
		e := entries[p]
		fmt.Fprintf(sum, "%d:%s%s %s\n", len(p), p, e.Mode, e.Hash) // the length keeps odd names from imitating a line
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// walker visits one tree. Every step opens relative to a descriptor and checks that it got what it saw, so that a file swapped for
// a link in between is an error and not a way out.
type walker struct {
	ctx   context.Context
	base  *baseTree
	old   map[string]cached
	blobs string
	now   time.Time

	mu      sync.Mutex
	fresh   map[string]cached
	entries map[string]entry
	read    int // files whose content was read
	kept    int64
}

func (k *walker) dir(d *os.Root, at string, level int) error {
	if err := k.ctx.Err(); err != nil {
		return err
	}
	if level > maxLevels {
		return fmt.Errorf("%w: its folders are nested deeper than %d", ErrTree, maxLevels)
	}
	f, err := d.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	var files errgroup.Group // files of one folder are read side by side, while its descriptor is open
	files.SetLimit(runtime.GOMAXPROCS(0))
	return errors.Join(k.each(d, f, at, level, &files), files.Wait())
}

// each takes the names in portions, since a folder may hold any number.
func (k *walker) each(d *os.Root, f *os.File, at string, level int, files *errgroup.Group) error {
	for {
		list, err := f.ReadDir(4096)
		for _, e := range list {
			if e.Name() == ".git" {
				continue // the repository itself; head is told apart
			}
			if err := k.one(d, e.Name(), path.Join(at, e.Name()), level, files); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if k.count() > len(k.base.blobs)+maxAdded {
			return fmt.Errorf("%w: it holds more than %d files beyond those of its base", ErrTree, maxAdded)
		}
	}
}

func (k *walker) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.entries)
}

func (k *walker) put(at string, e entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.entries[at] = e
}

func (k *walker) one(d *os.Root, name, at string, level int, files *errgroup.Group) error {
	info, err := d.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if k.base.ignored(at, info.IsDir()) || sandbox.IsShadow(info) {
		return nil
	}
	switch {
	case info.IsDir():
		sub, err := d.OpenRoot(name)
		if errors.Is(err, fs.ErrPermission) {
			k.put(at, entry{Mode: "s", Hash: "unreadable"}) // a folder that its owner closed
			return nil
		}
		if err != nil {
			return err
		}
		defer sub.Close()
		if got, err := sub.Stat("."); err != nil || !os.SameFile(got, info) {
			return fmt.Errorf("%s changed while it was read", at)
		}
		return k.dir(sub, at, level+1)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := d.Readlink(name)
		if err != nil {
			return err
		}
		k.put(at, entry{Mode: "l", Hash: digest(target), Size: int64(len(target))})
		return nil
	case !info.Mode().IsRegular():
		k.put(at, entry{Mode: "s", Hash: info.Mode().Type().String()})
		return nil
	}
	stamp := stampOf(info)
	if old, ok := k.old[at]; ok && stamp != "" && old.stamp == stamp {
		k.put(at, old.entry)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.fresh[at] = old
		return nil
	}
	files.Go(func() error { return k.file(d, name, at, info, stamp) })
	return nil
}

func (k *walker) file(d *os.Root, name, at string, info fs.FileInfo, stamp string) error {
	e := entry{Mode: "f", Size: info.Size()}
	if info.Mode()&0o111 != 0 {
		e.Mode = "x"
	}
	if info.Size() > hashedWhole {
		e.Hash = digest(strconv.FormatInt(info.Size(), 10) + " " + stamp)
		k.put(at, e)
		return nil
	}
	f, err := d.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if errors.Is(err, fs.ErrPermission) {
		e.Hash = digest("unreadable " + stamp)
		k.put(at, e)
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	got, err := f.Stat()
	if err != nil || !os.SameFile(got, info) {
		return fmt.Errorf("%s changed while it was read", at)
	}
	if err := k.content(f, at, &e); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.entries[at] = e
	k.read++
	if settled(info, k.now) {
		k.fresh[at] = cached{entry: e, stamp: stamp}
	}
	return nil
}

// buffers are for reading; most files fit into one.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// content hashes what is read, and keeps small files that the base commit does not have as they are.
func (k *walker) content(f io.Reader, at string, e *entry) error {
	sum := sha256.New()
	limited := io.LimitReader(f, hashedWhole)
	if e.Size > keptText {
		if _, err := io.Copy(sum, limited); err != nil {
			return err
		}
		e.Hash = hex.EncodeToString(sum.Sum(nil))
		return nil
	}
	text := buffers.Get().(*bytes.Buffer)
	text.Reset()
	defer func() {
		if text.Cap() <= 2*keptText {
			buffers.Put(text)
		}
	}()
	_, err := text.ReadFrom(limited)
	if err != nil {
		return err
	}
	sum.Write(text.Bytes())
	e.Hash = hex.EncodeToString(sum.Sum(nil))
	if want, tracked := k.base.blobs[at]; tracked {
		git := sha1.New()
		fmt.Fprintf(git, "blob %d\x00", e.Size)
		git.Write(text.Bytes())
		if e.Base = want == hex.EncodeToString(git.Sum(nil)); e.Base {
			return nil
		}
	}
	e.Kept, err = k.keep(e.Hash, text.Bytes())
	return err
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// headOf reads the commit that HEAD stands at without running git: what a task wrote there is data.
func headOf(root *os.Root) string {
	text, ok := smallFile(root, ".git/HEAD")
	if !ok {
		return ""
	}
	ref, symbolic := strings.CutPrefix(text, "ref: ")
	if !symbolic {
		return shaOr(text)
	}
	ref = strings.TrimSpace(ref)
	if !strings.HasPrefix(ref, "refs/") || path.Clean(ref) != ref {
		return shaOr(text)
	}
	if sha, ok := smallFile(root, ".git/"+ref); ok {
		return shaOr(sha)
	}
	packed, _ := smallFile(root, ".git/packed-refs")
	for _, line := range strings.Split(packed, "\n") {
		if sha, name, ok := strings.Cut(line, " "); ok && name == ref {
			return shaOr(sha)
		}
	}
	return ""
}

// shaOr gives a commit id as it is, and anything else as a mark that still differs when it changes.
func shaOr(text string) string {
	text = strings.TrimSpace(text)
	if shaShape.MatchString(text) {
		return text
	}
	return "unreadable-" + digest(text)[:16]
}

func smallFile(root *os.Root, name string) (string, bool) {
	f, err := root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return "", false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	data, err := io.ReadAll(io.LimitReader(f, 8<<20))
	return string(data), err == nil
}

// manifest is a state as the host keeps it: what differs from the base commit.
type manifest struct {
	Head    string           `json:"head"`
	Entries map[string]entry `json:"entries"` // files that are not the base's
	Exec    []string         `json:"exec"`    // the base's files that are executable
	Gone    []string         `json:"gone"`    // the base's files that are not there or stand in Entries
}

// narrow and whole are each other's inverse, up to the hashes of the base's own files.
func narrow(head string, entries map[string]entry, base *baseTree) manifest {
	m := manifest{Head: head, Entries: map[string]entry{}}
	for p, e := range entries {
		switch {
		case !e.Base:
			m.Entries[p] = e
		case e.Mode == "x":
			m.Exec = append(m.Exec, p)
		}
	}
	for p := range base.blobs {
		if e, ok := entries[p]; !ok || !e.Base {
			m.Gone = append(m.Gone, p)
		}
	}
	return m
}

func (m manifest) whole(base *baseTree) map[string]entry {
	all := make(map[string]entry, len(base.blobs)+len(m.Entries))
	for p := range base.blobs {
		all[p] = entry{Mode: "f", Base: true}
	}
	for _, p := range m.Exec {
		all[p] = entry{Mode: "x", Base: true}
	}
	for _, p := range m.Gone {
		delete(all, p)
	}
	for p, e := range m.Entries {
		all[p] = e
	}
	return all
}
