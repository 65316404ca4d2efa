package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A box without mounts cannot make a file of a writable folder read-only. The host remembers what is protected before a command
// and puts it back afterwards.

// kept is one protected place as it was: a folder that must stay where it is, a file or folder with its content, or nothing.
type kept struct {
	Root    string      `json:"root"` // folder of the host that Path must not lead out of, whatever links a task left on the way
	Path    string      `json:"path"` // relative to Root
	Island  bool        `json:"island,omitempty"`
	Mode    fs.FileMode `json:"mode,omitempty"` // of an island
	UID     int         `json:"uid,omitempty"`
	GID     int         `json:"gid,omitempty"`
	Dev     uint64      `json:"dev,omitempty"`
	Ino     uint64      `json:"ino,omitempty"`
	Entries []leaf      `json:"entries,omitempty"` // none: nothing is there
	Skip    []string    `json:"skip,omitempty"`    // islands inside, relative to Root
}

// leaf is a file, folder or link of a protected place.
type leaf struct {
	Path    string      `json:"path"` // relative to the root
	Mode    fs.FileMode `json:"mode"`
	UID     int         `json:"uid"`
	GID     int         `json:"gid"`
	Links   uint64      `json:"links"`
	Time    time.Time   `json:"time"`
	Content []byte      `json:"content,omitempty"` // of a file, or the target of a link
}

// maxKept bounds what is remembered of one workspace.
const (
	maxKeptBytes = 32 << 20
	maxKeptFiles = 20000
)

// remember reads everything protect names in a workspace.
func remember(workspace string) ([]kept, error) {
	mounts, missing, err := protect(workspace)
	if err != nil {
		return nil, err
	}
	absent := map[string]bool{}
	for _, sh := range missing {
		absent[sh.path] = true
	}
	budget := maxKeptBytes
	var out []kept
	for _, mt := range mounts {
		k := kept{Root: rootOf(mt.dest, workspace, mounts), Island: mt.kind == bindRW}
		if k.Path, err = filepath.Rel(k.Root, mt.dest); err != nil {
			return nil, err
		}
		switch {
		case k.Path == "." || (k.Island && absent[mt.dest]): // outside of what the task can move, or not there yet
			continue
		case k.Island:
			err = k.identify()
		case !absent[mt.dest]:
			k.Skip = islandsIn(mt.dest, k.Root, mounts)
			err = k.read(&budget)
		}
		if err != nil {
			return nil, fmt.Errorf("remember %s: %w", mt.dest, err)
		}
		out = append(out, k)
	}
	slices.SortStableFunc(out, func(a, b kept) int { // folders first, from the top: what lies in them comes back with them
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(depth(a.Path), depth(b.Path)))
	})
	return out, nil
}

// islandsIn are the folders inside a protected one that stay writable, like a submodule's.
func islandsIn(dir, root string, mounts []mount) (out []string) {
	for _, m := range mounts {
		if m.kind == bindRW && m.dest != dir && within(dir, m.dest) {
			rel, _ := filepath.Rel(root, m.dest) // both are absolute
			out = append(out, rel)
		}
	}
	return out
}

func rank(k kept) int {
	if k.Island {
		return 0
	}
	return 1
}

// rootOf is the workspace, or the git folder outside of it that a linked worktree belongs to.
func rootOf(path, workspace string, mounts []mount) string {
	if within(workspace, path) {
		return workspace
	}
	top := path
	for _, m := range mounts {
		if m.kind == bindRW && within(m.dest, path) && len(m.dest) < len(top) {
			top = m.dest
		}
	}
	return top
}

func (k *kept) identify() error {
	info, err := os.Lstat(filepath.Join(k.Root, k.Path))
	if err != nil {
		return err
	}
	st := info.Sys().(*syscall.Stat_t)
	k.Dev, k.Ino, k.Mode, k.UID, k.GID = uint64(st.Dev), st.Ino, info.Mode().Perm(), int(st.Uid), int(st.Gid)
	return nil
}

// read takes a file, or a folder with all that lies in it but the islands.
func (k *kept) read(budget *int) error {
	root, err := os.OpenRoot(k.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	files := 0
	k.Entries, err = k.list(root, k.Path, func(string) (int, error) {
		if files++; files > maxKeptFiles {
			return 0, fmt.Errorf("more than %d files are protected", maxKeptFiles)
		}
		return *budget, nil
	})
	for _, l := range k.Entries {
		*budget -= len(l.Content)
	}
	if err == nil && *budget < 0 {
		err = fmt.Errorf("more than %d bytes are protected", maxKeptBytes)
	}
	return err
}

// list walks the place; most says how many bytes of a file are worth reading, and one more is read to notice that there are more.
func (k *kept) list(root *os.Root, path string, most func(path string) (int, error)) ([]leaf, error) {
	info, err := root.Lstat(path)
	if err != nil {
		return nil, err
	}
	l := leafOf(path, info)
	limit, err := most(path)
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsDir():
		return k.folder(root, l, most)
	case info.Mode().IsRegular():
		l.Content, err = readLimited(root, path, limit)
	case info.Mode()&fs.ModeSymlink != 0:
		var target string
		target, err = root.Readlink(path)
		l.Content = []byte(target)
	}
	return []leaf{l}, err
}

