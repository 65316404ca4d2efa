package sandbox

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// room is one task's surroundings: a workspace with a repository, its own folders, and a place outside with a marker.
type room struct {
	t       *testing.T
	box     Box
	policy  Policy
	outside string

	id       string   // of this room alone
	main     string   // of a worktree
	tcp, udp net.Addr // that the host serves, after serve
	shown    int      // attempts that worked because of a gap of the reduced box
}

// foundBox is looked for once: a test that is about the looking calls Detect itself.
var foundBox = sync.OnceValues(func() (Box, error) {
	box, _, err := Detect(context.Background(), Config{})
	return box, err
})

func newBox(t testing.TB) Box {
	t.Helper()
	if reducedTest(t) {
		return newReducedBox(t)
	}
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("bubblewrap is missing: apt-get install bubblewrap")
	}
	box, err := foundBox()
	if err != nil {
		t.Skipf("no box on this machine: %v", err)
	}
	return box
}

func newRoom(t *testing.T) *room {
	t.Helper()
	r := &room{t: t, box: newBox(t), id: callID()}
	top := t.TempDir()
	// As on a real host: the folders above a workspace belong to the host alone.
	dirs := map[string]string{}
	for _, name := range []string{"W", "home", "temp", "caches", "outside"} {
		dirs[name] = filepath.Join(top, "state", name)
		if err := os.MkdirAll(dirs[name], 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(top, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.outside = dirs["outside"]
	write(t, filepath.Join(r.outside, "marker"), "untouched")
	r.policy = Policy{Workspace: dirs["W"], Home: dirs["home"], Temp: dirs["temp"], Caches: []string{dirs["caches"]},
		Env: BoxEnv(os.LookupEnv, dirs["home"], "/tmp", dirs["caches"]), Limits: Limits{Wall: 20 * time.Second}}
	r.own()
	t.Cleanup(r.check)
	t.Cleanup(r.checkGap)
	return r
}

// own hands the task's folders to its account, as the workspace store does.
func (r *room) own() {
	uid, gid, ok := r.box.(Accounts).Account(r.t.Name())
	if !ok {
		return
	}
	for _, dir := range append([]string{r.policy.Workspace, r.policy.Home, r.policy.Temp}, r.policy.Caches...) {
		err := filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(p, uid, gid)
		})
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// check holds after every story: the marker is untouched and no shadow of a protected file is left.
func (r *room) check() {
	if got := read(r.t, filepath.Join(r.outside, "marker")); got != "untouched" {
		r.t.Errorf("the marker outside was changed to %q", got)
	}
	_ = filepath.WalkDir(r.policy.Workspace, func(p string, d os.DirEntry, err error) error {
		if err == nil {
			if info, err := d.Info(); err == nil && IsShadow(info) {
				r.t.Errorf("ghost left behind: %s", p)
			}
		}
		return nil
	})
}

func (r *room) bash(line string) Result {
	r.t.Helper()
	res, err := r.box.Run(context.Background(), r.policy, Command{Argv: []string{"/bin/bash", "-c", line}, Env: r.targets()})
	if err != nil {
		r.t.Fatalf("%s: %v", line, err)
	}
	return res
}

// must runs a line that has to work.
func (r *room) must(line string) string {
	r.t.Helper()
	res := r.bash(line)
	if res.ExitCode != 0 {
		r.t.Fatalf("%s: exit %d\n%s", line, res.ExitCode, res.Output)
	}
	return string(res.Output)
}

// refused runs a line that must fail.
func (r *room) refused(line string) string {
	r.t.Helper()
	if r.gap() == "protected-files" {
		before, err := remember(r.policy.Workspace)
		if err != nil {
			r.t.Fatal(err)
		}
		defer func() { r.sameProtected(line, before) }()
	}
	res := r.bash(line)
	switch {
	case res.TimedOut:
		r.t.Errorf("%s: it hung\n%s", line, res.Output)
	case res.ExitCode == 0 && r.gap() != "":
		r.shown++
	case res.ExitCode == 0:
		r.t.Errorf("%s: it worked\n%s", line, res.Output)
	}
	return string(res.Output)
}

// repository makes the workspace a git repository with one commit, on the host.
func (r *room) repository() {
	r.t.Helper()
	write(r.t, filepath.Join(r.policy.Workspace, "README"), "hello\n")
	git(r.t, r.policy.Workspace, "init", "-q", "-b", "main")
	git(r.t, r.policy.Workspace, "add", "-A")
	git(r.t, r.policy.Workspace, "commit", "-q", "-m", "first")
	r.own()
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "safe.directory=*", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=h", "GIT_AUTHOR_EMAIL=h@example.invalid",
		"GIT_COMMITTER_NAME=h", "GIT_COMMITTER_EMAIL=h@example.invalid")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestBoxRunsACommandInTheWorkspace(t *testing.T) {
	r := newRoom(t)
	out := r.must("echo hello > a && cat a && pwd && id -un && echo err >&2 && touch $HOME/x /tmp/y $GOCACHE.z")
	for _, want := range []string{"hello", r.policy.Workspace, "err"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	if read(t, filepath.Join(r.policy.Workspace, "a")) != "hello\n" || read(t, filepath.Join(r.policy.Temp, "y")) != "" {
		t.Error("files are not where the host expects them")
	}
	if res := r.bash("exit 7"); res.ExitCode != 7 {
		t.Errorf("exit code %d, want 7", res.ExitCode)
	}
	if res := r.bash("kill -SEGV $$"); res.ExitCode != 139 {
		t.Errorf("exit code %d, want 139", res.ExitCode)
	}
}

func TestBoxOfAPlanIsReadOnly(t *testing.T) {
	r := newRoom(t)
	r.repository()
	r.policy.ReadOnly = true
	r.policy.Writable = []string{filepath.Join(r.policy.Workspace, "README")}
	r.refused("echo x > new")
	r.refused("echo x > README")
	r.refused("touch .git/x")
	r.must("cat README && git status && touch $TMPDIR/scratch")
}

func TestToolchainsWorkInTheBox(t *testing.T) {
	r := newRoom(t)
	write(t, filepath.Join(r.policy.Workspace, "go.mod"), "module m\n\ngo 1.21\n")
	write(t, filepath.Join(r.policy.Workspace, "m_test.go"), "package m\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Log(1) }\n")
	r.own()
	user := "require(\"os\").userInfo().username"
	if r.reduced() {
		user = "1" // an account of its own has no name where the host's list of accounts cannot be replaced
	}
	for program, line := range map[string]string{
		"go": "go test ./...", "node": "node -e 'require(\"child_process\").execSync(\"true\"); setTimeout(()=>console.log(" + user + "), 5)'",
		"python3": "/usr/bin/python3 -c 'import subprocess, threading, tempfile; subprocess.run([\"true\"], check=True); t=threading.Thread(target=print); t.start(); t.join()'",
		"gcc":     "echo 'int main(){return 0;}' > $TMPDIR/m.c && gcc -o $TMPDIR/m $TMPDIR/m.c && $TMPDIR/m",
	} {
		if _, err := exec.LookPath(program); err != nil {
			t.Logf("%s is missing: not tried", program)
			continue
		}
		r.policy.Limits.Wall = 2 * time.Minute
		r.must(line)
	}
}

func TestToolchainsTakeGoModulesFromTheHostsCache(t *testing.T) {
	r := newRoom(t)
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Skip("go is missing: install it from go.dev")
	}
	extra := GoModules(strings.TrimSpace(string(out)))
	if _, err := os.Stat(extra.Readable[0]); err != nil {
		t.Skip("the host has no module cache: run go mod download")
	}
	version, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "golang.org/x/sync").Output()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(r.policy.Workspace, "go.mod"), "module m\n\ngo 1.26.0\n\nrequire golang.org/x/sync "+string(version))
	sums := ""
	for _, line := range strings.SplitAfter(read(t, "../../go.sum"), "\n") {
		if strings.HasPrefix(line, "golang.org/x/sync "+strings.TrimSpace(string(version))) {
			sums += line
		}
	}
	write(t, filepath.Join(r.policy.Workspace, "go.sum"), sums)
	write(t, filepath.Join(r.policy.Workspace, "m.go"), "package m\n\nimport _ \"golang.org/x/sync/errgroup\"\n")
	r.own()
	r.policy.Limits.Wall = 3 * time.Minute
	r.policy.Readable = extra.Readable
	r.policy.Env = append(r.policy.Env, extra.Env...)
	r.must("go mod download && go list -deps . | grep -q x/sync/errgroup") // no build: the cache is empty
	r.refused("touch " + extra.Readable[0] + "/x")
}
