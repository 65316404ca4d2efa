//go:build unix

package workspace

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A host that is an ordinary user tells some of the stories again, and a root host with a strict umask others.
func TestStoriesAgainAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this run is one of an ordinary user already")
	}
	newOffice(t)
	const uid = 60501
	dir, err := os.MkdirTemp("", "ordinary-")
	if err != nil {
		t.Fatal(err)
	}
	defer removeTree(dir)
	program := filepath.Join(dir, "again")
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Skip("no /proc on this system")
	}
	defer self.Close()
	out, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, self); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run", "TestATaskGets|TestHarvestHolds|TestSnapshotBrings|TestListAndRemove|TestStateChanges|TestParallel|TestSnapshotsAreSmall|TestAStoreThat|TestAnExport|TestSetupRunsOnceForAll|TestInfoExclude|TestTheSizeOfOddTrees|TestObjectsOfATask", "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	text, err := cmd.CombinedOutput()
	if strings.Contains(string(text), "no box on this machine") {
		t.Skip("an ordinary user has no box here: user namespaces are refused")
	}
	if err != nil || !strings.Contains(string(text), "--- PASS: TestHarvestHolds") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestAStrictUmaskDoesNotShutTheBoxOut(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	o := newOffice(t)
	w := o.prepare("t1")
	o.task(w, "git log --oneline && git status && echo x > x && git add x && git commit -qm x")
	if len(o.harvest(w).Files) != 1 {
		t.Error("harvest")
	}
}
