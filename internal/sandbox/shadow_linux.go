package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// shadow is a place that must exist on the host for a mount to cover it. The host makes it and takes it away again when the last
// box of the workspace has ended, so that no ghost file is left (S48).
type shadow struct {
	root string // folder of the host that path must not lead out of, whatever links a task left on the way
	path string
	dir  bool
	text string
}

// shadowSet counts the boxes that need a shadow, over all boxes of this process.
type shadowSet struct {
	mu    sync.Mutex
	users map[string]int
}

var shadows = shadowSet{users: map[string]int{}}

// hold makes what is missing and returns the function that takes it away when nobody needs it any more.
func (s *shadowSet) hold(list []shadow) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, sh := range list {
		if err := makeShadow(sh); err != nil {
			s.drop(list[:i])
			return nil, err
		}
		s.users[sh.path]++
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(list)
	}, nil
}

func (s *shadowSet) drop(list []shadow) {
	for _, sh := range slices.Backward(list) {
		if s.users[sh.path]--; s.users[sh.path] <= 0 {
			delete(s.users, sh.path)
			dropShadow(sh)
		}
	}
}

func makeShadow(sh shadow) error {
	if err := sh.make(); err != nil {
		return fmt.Errorf("shadow %s: %w", sh.path, err)
	}
	return nil
}

func (sh shadow) make() error {
	root, name, err := sh.open()
	if err != nil {
		return err
	}
	defer root.Close()
	if info, err := root.Lstat(name); err == nil {
		if IsShadow(info) || (sh.dir && info.IsDir()) {
			return nil
		}
		return errors.New("it appeared meanwhile; run the command again")
	}
	if !sh.dir {
		err := sh.appear(root, name)
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	mode := os.FileMode(0o644)
	if sh.dir {
		mode, err = 0o755, root.Mkdir(name, 0o755)
	} else {
		err = writeNew(root, name, sh.text)
	}
	if err != nil {
		return err
	}
	if err := root.Chmod(name, mode); err != nil { // the host's umask may be stricter than the box's account can read
		return err
	}
	return root.Chtimes(name, shadowTime, shadowTime)
}

// appear gives the file its mark before its name: a host that is killed in between leaves nothing that nobody would know again. Not
// every file system has files without a name.
func (sh shadow) appear(root *os.Root, name string) error {
	dir, err := root.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return errors.ErrUnsupported
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if _, err := f.WriteString(sh.text); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	at := unix.NsecToTimeval(shadowTime.UnixNano())
	if err := unix.Futimes(fd, []unix.Timeval{at, at}); err != nil {
		return err
	}
	err = unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), int(dir.Fd()), filepath.Base(name), unix.AT_SYMLINK_FOLLOW)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
		return errors.ErrUnsupported
	}
	return err
}

func (sh shadow) open() (*os.Root, string, error) {
	name, err := filepath.Rel(sh.root, sh.path)
	if err != nil {
		return nil, "", err
	}
	root, err := os.OpenRoot(sh.root)
	return root, name, err
}

func writeNew(root *os.Root, name, text string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// dropShadow removes only what is still ours: a folder only when empty, a file only when unchanged.
func dropShadow(sh shadow) {
	root, name, err := sh.open()
	if err != nil {
		return
	}
	defer root.Close()
	info, err := root.Lstat(name)
	if err != nil || (sh.dir != info.IsDir()) || (!sh.dir && !IsShadow(info)) {
		return
	}
	_ = root.Remove(name)
}
