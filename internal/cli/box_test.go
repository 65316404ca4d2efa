package cli

import (
	"context"
	"strings"
	"testing"

	"reasonix/internal/config"
	"reasonix/internal/sandbox"
)

// On Windows the mode is always off: that is reported, `reasonix run` works, and tasks get no shell from it.
func TestABoxThatConfinesNothingIsNoneForTasks(t *testing.T) {
	off, rep, err := sandbox.Detect(context.Background(), sandbox.Config{Bash: "off"})
	if err != nil {
		t.Fatal(err)
	}
	if taskBox(off) != nil || taskBox(nil) != nil {
		t.Error("a task would run unconfined")
	}
	rep.Warnings = []string{"Windows has no sandbox for commands: bash = \"enforce\" is ignored and commands run unconfined"}
	if words := boxWords(off, rep, config.Defaults()); !strings.Contains(words, "bot tasks have no bash") || !strings.Contains(words, "bash = \"enforce\" is ignored") {
		t.Errorf("doctor says %q", words)
	}
}
