package workspace

import (
	"context"
	"crypto/sha1" //nolint:gosec // git's own blob ids
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// clockGrain is what a file system's clock may be behind; a file that changes later than that has another change time.
const clockGrain = 20 * time.Millisecond

// sum is what a file of a commit looks like once it is checked out.
type sum struct {
	hash string
	size int64
}

// seed writes the index of a tree that the host has just checked out and that no task has seen: what lies there are the files of the base
// commit. Hashes of files that an earlier clone of the same mirror had are known already, so that only new ones are read. Without a mirror,
// or on a file system whose clock is too coarse, there is nothing to seed.
func (s *Store) seed(ctx context.Context, m meta, tree, commit string) error {
	if m.Mirror == "" || !stamps {
		return nil
	}
	base, err := s.readBase(ctx, m.ID, m.Base)
	if err != nil {
		return err
	}
	blobs := base.blobs
	if commit != m.Base {
		other, err := s.readBase(ctx, m.ID, commit)
		if err != nil {
			return err
		}
		blobs = other.blobs
	}
	k := &seeder{base: base, tree: tree, known: s.readSums(m, base), sums: map[string]sum{}, index: map[string]cached{}}
	if err := k.all(ctx, blobs); err != nil {
		return err
	}
	if k.coarse() {
		return nil
	}
	if k.read > 0 {
		if err := s.writeSums(m, base, k); err != nil {
			return err
		}
	}
	if err := s.writeIndex(m.ID, k.index); err != nil {
		return err
	}
	return pause(ctx, time.Until(k.last.Add(clockGrain)))
}

// pause waits until a later change is sure to get a later change time.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(min(d, clockGrain))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type seeder struct {
	base  *baseTree
	tree  string
	known map[string]sum

	mu    sync.Mutex
	sums  map[string]sum // of this tree
	index map[string]cached
	read  int
	last  time.Time
	fine  bool // some change time has a fraction of a second
}

// coarse: a clock that counts seconds would not tell a change from what was checked out.
func (k *seeder) coarse() bool { return len(k.index) > 0 && !k.fine }

func (k *seeder) all(ctx context.Context, blobs map[string]string) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	paths := sortedKeys(blobs)
	const some = 256
	for len(paths) > 0 {
		part := paths[:min(some, len(paths))]
		paths = paths[len(part):]
		g.Go(func() error {
			for _, p := range part {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if blob := blobs[p]; k.base.blobs[p] == blob {
					if err := k.one(p, blob); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func (k *seeder) one(p, blob string) error {
	file := filepath.Join(k.tree, filepath.FromSlash(p))
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > keptText {
		return nil // a submodule, a link, or too large to be known as the base's
	}
	key := p + "\x00" + blob
	got, known := k.known[key]
	if known = known && got.size == info.Size(); !known {
		var ok bool
		if got, ok, err = sumOf(file, blob, info); err != nil || !ok {
			return err
		}
	}
	mode := "f"
	if info.Mode()&0o111 != 0 {
		mode = "x"
	}
	changed := changeTime(info)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !known {
		k.read++
	}
	k.sums[key] = got
	k.index[p] = cached{entry: entry{Mode: mode, Hash: got.hash, Size: got.size, Base: true}, stamp: stampOf(info)}
	k.last = later(k.last, changed)
	k.fine = k.fine || changed.Nanosecond() != 0
	return nil
}

// sumOf reads a file; ok tells that it is the blob itself, without a conversion of line ends or the like.
func sumOf(file, blob string, info fs.FileInfo) (sum, bool, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return sum{}, false, err
	}
	git := sha1.New()
	fmt.Fprintf(git, "blob %d\x00", len(data))
	git.Write(data)
	h := sha256.Sum256(data)
	return sum{hex.EncodeToString(h[:]), info.Size()}, hex.EncodeToString(git.Sum(nil)) == blob && int64(len(data)) == info.Size(), nil
}

// sumsFile is one per set of attributes: they say how a blob is checked out.
func (s *Store) sumsFile(m meta, base *baseTree) string {
	var attributes strings.Builder
	for _, p := range sortedKeys(base.blobs) {
		if path.Base(p) == ".gitattributes" {
			fmt.Fprintf(&attributes, "%s %s\n", base.blobs[p], p)
		}
	}
	return filepath.Join(s.mirrorDir(m.Mirror), "sums-"+digest(attributes.String())[:16])
}

func (s *Store) readSums(m meta, base *baseTree) map[string]sum {
	out := map[string]sum{}
	for _, f := range readRecords(s.sumsFile(m, base), 4) {
		size, err := strconv.ParseInt(f[3], 10, 64)
		if err != nil {
			return map[string]sum{}
		}
		out[f[0]+"\x00"+f[1]] = sum{f[2], size}
	}
	return out
}

// writeSums keeps what earlier clones knew, until it is several times what is needed now.
func (s *Store) writeSums(m meta, base *baseTree, k *seeder) error {
	if len(k.known) < 4*len(k.sums)+1000 {
		for key, v := range k.known {
			k.sums[key] = v
		}
	}
	fields := make([]string, 0, 4*len(k.sums))
	for key, v := range k.sums {
		p, blob, _ := strings.Cut(key, "\x00")
		fields = append(fields, p, blob, v.hash, strconv.FormatInt(v.size, 10))
	}
	return writeRecords(s.sumsFile(m, base), fields)
}
