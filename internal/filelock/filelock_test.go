package filelock

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

func TestALockIsHeldOnceAndGivenOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	unlock, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Try(path); !errors.Is(err, ErrLocked) {
		t.Fatalf("a second holder: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Take(ended, path); !errors.Is(err, context.Canceled) {
		t.Fatalf("waiting ends with its context: %v", err)
	}
	got := make(chan error, 1)
	go func() {
		next, err := Take(context.Background(), path)
		if err == nil {
			err = next()
		}
		got <- err
	}()
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatalf("the one who waited: %v", err)
	}
	if _, err := Try(filepath.Join(t.TempDir(), "no", "folder")); err == nil || errors.Is(err, ErrLocked) {
		t.Fatalf("a lock that cannot be made: %v", err)
	}
}
