package workspace

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"reasonix/internal/sandbox"
)

// The setup cache keeps what setup commands made on a clone that no task has worked in, for other tasks that start from the same. Each gets a
// copy; a task never writes into the cache. What lies in it follows from its key alone: address, commands, the base's files, the
// programs of this machine and the box.

// The first entry of a cached setup names the base's files that it took away, the last one says that nothing was cut off.
const (
	cacheGone = "gone.json"
	cacheEnd  = "end"
)

// cachedFolders of work/ID are part of a cached setup.
var cachedFolders = []string{"tree", "home", "caches"}

// errTooLarge: what setup made does not fit into the cache.
var errTooLarge = errors.New("what setup made is larger than the cache")

// pristine: nobody but the host has worked here, so what setup makes follows from its key.
func (w *Workspace) pristine() bool {
	return w.Fresh && !w.touched && !w.Restored && w.meta.Mirror != "" && w.store.opt.SetupCache > 0 && len(w.store.readIndex(w.ID)) > 0
}

// setupFile is where the result of these commands lies; fill tells whether this workspace may put it there.
func (w *Workspace) setupFile(ctx context.Context, commands []string, extra sandbox.Policy) (file string, fill bool, err error) {
	base, err := w.store.readBase(ctx, w.ID, w.BaseSHA)
	if err != nil {
		return "", false, err
	}
	from := map[string]string{}
	for _, f := range w.setupFiles {
		from[f] = base.blobs[f]
	}
	// Whoever narrows the key to some files says that nothing else matters. That is believed of the configured base, not of a commit that
	// somebody else pushed.
	fill = !w.meta.Pinned && w.meta.Pushed == ""
	if len(w.setupFiles) == 0 {
		tree, err := w.store.git(ctx, w.store.hostGit(w.ID), "rev-parse", "--verify", w.BaseSHA+"^{tree}")
		if err != nil {
			return "", false, err
		}
		from["/"], fill = tree, true
	}
	net := ""
	if extra.Network != nil {
		net = "on " + strings.Join(extra.Network.AllowHosts, " ")
	}
	key, err := json.Marshal(map[string]any{
		"version": 1, "mirror": w.meta.Mirror, "commands": commands, "from": from, "network": net, "box": w.store.opt.Box.Name(),
		"system": runtime.GOOS + "/" + runtime.GOARCH, "programs": programs(extra.Readable), "env": extra.Env, "limits": extra.Limits,
	})
	if err != nil {
		return "", false, err
	}
	return filepath.Join(w.store.root, "setups", digest(string(key))), fill, nil
}

// programs changes when programs are installed or updated: their folders do then.
func programs(more []string) []string {
	var out []string
	for _, dir := range append([]string{"/usr/bin", "/usr/local/bin", "/usr/lib", "/usr/local/lib", "/usr/lib/node_modules", "/etc/os-release"}, more...) {
		for _, at := range []string{dir, filepath.Join(dir, "bin"), filepath.Join(dir, "VERSION")} {
			if info, err := os.Stat(at); err == nil {
				out = append(out, fmt.Sprintf("%s %d", at, info.ModTime().UnixNano()))
			}
		}
	}
	return out
}

// fromCache copies an earlier result into the workspace; false when there is none. After an error the workspace may hold a part of it, as
// after a setup command that failed.
func (w *Workspace) fromCache(file string) (bool, error) {
	in, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer in.Close()
	now := time.Now()
	_ = os.Chtimes(file, now, now) // the least used one goes first
	root, err := os.OpenRoot(filepath.Dir(w.Dir))
	if err != nil {
		return false, err
	}
	defer root.Close()
	u := &unpacker{root: root, uid: -1, gid: -1}
	if a, ok := w.store.opt.Box.(sandbox.Accounts); ok {
		if uid, gid, ok := a.Account(w.ID); ok {
			u.uid, u.gid = uid, gid
		}
	}
	return true, u.all(tar.NewReader(bufio.NewReaderSize(in, 1<<20)))
}

type unpacker struct {
	root     *os.Root
	uid, gid int
}

