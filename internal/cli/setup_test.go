package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSetupKeepsTheStateInItsHome: a second home touches nothing of the first one.
func TestSetupKeepsTheStateInItsHome(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "other")
	setup := exec.Command(self, "setup")
	setup.Env = []string{asChild + "=1", "HOME=" + t.TempDir(), "REASONIX_HOME=" + home}
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(home, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "sqlite:"+home+"/bot/state.db") || strings.Contains(string(text), "~/.reasonix/bot") {
		t.Errorf("the state is elsewhere:\n%s", text)
	}
}
