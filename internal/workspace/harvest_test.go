package workspace

import (
	"context"
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reasonix/internal/sandbox"
)

func TestHarvestHoldsCommitsAndWhatIsNotCommitted(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	if h := o.harvest(w); !h.Empty() {
		t.Errorf("nothing was done, harvested %+v", h)
	}
	o.task(w, "echo b > b && git add b && git commit -qm b && echo staged > s && git add s && echo more >> main.go && rm sub/a.txt && echo n > 'new ü' && echo skip > x.log && git status --porcelain > /tmp/before")
	h := o.harvest(w)
	if want := "b main.go new ü s sub/a.txt"; strings.Join(h.Files, " ") != want {
		t.Errorf("files %q, want %q", h.Files, want)
	}
	if !strings.Contains(h.Diff, "+more") || h.Truncated {
		t.Errorf("diff:\n%s", h.Diff)
	}
	if got := git(t, h.GitDir, "log", "--format=%s", h.Base+".."+h.Head); got != "Fix it\nb" {
		t.Errorf("commits: %q", got)
	}
	o.task(w, "git status --porcelain | diff - /tmp/before && test \"$(git log --format=%s -1)\" = b && ! git rev-parse -q --verify refs/reasonix/out && ls /tmp/bundle* /tmp/pack* 2>/dev/null | wc -l | grep -qx 0")
	if again := o.harvest(w); len(again.Files) != len(h.Files) {
		t.Errorf("second harvest: %+v", again)
	}
	if objects := git(t, o.store.mirrorDir(w.meta.Mirror), "cat-file", "--batch-all-objects", "--batch-check"); strings.Contains(objects, h.Head) {
		t.Error("the mirror holds an object of the task")
	}
}

func TestHarvestOfOddHistories(t *testing.T) {
	for name, line := range map[string]string{
		"back before the base": "git update-ref -d HEAD && echo x > x",
		"orphan":               "git checkout -q --orphan other && git commit -qm orphan && echo x > x",
		"detached":             "git checkout -q --detach && echo x > x && git add x && git commit -qm x",
		"merge conflict":       "git checkout -q -b o && echo o > main.go && git commit -qam o && git checkout -q reasonix/t1 && echo p > main.go && git commit -qam p && ! git merge -q o && echo x > x",
		"own configuration":    "git config --global core.excludesFile /dev/null; git config --global user.name Evil; git config --global core.hooksPath /tmp; echo x > x",
		"index lock":           "touch .git/index.lock; echo x > x",
		"broken index":         "echo junk > .git/index; echo x > x",
		"hidden from git":      "git update-index --assume-unchanged main.go; git update-index --skip-worktree sub/a.txt; echo h >> main.go; echo h >> sub/a.txt; echo x > x; test -z \"$(git status --porcelain -uno)\"",
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			w := o.prepare("t1")
			o.task(w, line)
			h := o.harvest(w)
			if !strings.Contains(" "+strings.Join(h.Files, " ")+" ", " x ") {
				t.Errorf("files %q", h.Files)
			}
			if name == "hidden from git" && len(h.Files) != 3 {
				t.Errorf("hidden files are missing: %q", h.Files)
			}
		})
	}
}

