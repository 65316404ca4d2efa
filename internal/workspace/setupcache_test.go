package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/sandbox"
)

// cachingOffice keeps what setup makes, up to so many bytes.
func cachingOffice(t *testing.T, bytes int64) *office {
	o := newOffice(t)
	if !stamps {
		t.Skip("no change times on this system, so no cache")
	}
	o.opt.SetupCache = bytes
	o.open()
	return o
}

// setup prepares a workspace and sets it up; it tells whether the commands ran.
func (o *office) setup(r Request, commands ...string) (*Workspace, bool) {
	o.t.Helper()
	w, err := o.store.Prepare(context.Background(), r)
	if err != nil {
		o.t.Fatal(err)
	}
	if err := w.Setup(context.Background(), commands, sandbox.Policy{}, nil); err != nil {
		o.t.Fatal(err)
	}
	return w, !w.SetupCached
}

func (o *office) commit(path, text string) string {
	o.t.Helper()
	write(o.t, filepath.Join(o.upstream, path), text)
	git(o.t, o.upstream, "add", "-A")
	git(o.t, o.upstream, "commit", "-qm", path)
	return git(o.t, o.upstream, "rev-parse", "HEAD")
}

const install = `mkdir -p build/deep $HOME/.conf && echo tool > build/deep/tool && chmod 755 build/deep/tool && ln -s tool build/deep/link &&
echo c > $HOME/.conf/c && mkdir -p "$XDG_CACHE_HOME" && echo more >> main.go && rm sub/a.txt && mkfifo build/pipe && date +%N > build/when`

func TestSetupRunsOnceForAllTasksThatStartFromTheSame(t *testing.T) {
	o := cachingOffice(t, 1<<30)
	first, ran := o.setup(o.request("t1"), install)
	if !ran {
		t.Fatal("taken from an empty cache")
	}
	// What a task makes of its own copy reaches nobody else.
	o.task(first, "echo evil > build/deep/tool; echo evil > $HOME/.conf/c; ! ls "+filepath.Join(o.root, "setups"))
	second, ran := o.setup(o.request("t2"), install)
	if ran {
		t.Error("ran again")
	}
	if a, b := read(t, first.Dir+"/build/when"), read(t, second.Dir+"/build/when"); a != b {
		t.Errorf("made at %s and %s", a, b)
	}
	out := o.task(second, `build/deep/link 2>&1; cat build/deep/tool $HOME/.conf/c main.go; ls sub; echo mine > build/deep/tool; echo x > $HOME/.conf/c; ls -l build/deep; git status --porcelain`)
	for _, want := range []string{"tool\nc\npackage main\nmore\n", "rwxr-xr-x", "link -> tool", " M main.go\n D sub/a.txt\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if o.state(first).Hash != o.state(second).Hash {
		t.Error("two tasks that start from the same stand at different states")
	}
	third, _ := o.setup(o.request("t3"), install)
	if read(t, third.Dir+"/build/deep/tool") != "tool\n" {
		t.Error("a task changed what others get")
	}
}

func TestTheSetupCacheKnowsWhatItDependsOn(t *testing.T) {
	o := cachingOffice(t, 1<<30)
	o.commit("lock", "1\n")
	o.setup(o.request("t1"), "mkdir build")
	if _, ran := o.setup(o.request("t2"), "mkdir -p build"); !ran {
		t.Error("other commands")
	}
	o.commit("code", "x\n")
	if _, ran := o.setup(o.request("t3"), "mkdir build"); !ran {
		t.Error("another base")
	}
	narrow := func(id string) Request {
		r := o.request(id)
		r.SetupFiles = []string{"lock", "missing"}
		return r
	}
	pinned := narrow("p1")
	pinned.SHA = o.commit("code", "a stranger's\n")
	if _, ran := o.setup(pinned, "mkdir build"); !ran {
		t.Error("files as the key: taken from nowhere")
	}
	if _, ran := o.setup(narrow("n1"), "mkdir build"); !ran {
		t.Error("a commit that somebody named filled the cache of the base")
	}
	o.commit("code", "y\n")
	if _, ran := o.setup(narrow("n2"), "mkdir build"); ran {
		t.Error("the same files, and it ran again")
	}
	pinned.ID, pinned.Branch = "p2", "reasonix/p2"
	if _, ran := o.setup(pinned, "mkdir build"); ran {
		t.Error("a pinned commit with the same files may read")
	}
	o.commit("lock", "2\n")
	if _, ran := o.setup(narrow("n3"), "mkdir build"); !ran {
		t.Error("another lock file")
	}
	w := o.prepare("n4")
	net, _, err := w.setupFile(context.Background(), nil, sandbox.Policy{Network: &sandbox.Network{}})
	if err != nil {
		t.Fatal(err)
	}
	if plain, _, err := w.setupFile(context.Background(), nil, sandbox.Policy{}); err != nil || plain == net {
		t.Errorf("the network is no part of the key: %v", err)
	}
}

func TestASetupCacheThatFailsCostsOnlyTime(t *testing.T) {
	o := cachingOffice(t, 1<<30)
	var warned []string
	o.opt.Warn = func(err error) { warned = append(warned, err.Error()) }
	o.open()
	o.setup(o.request("t1"), "mkdir -p build; echo x > build/x")
	files, err := filepath.Glob(filepath.Join(o.root, "setups", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	if err := os.Truncate(files[0], 700); err != nil {
		t.Fatal(err)
	}
	w, ran := o.setup(o.request("t2"), "mkdir -p build; echo x > build/x")
	if !ran || read(t, w.Dir+"/build/x") != "x\n" || len(warned) != 1 {
		t.Errorf("ran %v, warned %v", ran, warned)
	}
	o.opt.SetupCache = 1000
	o.open()
	if _, ran := o.setup(o.request("t3"), "mkdir -p build; head -c 2000 /dev/zero > build/big"); !ran || len(warned) != 2 || !strings.Contains(warned[1], "larger than the cache") {
		t.Errorf("ran %v, warned %v", ran, warned)
	}
	if left, err := os.ReadDir(filepath.Join(o.root, "setups")); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

func TestAWorkspaceThatATaskWorkedInFillsNoCache(t *testing.T) {
	o := cachingOffice(t, 1<<30)
	w := o.prepare("t1")
	o.task(w, "mkdir build; echo evil > build/x")
	o.open()
	again, ran := o.setup(o.request("t1"), "mkdir -p build") // a later attempt sets up what the first one did not
	if !ran || again.Fresh {
		t.Error("not as it was set up for this test")
	}
	if _, ran := o.setup(o.request("t2"), "mkdir -p build"); !ran {
		t.Error("what a task left was kept for others")
	}
}
