package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheDemoFallsBackToTheReducedBoxAndSaysSo: where bubblewrap is not to be found, the same path is walked in the reduced box.
func TestTheDemoFallsBackToTheReducedBoxAndSaysSo(t *testing.T) {
	cmd := exec.Command(os.Args[0], "demo", "--check")
	cmd.Env = append(os.Environ(), asChild+"=1", "HOME="+t.TempDir(), "GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"), "PATH="+pathWithout(t, "bwrap"))
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "no reduced box either") {
		t.Skipf("no reduced box on this machine:\n%s", out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"NOTICE: the demo runs in the reduced box (bubblewrap (bwrap) was not found on PATH)", "It does not hold:", "Protected files of the workspace", "demo check: everything held"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the demo does not say %q:\n%s", want, out)
		}
	}
}

// TestAHostNeverFallsBackByItself: without bubblewrap and without a word about it in the configuration, tasks have no bash.
func TestAHostNeverFallsBackByItself(t *testing.T) {
	home := t.TempDir()
	cmd := exec.Command(os.Args[0], "doctor")
	cmd.Env = append(os.Environ(), asChild+"=1", "HOME="+home, "REASONIX_HOME="+home, "PATH="+pathWithout(t, "bwrap"))
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "FAIL  sandbox") || !strings.Contains(string(out), "allow_reduced_box = true") || strings.Contains(string(out), "landlock") {
		t.Errorf("%v\n%s", err, out)
	}
}

// pathWithout is a folder with everything that PATH offers but one program; accounts of boxes can pass it.
func pathWithout(t *testing.T, program string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "path-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, from := range filepath.SplitList(os.Getenv("PATH")) {
		entries, _ := os.ReadDir(from)
		for _, e := range entries {
			if e.Name() != program {
				_ = os.Symlink(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name())) // the first one on PATH stays
			}
		}
	}
	return dir
}
