package sandbox

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The attempts are made again by a host that is an ordinary user.
func TestAttemptsAgainAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this run is one of an ordinary user already")
	}
	newBox(t)
	again(t, "^(TestBox|TestAttempt|TestInvariant|TestGit|TestControls)", "no box on this machine", "--- PASS: TestAttemptS17")
}

func TestReducedAttemptsAgainAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this run is one of an ordinary user already")
	}
	newReducedBox(t)
	again(t, "Reduced", "no reduced box on this machine", "--- PASS: TestReducedAttempts/S17")
}

// again runs tests of this program as an ordinary user; made is a line that shows that they ran.
func again(t *testing.T, pattern, missing, made string) {
	t.Helper()
	const uid = 60500
	dir, err := os.MkdirTemp("", "o-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	copyProgram(t, filepath.Join(dir, "again"))
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "again"), "-test.run", pattern, "-test.v", "-test.skip", "/Toolchains")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, failuresOf(string(out)))
	}
	if strings.Contains(string(out), missing) {
		t.Skip("an ordinary user has no box here: user namespaces are refused")
	}
	if !strings.Contains(string(out), made) {
		t.Error("the attempts were not made")
	}
}

func copyProgram(t *testing.T, to string) {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, self); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// failuresOf leaves out what passed.
func failuresOf(out string) string {
	var keep []string
	for _, line := range strings.Split(out, "\n") {
		if !strings.Contains(line, "=== ") && !strings.Contains(line, "--- PASS") {
			keep = append(keep, line)
		}
	}
	return strings.Join(keep, "\n")
}
