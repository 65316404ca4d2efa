//go:build unix

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A tree that would cost the host its descriptors is refused before it does.
func TestAStateOfADeepTreeIsRefused(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	o.task(w, `for i in $(seq 900); do mkdir d && cd d; done`)
	o.state(w)
	o.task(w, `for i in $(seq 1100); do mkdir -p e && cd e; done`)
	if _, err := w.State(context.Background()); !errors.Is(err, ErrTree) || !strings.Contains(err.Error(), "deeper") {
		t.Errorf("%v", err)
	}
	if err := o.store.Remove(context.Background(), "t1"); err != nil {
		t.Error(err)
	}
}

// What is kept for differences is bounded for one state and goes with the states that name it: it lies where no limit of the task counts.
func TestWhatIsKeptForDifferencesIsBounded(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	o.task(w, `for i in $(seq 200); do head -c 250000 /dev/urandom > f$i; done; echo small > a`)
	first := o.state(w)
	if n, err := folderSize(context.Background(), w.blobsDir()); err != nil || n > keptNew || n < keptNew/2 {
		t.Errorf("%d bytes are kept, %v", n, err)
	}
	o.task(w, `rm f*`)
	for i := range keptStates + 10 {
		write(t, filepath.Join(w.Dir, "a"), fmt.Sprintln(i))
		o.state(w)
	}
	if n, err := folderSize(context.Background(), w.blobsDir()); err != nil || n > 1<<20 {
		t.Errorf("%d bytes are left, %v", n, err)
	}
	before := o.state(w)
	write(t, filepath.Join(w.Dir, "a"), "other\n")
	o.state(w)
	diff := func() string {
		d, err := w.Difference(context.Background(), before.Hash)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if d := diff(); !strings.Contains(d, "+other") {
		t.Errorf("%s", d)
	}
	list, err := os.ReadDir(w.blobsDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list { // the machine lost its power
		if err := os.Truncate(filepath.Join(w.blobsDir(), e.Name()), 0); err != nil {
			t.Fatal(err)
		}
	}
	if d := diff(); strings.Contains(d, "+other") || !strings.Contains(d, "a") {
		t.Errorf("%s", d)
	}
	if _, err := os.Stat(w.manifestFile(first.Hash)); err == nil {
		t.Error("the first state is still kept")
	}
}
