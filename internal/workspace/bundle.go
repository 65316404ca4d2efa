package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reasonix/internal/sandbox"
)

// bundleLimit is the largest bundle that the host reads.
const bundleLimit = 1 << 30

// ErrNoBox: git would have to run in the task's clone outside a box, which the host never does.
var ErrNoBox = errors.New("the workspace cannot be read without a sandbox")

// pack runs in the box. It has an index and a repository for new objects of its own, so that the task's stay as they are, and ends with
// one commit that holds everything: the task's commits and, on top, what is not committed. A snapshot also holds what only
// info/exclude hides, which a task can write, and brings along no more than what is new since the last one. Its output is data,
// checked by the host.
const pack = `set -eu
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
odd=$(find . \( -path '*/.git/*' -o -name '.git*' \) ! -path '*/.git/refs/*' \( -xtype p -o -xtype c \) -print 2>/dev/null | head -n 1) || true
if [ -n "$odd" ]; then echo "$odd is no file: git would wait for it"; exit 1; fi
index=$(git rev-parse --git-path index)
objects=$(realpath "$(git rev-parse --git-path objects)")
mine=$(mktemp -d "$TMPDIR/.reasonix-pack.XXXXXX")
trap 'rm -rf "$mine"' EXIT
if [ -f "$index" ] && git ls-files >/dev/null 2>&1; then cp "$index" "$mine/index"; fi
git init --quiet --bare --template= "$mine/git"
printf '%s\n' "$objects" > "$mine/git/objects/info/alternates"
if [ -d "$KNOWN" ]; then printf '%s\n' "$KNOWN" >> "$mine/git/objects/info/alternates"; fi
export GIT_INDEX_FILE="$mine/index" GIT_OBJECT_DIRECTORY="$mine/git/objects"
git add -A
if [ -f "$mine/index" ]; then # marks that hide a file from git must not hide it from the host
  git ls-files -z | git update-index -z --no-assume-unchanged --stdin
  git ls-files -z | git update-index -z --no-skip-worktree --stdin
  git add -A
fi
if [ "$KIND" = snapshot ]; then
  git ls-files -o -z --exclude-per-directory=.gitignore --exclude-from=/etc/gitexclude | { grep -zv '/$' || true; } | git update-index --add -z --stdin
fi
tree=$(git write-tree)
head=$(git rev-parse --verify --quiet 'HEAD^{commit}' || echo "$BASE")
branch=$(git symbolic-ref --quiet --short HEAD || true)
parent=$head
if [ -n "$LAST" ] && ! git cat-file -e "$LAST^{commit}" 2>/dev/null; then LAST=; fi
if [ "$KIND" = harvest ] && ! git merge-base --is-ancestor "$BASE" "$head"; then parent=$BASE; fi
if [ "$KIND" = harvest ] && [ "$tree" = "$(git rev-parse "$parent^{tree}")" ]; then
  commit=$parent
elif [ -n "$LAST" ] && [ "$tree $parent" = "$(git rev-parse "$LAST^{tree}") $(git rev-parse "$LAST^")" ]; then
  commit=$LAST
else
  commit=$(printf '%s\n' "$MESSAGE" | git commit-tree "$tree" -p "$parent")
fi
echo "commit $commit"
echo "head $head"
echo "branch $branch"
if [ "$commit" = "$BASE" ] || [ "$commit" = "$LAST" ]; then exit 0; fi
out=$commit
if [ -n "$LAST" ]; then out=$(printf 'Since\n' | git commit-tree "$tree" -p "$commit" -p "$LAST"); fi
git --git-dir="$mine/git" update-ref refs/reasonix/out "$out"
git --git-dir="$mine/git" bundle create --quiet "$mine/bundle" refs/reasonix/out "^$BASE" ${LAST:+"^$LAST"}
mv "$mine/bundle" "$TMPDIR/$BUNDLE" # git's lock beside a bundle that was cut off would stop every later one
`

// packed is what the box reported, and where the host keeps the bundle for reading.
type packed struct {
	commit, head, branch string
}

