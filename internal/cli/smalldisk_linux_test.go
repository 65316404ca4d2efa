package cli_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// smallDisk puts a folder on a file system of 64 MiB; false where that is not allowed.
func smallDisk(t *testing.T, dir string) bool {
	t.Helper()
	if syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m,mode=0755") != nil {
		return false
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return true
}

// fill writes until nothing more fits.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			return err
		}
	}
	return nil
}
