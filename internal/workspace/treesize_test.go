//go:build unix

package workspace

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Twelve small trees that stand for a billion files, in a commit that a later one takes back; and the same of folders alone.
func TestTreesThatUnfoldAreNotRead(t *testing.T) {
	for name, first := range map[string]string{
		"files":   `blob=$(echo x | git hash-object -w --stdin); e=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf "100644 blob $blob\tf$i\n"; done | git mktree)`,
		"folders": `e=$(git mktree </dev/null)`,
	} {
		o := newOffice(t)
		w := o.prepare("t1")
		o.task(w, first+`; for l in 1 2 3 4 5 6 7 8; do e=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf "040000 tree $e\td$i\n"; done | git mktree); done
c=$(git commit-tree $e -p HEAD -m bomb); git update-ref refs/heads/reasonix/t1 $(git commit-tree HEAD^{tree} -p $c -m good); echo a > a`)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if _, err := w.Snapshot(ctx); !errors.Is(err, ErrTooMuch) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := w.Harvest(ctx, "x"); !errors.Is(err, ErrTooMuch) || !strings.Contains(err.Error(), "files and folders") {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		if packs, _ := filepath.Glob(o.store.hostGit("t1") + "/objects/pack/*.pack"); len(packs) > 0 {
			t.Errorf("%s: what was refused piles up: %v", name, packs)
		}
	}
}