// pack makes a bundle in the box and reads it, with object checks, into the task's host repository under ref. last is a commit that the
// host has already: when nothing changed since, it is the result and ref is not written.
func (w *Workspace) pack(ctx context.Context, kind, message, ref, last string) (packed, error) {
	box := w.store.opt.Box
	if box == nil || box.Name() == "off" {
		return packed{}, ErrNoBox
	}
	name := "bundle-" + kind
	env := []string{"KIND=" + kind, "BASE=" + w.BaseSHA, "MESSAGE=" + message, "BUNDLE=" + name, "LAST=" + last,
		"KNOWN=" + filepath.Join(w.store.hostGit(w.ID), "objects"),
		// The task's home may hold a git configuration; it has no say here.
		"HOME=/nonexistent", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_LITERAL_PATHSPECS=1"}
	if err := w.clearTemp(name); err != nil {
		return packed{}, err
	}
	policy := w.Policy(sandbox.Policy{Limits: sandbox.Limits{Wall: 10 * time.Minute}})
	// The host's own objects of this task, so that what it has is neither packed again nor left in the clone.
	policy.Readable = append(policy.Readable, filepath.Join(w.store.hostGit(w.ID), "objects"))
	res, err := box.Run(ctx, policy, sandbox.Command{Argv: []string{"/bin/sh", "-c", pack}, Env: env})
	if err != nil {
		return packed{}, err
	}
	if res.TimedOut || res.ExitCode != 0 {
		return packed{}, fmt.Errorf("git in the box ended with %d: %s", res.ExitCode, lastLine(string(res.Output)))
	}
	p, err := readReport(string(res.Output))
	if err != nil {
		return packed{}, err
	}
	if p.commit == w.BaseSHA || p.commit == last {
		return p, nil
	}
	return p, w.take(ctx, name, p.commit, ref)
}

func readReport(out string) (packed, error) {
	var p packed
	for _, line := range strings.Split(out, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "commit":
			p.commit = value
		case "head":
			p.head = value
		case "branch":
			p.branch = value
		}
	}
	if !shaShape.MatchString(p.commit) || !shaShape.MatchString(p.head) {
		return packed{}, fmt.Errorf("the box reported no commit: %s", lastLine(out))
	}
	return p, nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		s = s[i+1:]
	}
	return s[:min(len(s), 300)]
}

// clearTemp removes an earlier bundle, and what a run that was cut off left.
func (w *Workspace) clearTemp(name string) error {
	root, err := os.OpenRoot(w.Temp)
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	list, err := dir.ReadDir(-1)
	dir.Close()
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.Name() == name || strings.HasPrefix(e.Name(), ".reasonix-pack.") {
			if err := root.RemoveAll(e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// take copies the bundle to the host's side first, so that it cannot change between check and use.
func (w *Workspace) take(ctx context.Context, name, commit, ref string) error {
	copied, err := w.copyBundle(name)
	if err != nil {
		return fmt.Errorf("read bundle: %w", err)
	}
	defer os.Remove(copied)
	dir := w.store.hostGit(w.ID)
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	refs, err := w.store.unbundle(ctx, dir, copied)
	if err == nil {
		err = w.checkSizes(ctx, commit)
	}
	if err != nil && ctx.Err() == nil { // no reference leads to what was refused; it must not pile up
		_, _ = w.store.git(ctx, dir, "gc", "--quiet", "--prune=now")
	}
	if err != nil {
		return fmt.Errorf("read bundle: %w", err)
	}
	// The commit itself, or the wrapper that ties it to what the host has.
	got := refs["refs/reasonix/out"]
	if got != commit && got != "" {
		got, err = w.store.git(ctx, dir, "rev-parse", "--verify", got+"^1")
	}
	if err != nil {
		return fmt.Errorf("read bundle: %w", err)
	}
	if got != commit {
		return fmt.Errorf("read bundle: it holds %q and not %s", got, commit)
	}
	_, err = w.store.git(ctx, dir, "update-ref", ref, commit)
	return err
}

func (w *Workspace) copyBundle(name string) (string, error) {
	root, err := os.OpenRoot(w.Temp)
	if err != nil {
		return "", err
	}
	defer root.Close()
	in, err := root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return "", err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > bundleLimit {
		return "", fmt.Errorf("%s of %d bytes is not a bundle that is read (limit %d)", info.Mode().Type(), info.Size(), int64(bundleLimit))
	}
	out, err := os.CreateTemp(w.store.hostDir(w.ID), "incoming-*.bundle")
	if err != nil {
		return "", err
	}
	_, err = io.Copy(out, io.LimitReader(in, bundleLimit))
	if err = errors.Join(err, out.Close(), root.RemoveAll(name)); err != nil {
		os.Remove(out.Name())
		return "", err
	}
	return filepath.Clean(out.Name()), nil
}
