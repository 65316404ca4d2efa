package workspace

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/sandbox"
)

// office is a host with an upstream repository and a store.
type office struct {
	t        *testing.T
	upstream string
	root     string
	store    *Store
	opt      Options
}

func newOffice(t *testing.T) *office {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("bubblewrap is missing: apt-get install bubblewrap")
	}
	box, _, err := sandbox.Detect(context.Background(), sandbox.Config{})
	if err != nil {
		t.Skipf("no box on this machine: %v", err)
	}
	o := &office{t: t, upstream: filepath.Join(t.TempDir(), "up"), root: filepath.Join(t.TempDir(), "state"), opt: Options{Box: box}}
	write(t, o.upstream+"/main.go", "package main\n")
	write(t, o.upstream+"/.gitignore", "*.log\n/build/\n!keep.log\n")
	write(t, o.upstream+"/forced.log", "tracked although ignored\n")
	write(t, o.upstream+"/sub/.gitignore", "tmp\n")
	write(t, o.upstream+"/sub/a.txt", "a\n")
	git(t, o.upstream, "init", "-q", "-b", "trunk")
	git(t, o.upstream, "add", "-A")
	git(t, o.upstream, "add", "-f", "forced.log")
	git(t, o.upstream, "commit", "-qm", "first")
	git(t, o.upstream, "branch", "stable")
	o.open()
	t.Cleanup(func() { _ = removeTree(o.root) })
	return o
}

func (o *office) open() {
	o.t.Helper()
	var err error
	if o.store, err = Open(o.root, o.opt); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) request(id string) Request {
	return Request{ID: id, Repo: "up", URL: o.upstream, Branch: "reasonix/" + id}
}

func (o *office) prepare(id string) *Workspace {
	o.t.Helper()
	w, err := o.store.Prepare(context.Background(), o.request(id))
	if err != nil {
		o.t.Fatal(err)
	}
	return w
}

// task runs a line in the workspace's box, as the task would.
func (o *office) task(w *Workspace, line string) string {
	o.t.Helper()
	res, err := o.opt.Box.Run(context.Background(), w.Policy(sandbox.Policy{}), sandbox.Command{Argv: []string{"/bin/bash", "-c", line}})
	if err != nil || res.ExitCode != 0 {
		o.t.Fatalf("%s: %+v %v\n%s", line, res.ExitCode, err, res.Output)
	}
	return string(res.Output)
}

func (o *office) harvest(w *Workspace) Harvest {
	o.t.Helper()
	h, err := w.Harvest(context.Background(), "Fix it")
	if err != nil {
		o.t.Fatal(err)
	}
	return h
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "safe.directory=*"}, args...)...)
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

func TestATaskGetsItsOwnClone(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	if w.BaseSHA != git(t, o.upstream, "rev-parse", "trunk") || read(t, w.Dir+"/main.go") != "package main\n" {
		t.Errorf("base %s", w.BaseSHA)
	}
	out := o.task(w, "git status --porcelain; git branch --show-current; git rev-parse origin/trunk; git log --oneline | wc -l; id -u")
	if want := "reasonix/t1\n" + w.BaseSHA + "\n1\n"; !strings.HasPrefix(out, want) {
		t.Errorf("in the box:\n%s", out)
	}
	if os.Geteuid() == 0 && strings.HasSuffix(out, "\n0\n") {
		t.Error("the box of a root host runs as root")
	}
	o.task(w, "go version >/dev/null 2>&1; echo x > $HOME/h && echo y > /tmp/t && mkdir -p $GOCACHE")
}

func TestPrepareOpensWhatIsThere(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	o.task(w, "echo mine > mine")
	write(t, o.upstream+"/later", "x")
	git(t, o.upstream, "add", "-A")
	git(t, o.upstream, "commit", "-qm", "later")
	o.open() // another process
	again := o.prepare("t1")
	if again.BaseSHA != w.BaseSHA || read(t, again.Dir+"/mine") != "mine\n" || again.Restored {
		t.Errorf("reopened at %s, restored %v", again.BaseSHA, again.Restored)
	}
	if fresh := o.prepare("t2"); fresh.BaseSHA == w.BaseSHA {
		t.Error("a new task does not see the new commit")
	}
}

