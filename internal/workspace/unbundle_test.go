//go:build unix

package workspace

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What git itself refuses to take from a stranger never gets into the host's repository, whatever the version of git there.
func TestObjectsOfATaskAreChecked(t *testing.T) {
	const commit = `c=$(git commit-tree $tree -p HEAD -m evil) && git update-ref refs/heads/reasonix/t1 $(git commit-tree HEAD^{tree} -p $c -m good) && echo a > a`
	const tree = `blob=$(echo x | git hash-object -w --stdin); inner=$(printf "100755 blob $blob\tpost-checkout\n" | git mktree); `
	for name, line := range map[string]string{
		"a repository in the tree": tree + `tree=$(printf "040000 tree $inner\t.git\n" | git mktree); ` + commit,
		"its short name":           tree + `tree=$(printf "040000 tree $inner\tGIT~1\n" | git mktree); ` + commit,
		"a way up":                 tree + `tree=$(printf "040000 tree $inner\t..\n" | git mktree); ` + commit,
		"a link as submodules":     `b=$(printf /etc/passwd | git hash-object -w --stdin); tree=$(printf "120000 blob $b\t.gitmodules\n" | git mktree); ` + commit,
		"an option as a submodule": `b=$(printf '[submodule "x"]\n\tpath = x\n\turl = -u./evil\n' | git hash-object -w --stdin); tree=$(printf "100644 blob $b\t.gitmodules\n" | git mktree); ` + commit,
		"no commit":                `c=$(printf 'tree %s\nparent %s\nauthor x\ncommitter x\n\nx\n' $(git rev-parse HEAD^{tree}) $(git rev-parse HEAD) | git hash-object -t commit --literally -w --stdin); git update-ref refs/heads/reasonix/t1 $c; echo a > a`,
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			w := o.prepare("t1")
			o.task(w, line)
			if h, err := w.Harvest(context.Background(), "x"); err == nil || !strings.Contains(err.Error(), "read bundle") {
				t.Errorf("harvested %q, %v", h.Files, err)
			}
			if s, err := w.Snapshot(context.Background()); err == nil {
				t.Errorf("snapshot %+v", s)
			}
			git(t, o.store.hostGit("t1"), "fsck", "--strict")
		})
	}
}

// Pipes in the places of files that git reads make it wait for ever.
func TestPipesDoNotHoldASnapshotUp(t *testing.T) {
	o := newOffice(t)
	for name, line := range map[string]string{
		"ignore rules":    "rm .gitignore && mkfifo .gitignore",
		"attributes":      "mkfifo .gitattributes",
		"further down":    "rm sub/.gitignore && mkfifo sub/.gitignore",
		"excludes":        "rm -f .git/info/exclude && mkfifo .git/info/exclude",
		"a link to one":   "mkfifo p && rm -f .git/info/exclude && ln -s ../../p .git/info/exclude",
		"head":            "rm .git/HEAD && mkfifo .git/HEAD",
		"an endless head": "rm .git/HEAD && ln -s /dev/zero .git/HEAD",
		"alternates":      "rm .git/objects/info/alternates && mkfifo .git/objects/info/alternates",
		"shallow":         "mkfifo .git/shallow",
	} {
		id := strings.ReplaceAll(name, " ", "-")
		w := o.prepare(id)
		o.task(w, line)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		if _, err := w.Snapshot(ctx); err == nil || !strings.Contains(err.Error(), "is no file") {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	w := o.prepare("harmless")
	o.task(w, "mkfifo p && ln -s /dev/null null")
	o.snapshot(w)
}

func TestHeadsOfBundles(t *testing.T) {
	sha := strings.Repeat("a", 40)
	for text, want := range map[string]int{
		"# v2 git bundle\n-" + sha + " base\n" + sha + " refs/x\n\nPACK": 1,
		"# v3 git bundle\n@object-format=sha1\n" + sha + " refs/x\n\n":   1,
		"# v3 git bundle\n@filter=blob:none\n" + sha + " refs/x\n\n":     -1,
		"# v2 git bundle\n" + sha + " --exec\n\n":                        -1,
		"# v2 git bundle\n" + sha:                                        -1,
		"# v2 git bundle\n" + strings.Repeat("x", 100<<10):               -1,
		"# v2 git bundle\n" + strings.Repeat(sha+" refs/x\n", 40<<10):    -1,
		"# v9 git bundle\n\n":                                            -1,
		"":                                                               -1,
	} {
		refs, err := bundleRefs(bufio.NewReaderSize(strings.NewReader(text), 64<<10))
		if (err != nil) != (want < 0) || (want >= 0 && len(refs) != want) {
			t.Errorf("%.60q: %v %v", text, refs, err)
		}
		if err != nil && !errors.Is(err, errBundle) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

// An export that was made by somebody else is checked like what a task hands over.
func TestObjectsOfAnImportAreChecked(t *testing.T) {
	ctx := context.Background()
	o := newOffice(t)
	w := o.prepare("t1")
	o.task(w, "echo a > a")
	snap := o.snapshot(w)
	host := o.store.hostGit("t1")
	blob := git(t, host, "rev-parse", snap.SHA+":a")
	mktree := func(text string) string {
		out, err := o.store.run(ctx, gitCall{dir: host, args: []string{"mktree"}, stdin: strings.NewReader(text)})
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	tree := mktree("040000 tree " + mktree("100755 blob "+blob+"\tpost-checkout\n") + "\t.git\n")
	evil := git(t, host, "commit-tree", tree, "-p", snap.Head, "-m", "evil")
	git(t, host, "update-ref", snap.Ref, evil)
	file := filepath.Join(t.TempDir(), "bad")
	if err := o.store.Export(ctx, "t1", file, false); err != nil {
		t.Fatal(err)
	}
	if _, err := o.away().store.Import(ctx, file, Request{URL: o.upstream}); !errors.Is(err, ErrExport) {
		t.Errorf("%v", err)
	}
}

// A large file of a task costs the host no memory of its size.
func TestLargeFilesAreTakenInPieces(t *testing.T) {
	o := newOffice(t)
	program := filepath.Join(t.TempDir(), "git")
	write(t, program, "#!/bin/sh\ncase \" $* \" in *' index-pack '*) ulimit -v 160000;; esac\nexec git \"$@\"\n")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	o.opt.Git = program
	o.open()
	w := o.prepare("t1")
	o.task(w, "head -c 180000000 /dev/zero > big")
	o.snapshot(w)
}
