package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
)

// shadow is a place that must exist on the host for a mount to cover it. The host makes it and takes it away again when the last
// box of the workspace has ended, so that no ghost file is left (S48).
type shadow struct {
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
	if info, err := os.Lstat(sh.path); err == nil {
		if IsShadow(info) || (sh.dir && info.IsDir()) {
			return nil
		}
		return fmt.Errorf("shadow %s: it appeared meanwhile; run the command again", sh.path)
	}
	var err error
	if sh.dir {
		err = os.Mkdir(sh.path, 0o755)
	} else {
		err = writeNew(sh.path, sh.text)
	}
	if err != nil {
		return fmt.Errorf("shadow %s: %w", sh.path, err)
	}
	return os.Chtimes(sh.path, shadowTime, shadowTime)
}

func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// dropShadow removes only what is still ours: a folder only when empty, a file only when unchanged.
func dropShadow(sh shadow) {
	if sh.dir {
		_ = os.Remove(sh.path)
		return
	}
	if info, err := os.Lstat(sh.path); err == nil && info.Mode().IsRegular() && IsShadow(info) {
		_ = os.Remove(sh.path)
	}
}