func (u *unpacker) all(t *tar.Reader) error {
	for {
		h, err := t.Next()
		if err == nil && h.Name == cacheEnd {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if h.Name == cacheGone {
			err = u.gone(t)
		} else {
			err = u.one(h, t)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

func (u *unpacker) gone(t io.Reader) error {
	var paths []string
	if err := json.NewDecoder(t).Decode(&paths); err != nil {
		return err
	}
	for _, p := range paths {
		if err := u.root.RemoveAll(path.Join("tree", p)); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) one(h *tar.Header, t io.Reader) error {
	name := filepath.FromSlash(h.Name)
	mode := fs.FileMode(h.Mode) & 0o777
	if h.Typeflag == tar.TypeDir {
		if err := u.root.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return errors.Join(u.root.Chmod(name, mode|0o700), u.own(name))
	}
	if err := u.root.RemoveAll(name); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeSymlink {
		return errors.Join(u.root.Symlink(h.Linkname, name), u.own(name))
	}
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openFlags, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, t)
	return errors.Join(err, f.Chmod(mode), f.Close(), u.own(name), u.root.Chtimes(name, h.ModTime, h.ModTime))
}

func (u *unpacker) own(name string) error {
	if u.uid < 0 {
		return nil
	}
	return u.root.Lchown(name, u.uid, u.gid)
}

// toCache keeps what setup made: files of the tree that are not as they were checked out, the home and the caches.
func (w *Workspace) toCache(ctx context.Context, file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	base, err := w.store.readBase(ctx, w.ID, w.BaseSHA)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Dir(w.Dir))
	if err != nil {
		return err
	}
	defer root.Close()
	tmp, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone already when all went well
	p := &packer{ctx: ctx, root: root, out: tar.NewWriter(tmp), base: base, index: w.store.readIndex(w.ID), left: w.store.opt.SetupCache}
	err = p.gone()
	for _, dir := range cachedFolders {
		if err == nil {
			err = fs.WalkDir(root.FS(), dir, p.one)
		}
	}
	if err == nil {
		err = p.out.WriteHeader(&tar.Header{Name: cacheEnd, Mode: 0o600})
	}
	if err = errors.Join(err, p.out.Close(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return err
	}
	return w.store.trimSetups()
}

type packer struct {
	ctx   context.Context
	root  *os.Root
	out   *tar.Writer
	base  *baseTree
	index map[string]cached
	left  int64
}

func (p *packer) gone() error {
	missing := []string{}
	for _, f := range sortedKeys(p.base.blobs) {
		if _, err := p.root.Lstat(path.Join("tree", f)); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, f)
		}
	}
	data, err := json.Marshal(missing)
	if err != nil {
		return err
	}
	return errors.Join(p.out.WriteHeader(&tar.Header{Name: cacheGone, Mode: 0o600, Size: int64(len(data))}), second(p.out.Write(data)))
}

func (p *packer) one(name string, d fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if err := p.ctx.Err(); err != nil {
		return err
	}
	if name == "tree/.git" {
		return fs.SkipDir
	}
	if slices.Contains(cachedFolders, name) {
		return nil
	}
	if p.left -= 1 << 10; p.left < 0 { // its head in the file, however empty it is
		return errTooLarge
	}
	info, err := d.Info()
	if err != nil {
		return err
	}
	inTree, tree := strings.CutPrefix(name, "tree/")
	switch {
	case sandbox.IsShadow(info):
		return nil
	case info.IsDir():
		if tree && p.base.dirs[inTree] {
			return nil
		}
		return p.out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(), Format: tar.FormatPAX})
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := p.root.Readlink(name)
		if err != nil {
			return err
		}
		return p.out.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777, Format: tar.FormatPAX})
	case !info.Mode().IsRegular():
		return nil // a socket that somebody left
	case tree && p.index[inTree].stamp != "" && p.index[inTree].stamp == stampOf(info):
		return nil // as it was checked out
	}
	return p.file(name, info)
}

func (p *packer) file(name string, info fs.FileInfo) error {
	if p.left -= info.Size(); p.left < 0 {
		return errTooLarge
	}
	f, err := p.root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	got, err := f.Stat()
	if err != nil || !os.SameFile(got, info) {
		return fmt.Errorf("%s changed while it was read", name)
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: got.Size(), Mode: int64(got.Mode().Perm()), ModTime: got.ModTime(), Format: tar.FormatPAX}
	return errors.Join(p.out.WriteHeader(h), second(io.CopyN(p.out, f, got.Size())))
}

// trimSetups lets the least used results go until the cache fits.
func (s *Store) trimSetups() error {
	sweepFiles(filepath.Join(s.root, "setups"), ".new-", time.Now())
	entries, err := os.ReadDir(filepath.Join(s.root, "setups"))
	if err != nil {
		return err
	}
	var all []fs.FileInfo
	var total int64
	for _, e := range entries {
		if info, err := e.Info(); err == nil && !strings.HasPrefix(e.Name(), ".") {
			all, total = append(all, info), total+info.Size()
		}
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range all {
		if total <= s.opt.SetupCache {
			return nil
		}
		if err := os.Remove(filepath.Join(s.root, "setups", info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		total -= info.Size()
	}
	return nil
}
