package workspace

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"reasonix/internal/sandbox"
)

// passageBox is a box whose accounts come in through folders that let others pass, or not.
type passageBox bool

func (passageBox) Name() string { return "double" }
func (passageBox) Run(context.Context, sandbox.Policy, sandbox.Command) (sandbox.Result, error) {
	return sandbox.Result{}, nil
}
func (b passageBox) OpenFolders() bool { return bool(b) }

func TestFoldersLetAccountsPassOnlyWhereTheBoxNeedsIt(t *testing.T) {
	for box, want := range map[passageBox]os.FileMode{true: 0o711, false: 0o700} {
		root := filepath.Join(t.TempDir(), "data")
		if _, err := Open(root, Options{Box: box}); err != nil {
			t.Fatal(err)
		}
		for name, mode := range map[string]os.FileMode{".": want, "mirrors": want, "work": want, "host": 0o700, "locks": 0o700} {
			info, err := os.Stat(filepath.Join(root, name))
			if err != nil || info.Mode().Perm() != mode {
				t.Errorf("box that needs it %v: %s has mode %v, want %v (%v)", box, name, info.Mode().Perm(), mode, err)
			}
		}
	}
}