func TestPrepareDiscardsWhatACrashLeft(t *testing.T) {
	o := newOffice(t)
	o.prepare("t1")
	if err := os.Remove(o.store.hostDir("t1") + "/meta.json"); err != nil { // the last step had not happened
		t.Fatal(err)
	}
	write(t, o.store.workDir("t1")+"/tree/half", "x")
	write(t, o.store.makingDir("t1")+"/tree/half", "x")
	w := o.prepare("t1")
	if _, err := os.Stat(o.store.makingDir("t1")); err == nil {
		t.Error("a clone that was cut off stays")
	}
	if _, err := os.Stat(w.Dir + "/half"); err == nil {
		t.Error("the half-made clone was kept")
	}
	if err := os.Remove(o.store.mirrorDir(w.meta.Mirror) + "/complete"); err != nil {
		t.Fatal(err)
	}
	o.prepare("t3")
}

func TestPreparePinsWhatIsAsked(t *testing.T) {
	o := newOffice(t)
	first := git(t, o.upstream, "rev-parse", "trunk")
	write(t, o.upstream+"/n", "n")
	git(t, o.upstream, "add", "-A")
	git(t, o.upstream, "commit", "-qm", "n")
	git(t, o.upstream, "update-ref", "refs/pull/7/head", git(t, o.upstream, "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "pull"))
	pull := git(t, o.upstream, "rev-parse", "refs/pull/7/head")
	for name, c := range map[string]struct{ base, sha, want string }{
		"branch": {"stable", "", first}, "sha": {"", first, first}, "pull request head": {"trunk", pull, pull},
	} {
		r := o.request(strings.ReplaceAll(name, " ", "-"))
		r.Base, r.SHA = c.base, c.sha
		w, err := o.store.Prepare(context.Background(), r)
		if err != nil || w.BaseSHA != c.want {
			t.Errorf("%s: %v %v", name, w, err)
		}
	}
}

func TestPrepareWithoutARepository(t *testing.T) {
	o := newOffice(t)
	w, err := o.store.Prepare(context.Background(), Request{ID: "empty", Branch: "work"})
	if err != nil {
		t.Fatal(err)
	}
	o.task(w, "echo hello > hello")
	h := o.harvest(w)
	if len(h.Files) != 1 || h.Files[0] != "hello" || h.Base != w.BaseSHA {
		t.Errorf("%+v", h)
	}
}

func TestPrepareRefusesBadInput(t *testing.T) {
	o := newOffice(t)
	good := o.request("ok")
	for name, c := range map[string]struct {
		change func(*Request)
		want   error
		text   string
	}{
		"no repository":    {func(r *Request) { r.URL = o.root + "/nowhere" }, ErrNoRepository, "nowhere"},
		"no such base":     {func(r *Request) { r.Base = "gone" }, ErrNoBase, "gone"},
		"no such commit":   {func(r *Request) { r.SHA = strings.Repeat("a", 40) }, ErrNoBase, "aaaa"},
		"short commit":     {func(r *Request) { r.SHA = "abc" }, nil, "abc"},
		"id with a path":   {func(r *Request) { r.ID = "../x" }, nil, "../x"},
		"option as branch": {func(r *Request) { r.Branch = "--upload-pack=x" }, nil, "branch"},
		"no branch":        {func(r *Request) { r.Branch = "" }, nil, "branch"},
		"ext transport":    {func(r *Request) { r.URL = "ext::sh -c id" }, nil, "address"},
		"option as URL":    {func(r *Request) { r.URL = "--upload-pack=x" }, nil, "address"},
		"password in URL":  {func(r *Request) { r.URL = "http://user:hunter2@127.0.0.1:1/x.git" }, ErrNoRepository, "127.0.0.1"},
	} {
		r := good
		c.change(&r)
		_, err := o.store.Prepare(context.Background(), r)
		if err == nil || (c.want != nil && !errors.Is(err, c.want)) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := o.store.List(context.Background()); err != nil || len(list) != 0 {
		t.Errorf("left behind: %v %v", list, err)
	}
	if _, err := Open("relative", Options{}); err == nil {
		t.Error("a relative root was taken")
	}
}

func TestListAndRemove(t *testing.T) {
	o := newOffice(t)
	o.prepare("b")
	w := o.prepare("a")
	o.task(w, "mkdir -p ro/deep && touch ro/deep/f && chmod -R 500 ro && chmod 000 ro/deep")
	list, err := o.store.List(context.Background())
	if err != nil || len(list) != 2 || list[0].ID != "a" || list[0].Branch != "reasonix/a" {
		t.Fatalf("%+v %v", list, err)
	}
	for range 2 {
		if err := o.store.Remove(context.Background(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Dir(w.Dir)); err == nil {
		t.Error("the folder is still there")
	}
	if err := o.store.Remove(context.Background(), "../mirrors"); !errors.Is(err, ErrUnknown) {
		t.Errorf("path as id: %v", err)
	}
}