func TestHarvestRefusesWhatTheRouteMayNotPublish(t *testing.T) {
	secret := "tok" + "en-hunter2-hunter2"
	for name, c := range map[string]struct {
		line  string
		rules Rules
		want  string
	}{
		"protected path":          {"mkdir -p .github/workflows && echo x > .github/workflows/a.yml", Rules{Protect: []string{".github/workflows/**"}}, ".github/workflows/a.yml"},
		"other case":              {"mkdir -p .GitHub/Workflows && echo x > .GitHub/Workflows/a.yml", Rules{Protect: []string{".github/workflows/**"}}, "a.yml"},
		"protected, then removed": {"mkdir p && echo x > p/a && git add -A && git commit -qm 1 && git rm -q p/a && git commit -qm 2", Rules{Protect: []string{"p/**"}}, "p/a"},
		"agent configuration":     {"mkdir -p REASONIX.TOML && echo x > REASONIX.TOML/a", Rules{}, "REASONIX.TOML"},
		"binary":                  {"printf 'a\\0b' > bin", Rules{}, `"bin" is binary`},
		"large":                   {"yes | head -c 2000 > big", Rules{MaxFileBytes: 1000}, `"big" has 2000 bytes`},
		"many":                    {"touch 1 2 3 4; for i in 1 2 3 4; do echo $i > $i; done", Rules{MaxFiles: 3}, "4 files"},
		"submodule":               {"git init -q inner && git -C inner commit -q --allow-empty -m i", Rules{}, "submodule"},
		"secret":                  {"echo " + secret + " > s", Rules{}, "secrets found"},
		"secret, then removed":    {"echo " + secret + " > s && git add -A && git commit -qm 1 && git rm -q s && git commit -qm 2 && echo y > y", Rules{}, "secrets found"},
		"secret in a message":     {"git commit -q --allow-empty -m " + secret + " && echo y > y", Rules{}, "secrets found"},
		"secret, marked binary":   {"echo " + secret + " > s && echo 's -diff' > .gitattributes", Rules{AllowBinary: true}, "secrets found"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.opt.Scan = func(diff string) []string {
				if strings.Contains(diff, secret) {
					return []string{"a token"}
				}
				return nil
			}
			o.open()
			r := o.request("t1")
			r.Rules = c.rules
			w, err := o.store.Prepare(context.Background(), r)
			if err != nil {
				t.Fatal(err)
			}
			o.task(w, c.line)
			_, err = w.Harvest(context.Background(), "m")
			if !errors.Is(err, ErrPolicy) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestHarvestNeedsABox(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	for _, bash := range []string{"", "off"} {
		o.store.opt.Box = nil
		if bash == "off" {
			o.store.opt.Box, _, _ = sandbox.Detect(context.Background(), sandbox.Config{Bash: "off"})
		}
		if _, err := w.Harvest(context.Background(), "m"); !errors.Is(err, ErrNoBox) {
			t.Errorf("harvest: %v", err)
		}
		if _, err := w.Snapshot(context.Background()); !errors.Is(err, ErrNoBox) {
			t.Errorf("snapshot: %v", err)
		}
	}
}

// A task that plants things in its clone's git folder does not reach the host.
func TestTheHostNeverRunsGitInTheClone(t *testing.T) {
	o := newOffice(t)
	w := o.prepare("t1")
	evil := filepath.Join(o.root, "evil")
	o.task(w, "echo '*.go filter=x diff=x' > .gitattributes; git config --global filter.x.clean 'touch "+evil+"'; git config --global diff.x.command 'touch "+evil+"'; "+
		"git config --global core.fsmonitor 'touch "+evil+"'; echo x >> main.go; rm -f .git/refs/heads/foo; ln -s /etc/passwd .git/refs/heads/foo; mkfifo .git/refs/heads/pipe; true")
	_, _ = w.State(context.Background())
	o.harvest(w)
	if _, err := os.Stat(evil); err == nil {
		t.Error("the host ran what the task planted")
	}
}

func TestPushIsRepeatableAndNeverOverwritesOthers(t *testing.T) {
	ctx := context.Background()
	o := newOffice(t)
	w := o.prepare("t1")
	o.task(w, "echo a > a")
	h := o.harvest(w)
	for range 2 {
		if err := w.Push(ctx, h, o.upstream, "fix", nil); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := w.RemoteHead(ctx, o.upstream, "fix", nil); err != nil || got != h.Head {
		t.Errorf("remote stands at %s, %v", got, err)
	}
	o.task(w, "echo b > b")
	h2 := o.harvest(w) // other commit on the same base: ours may be replaced
	if err := w.Push(ctx, h2, o.upstream, "fix", nil); err != nil {
		t.Fatal(err)
	}
	foreign := git(t, o.upstream, "commit-tree", "HEAD^{tree}", "-p", h2.Head, "-m", "by a person")
	git(t, o.upstream, "update-ref", "refs/heads/fix", foreign)
	o.task(w, "echo c > c")
	if err := w.Push(ctx, o.harvest(w), o.upstream, "fix", nil); !errors.Is(err, ErrMoved) {
		t.Errorf("push over a person's commit: %v", err)
	}
	if git(t, o.upstream, "rev-parse", "fix") != foreign {
		t.Error("a person's commit was overwritten")
	}
	for _, branch := range []string{"", "-x", "a..b", "refs/../x"} {
		if err := w.Push(ctx, h, o.upstream, branch, nil); err == nil {
			t.Errorf("branch %q was pushed", branch)
		}
	}
	if err := w.Push(ctx, Harvest{Base: h.Base, Head: h.Base}, o.upstream, "x", nil); err == nil {
		t.Error("an empty harvest was pushed")
	}
}

// gitServer speaks git's smart protocol behind a password.
func gitServer(t *testing.T, dir, user, secret string) string {
	t.Helper()
	backend, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(strings.TrimSpace(string(backend)), "git-http-backend")
	if _, err := os.Stat(program); err != nil {
		t.Skip("git-http-backend is missing: apt-get install git")
	}
	h := &cgi.Handler{Path: program, Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=x", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, p, ok := r.BasicAuth()
		if !ok || u != user || p != secret {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestInvariant12_CredentialsStayWithTheHost(t *testing.T) {
	ctx := context.Background()
	o := newOffice(t)
	bare := filepath.Join(t.TempDir(), "srv", "up.git")
	git(t, o.upstream, "clone", "-q", "--bare", o.upstream, bare)
	git(t, bare, "config", "http.receivepack", "true")
	const secret = "s3cr3t-hunter2"
	url := gitServer(t, filepath.Dir(bare), "bot", secret) + "/up.git"
	asked := 0
	cred := func(context.Context) (string, string, error) { asked++; return "bot", secret, nil }
	r := o.request("t1")
	r.URL, r.Credential = url, cred
	w, err := o.store.Prepare(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	o.task(w, "echo a > a")
	h := o.harvest(w)
	if err := w.Push(ctx, h, url, "fix", cred); err != nil {
		t.Fatal(err)
	}
	if git(t, bare, "rev-parse", "fix") != h.Head || asked == 0 {
		t.Errorf("pushed %s, asked %d times", h.Head, asked)
	}
	if out, err := exec.Command("grep", "-rl", secret, o.root).Output(); err == nil {
		t.Errorf("the secret is on disk: %s", out)
	}
	bad := func(context.Context) (string, string, error) { return "bot", "wrong-secret", nil }
	r.ID, r.Credential = "t2", bad
	if _, err := o.store.Prepare(ctx, r); !errors.Is(err, ErrNoRepository) || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("wrong secret: %v", err)
	}
}