func (k *kept) folder(root *os.Root, l leaf, most func(path string) (int, error)) ([]leaf, error) {
	out := []leaf{l}
	if err := open(root, l.Path); err != nil {
		return nil, err
	}
	names, err := fs.ReadDir(root.FS(), l.Path)
	if err != nil {
		return nil, err
	}
	for _, e := range names {
		path := filepath.Join(l.Path, e.Name())
		if slices.Contains(k.Skip, path) {
			continue
		}
		below, err := k.list(root, path, most)
		if errors.Is(err, fs.ErrNotExist) {
			continue // of another box that works in the same workspace
		}
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}

// openClosed opens a folder that its owner, the command, may have closed to everybody.
func openClosed(dir string) (*os.Root, error) {
	info, err := os.Lstat(dir)
	if err == nil && info.IsDir() && info.Mode().Perm()&0o700 != 0o700 {
		err = os.Chmod(dir, info.Mode().Perm()|0o700)
	}
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// open lets the host, as an ordinary user, into a folder of its own again that a command closed.
func open(root *os.Root, path string) error {
	info, err := root.Lstat(path)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o700 == 0o700 || os.Geteuid() == 0 {
		return err
	}
	return root.Chmod(path, info.Mode().Perm()|0o700)
}

func leafOf(path string, info fs.FileInfo) leaf {
	l := leaf{Path: path, Mode: info.Mode(), Time: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		l.UID, l.GID = int(st.Uid), int(st.Gid)
		if !info.IsDir() {
			l.Links = uint64(st.Nlink)
		}
	}
	return l
}

func readLimited(root *os.Root, path string, most int) ([]byte, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) && root.Chmod(path, 0o600) == nil { // its mode was noted before
		f, err = root.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(max(most, 0))+1))
}

// keeper remembers once for all boxes that run in a workspace at the same time: the second of them would take over what the first
// one's command has changed by then.
type keeper struct {
	mu    sync.Mutex
	rooms map[string]*keptRoom
}

type keptRoom struct {
	users int
	state []kept
}

var keepers = keeper{rooms: map[string]*keptRoom{}}

// hold remembers what is protected in the workspace; putBack is called once when the box has ended. It waits while a command of another
// host, or of one that was killed a moment ago, runs there: what that changed is not put back yet.
func (k *keeper) hold(workspace string) (state []kept, putBack func() ([]string, error), err error) {
	for deadline := time.Now().Add(2 * killGrace); ; {
		room, err := k.enter(workspace)
		if err != nil {
			return nil, nil, err
		}
		if room != nil {
			return room.state, func() ([]string, error) { return k.leave(workspace, room) }, nil
		}
		if time.Now().After(deadline) {
			return nil, nil, fmt.Errorf("another host runs a command in %s, and what it changes there is put back only when that has ended: try again then", workspace)
		}
		time.Sleep(20 * time.Millisecond) // another process's lock gives no signal that can be waited for with a limit
	}
}

// enter gives nil while the workspace is another host's.
func (k *keeper) enter(workspace string) (*keptRoom, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	room := k.rooms[workspace]
	if room == nil {
		free, err := unoccupied(workspace)
		if err != nil || !free {
			return nil, err
		}
		state, err := remember(workspace)
		if err != nil {
			return nil, err
		}
		room = &keptRoom{state: state}
		k.rooms[workspace] = room
	}
	room.users++
	return room, nil
}

func (k *keeper) leave(workspace string, room *keptRoom) ([]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if room.users--; room.users == 0 {
		delete(k.rooms, workspace)
	}
	return restore(room.state)
}

// occupy marks the workspace as one in which a command runs, as long as the process lives and the file is open.
func occupy(workspace string) (*os.File, error) {
	dir, err := os.Open(workspace)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(killGrace / 4); time.Now().Before(deadline); {
		if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
			break // a file system without locks has no second host either
		}
		time.Sleep(10 * time.Millisecond) // another host looks, or a command of the task locks it; the latter marks the place as well
	}
	return dir, nil
}

// unoccupied tells whether no command of any host runs in the workspace.
func unoccupied(workspace string) (bool, error) {
	dir, err := os.Open(workspace)
	if err != nil {
		return false, err
	}
	defer dir.Close() // and with it goes the lock
	return !errors.Is(syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK), nil
}

// restore puts back what differs and returns its names. It goes on after an error: the rest is put back all the same.
func restore(state []kept) (changed []string, err error) {
	var errs []error
	var gone []string
	for _, k := range state {
		if slices.ContainsFunc(gone, func(dir string) bool { return within(dir, filepath.Join(k.Root, k.Path)) }) {
			continue // the folder around it was deleted
		}
		root, err := openClosed(k.Root)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		differs, lost, err := k.restore(root)
		root.Close()
		if lost {
			gone = append(gone, filepath.Join(k.Root, k.Path))
		}
		if differs || err != nil {
			changed = append(changed, k.Path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("put %s back: %w", filepath.Join(k.Root, k.Path), err))
		}
	}
	return changed, errors.Join(errs...)
}
