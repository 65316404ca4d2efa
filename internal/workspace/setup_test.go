package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/sandbox"
)

func TestSetupRunsOnceInTheBox(t *testing.T) {
	ctx := context.Background()
	o := newOffice(t)
	w := o.prepare("t1")
	count := func() int { return strings.Count(read(t, w.Home+"/ran"), "\n") }
	commands := []string{"echo ran >> $HOME/ran", "mkdir -p build && echo built > build/x"}
	for range 2 {
		if err := w.Setup(ctx, commands, sandbox.Policy{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if count() != 1 || read(t, w.Dir+"/build/x") != "built\n" {
		t.Errorf("ran %d times", count())
	}
	err := w.Setup(ctx, append(commands, "echo no such thing >&2; exit 3"), sandbox.Policy{}, nil)
	if !errors.Is(err, ErrSetup) || !strings.Contains(err.Error(), "ended with 3: no such thing") {
		t.Errorf("failing command: %v", err)
	}
	if err := w.Setup(ctx, commands, sandbox.Policy{}, nil); err != nil || count() != 3 {
		t.Errorf("after a failure: %v, ran %d times", err, count())
	}
	if err := removeTree(o.store.workDir("t1")); err != nil {
		t.Fatal(err)
	}
	w = o.prepare("t1")
	if err := w.Setup(ctx, commands, sandbox.Policy{}, nil); err != nil || count() != 1 {
		t.Errorf("after a rebuild: %v, ran %d times", err, count())
	}
	_ = w.Setup(ctx, []string{"touch " + filepath.Join(o.root, "x")}, sandbox.Policy{}, nil)
	if _, err := os.Stat(filepath.Join(o.root, "x")); err == nil {
		t.Error("setup wrote outside its box")
	}
}
