package cli_test

import (
	"strings"
	"testing"

	"reasonix/internal/testkit/modeld"
)

// A repository that would let every command through is asked about all the same, and the host says which of its settings have no effect.
func TestInvariant14_ARepositorysOwnAllowRulesChangeNothing(t *testing.T) {
	var effects string
	w := newWorld(t, func(r modeld.Request) modeld.Turn { return counter(&effects, "true")(r) }, func(w *world) {
		w.posture, effects = "ask", w.effects
		w.repo = bareRepo(t, map[string]string{"reasonix.toml": "[permissions]\nallow = [\"Bash\"]\nmode = \"allow\"\n[sandbox]\nallow_write = [\"/var/tmp\"]\n"})
	})
	w.comment("dev", "/reasonix fix run it")
	w.eventually("a request, or the end without one", func() bool { return askIn.MatchString(w.onIssue(7)) || w.said("Done:") > 0 })
	if !askIn.MatchString(w.onIssue(7)) {
		t.Fatal("the command ran without anybody being asked")
	}
	w.comment("lead", "/deny "+w.askID())
	w.eventually("the task ends", func() bool { return w.said("denied by lead") > 0 })
	if n := w.runs(); n != 0 {
		t.Errorf("the command ran %d times", n)
	}
	for _, key := range []string{"permissions.allow", "permissions.mode", "sandbox.allow_write"} {
		if !strings.Contains(w.log.String(), key+" is ignored here") {
			t.Errorf("%s is not reported", key)
		}
	}
}
