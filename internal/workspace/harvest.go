package workspace

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"reasonix/internal/sandbox"
)

const (
	shownDiff   = 512 << 10 // bytes of Harvest.Diff
	scannedDiff = 32 << 20  // bytes of history that are scanned for secrets; more is refused
)

// Harvest reads the task's commits and uncommitted changes into the host's repository of this task and judges them: every commit,
// not only the end, because a push publishes all of them. A violation is ErrPolicy and names the paths.
func (w *Workspace) Harvest(ctx context.Context, message string) (Harvest, error) {
	h, err := w.harvest(ctx, message)
	if err != nil {
		return Harvest{}, fmt.Errorf("harvest workspace %s: %w", w.ID, err)
	}
	return h, nil
}

func (w *Workspace) harvest(ctx context.Context, message string) (Harvest, error) {
	if strings.TrimSpace(message) == "" {
		message = "Changes"
	}
	message = strings.ReplaceAll(message, "\x00", "")
	w.packing.Lock()
	defer w.packing.Unlock()
	p, err := w.pack(ctx, "harvest", message[:min(len(message), 64<<10)], "refs/harvest/head", "")
	if err != nil {
		return Harvest{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	h := Harvest{GitDir: w.store.hostGit(w.ID), Base: w.BaseSHA, Head: p.commit}
	if h.Empty() {
		return h, nil
	}
	if _, err := w.store.git(ctx, h.GitDir, "merge-base", "--is-ancestor", h.Base, h.Head); err != nil {
		return Harvest{}, fmt.Errorf("%w: the history does not contain its base %s", ErrPolicy, h.Base)
	}
	diff, err := w.store.run(ctx, gitCall{dir: h.GitDir, args: diffArgs("diff", h.Base, h.Head), limit: shownDiff})
	if err != nil && !errors.Is(err, errOutputLimit) {
		return Harvest{}, err
	}
	h.Diff, h.Truncated = strings.ToValidUTF8(string(diff), "\uFFFD"), errors.Is(err, errOutputLimit)
	names, err := w.store.run(ctx, gitCall{dir: h.GitDir, args: []string{"diff", "--name-only", "--no-renames", "-z", h.Base, h.Head}})
	if errors.Is(err, errOutputLimit) {
		return Harvest{}, fmt.Errorf("%w: it changes more files than are looked at", ErrPolicy)
	}
	if err != nil {
		return Harvest{}, err
	}
	h.Files = lines(names)
	if p.branch != w.Branch {
		h.Ignored = append(h.Ignored, fmt.Sprintf("the task worked on branch %q, published is %q", p.branch, w.Branch))
	}
	changes, err := w.store.changes(ctx, h)
	if errors.Is(err, errOutputLimit) {
		return Harvest{}, fmt.Errorf("%w: the history changes more files than are looked at", ErrPolicy)
	}
	if err != nil {
		return Harvest{}, err
	}
	if bad := w.rules.judge(changes); len(bad) > 0 {
		return Harvest{}, fmt.Errorf("%w: %s", ErrPolicy, strings.Join(bad, "; "))
	}
	return h, w.scanSecrets(ctx, h)
}

// diffArgs keep attributes and configuration of a repository from running programs or hiding text.
func diffArgs(verb string, args ...string) []string {
	return append([]string{verb, "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/"}, args...)
}

func (w *Workspace) scanSecrets(ctx context.Context, h Harvest) error {
	if w.store.opt.Scan == nil {
		return nil
	}
	// Messages, names and the content of every commit are published, also what a later commit took away again.
	out, err := w.store.run(ctx, gitCall{dir: h.GitDir, args: diffArgs("log", "-p", "-m", "--text", "--no-renames", "--format=%an <%ae>%n%cn <%ce>%n%B", h.Base+".."+h.Head), limit: scannedDiff})
	if errors.Is(err, errOutputLimit) {
		return fmt.Errorf("%w: the change is larger than the %d bytes that are scanned for secrets", ErrPolicy, scannedDiff)
	}
	if err != nil {
		return err
	}
	if found := w.store.opt.Scan(string(out)); len(found) > 0 {
		return fmt.Errorf("%w: secrets found: %s", ErrPolicy, strings.Join(found, "; "))
	}
	return nil
}

// change is one path as one commit left it.
type change struct {
	path   string
	mode   string // 100644, 100755, 120000 link, 160000 submodule, 000000 deleted
	blob   string
	size   int64
	binary bool
}

// changes lists every path that any commit of the harvest touched.
func (s *Store) changes(ctx context.Context, h Harvest) ([]change, error) {
	out, err := s.run(ctx, gitCall{dir: h.GitDir, args: []string{"log", "-m", "--raw", "-z", "--no-renames", "--no-abbrev", "--format=", h.Base + ".." + h.Head}, limit: 64 << 20})
	if err != nil {
		return nil, err
	}
	var all []change
	blobs := map[string]bool{}
	fields := lines(out)
	for i := 0; i+1 < len(fields); i += 2 {
		for fields[i] == "" { // between commits
			i++
		}
		f := strings.Fields(strings.TrimLeft(fields[i], "\n:"))
		if len(f) != 5 {
			return nil, fmt.Errorf("unexpected change line %q", fields[i])
		}
		c := change{path: fields[i+1], mode: f[1], blob: f[3]}
		all = append(all, c)
		if c.mode != "000000" && c.mode != "160000" {
			blobs[c.blob] = true
		}
	}
	sizes, err := s.sizes(ctx, h.GitDir, sortedKeys(blobs))
	if err != nil {
		return nil, err
	}
	binary, err := s.binaries(ctx, h)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].size, all[i].binary = sizes[all[i].blob], binary[all[i].path]
	}
	return all, nil
}

func (s *Store) sizes(ctx context.Context, dir string, blobs []string) (map[string]int64, error) {
	out, err := s.run(ctx, gitCall{dir: dir, args: []string{"cat-file", "--batch-check=%(objectname) %(objectsize)"}, stdin: strings.NewReader(strings.Join(blobs, "\n"))})
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	for _, line := range strings.Split(string(out), "\n") {
		id, size, _ := strings.Cut(line, " ")
		if n, err := strconv.ParseInt(size, 10, 64); err == nil {
			sizes[id] = n
		}
	}
	return sizes, nil
}

// binaries are the paths that git counts no lines of in some commit.
func (s *Store) binaries(ctx context.Context, h Harvest) (map[string]bool, error) {
	out, err := s.run(ctx, gitCall{dir: h.GitDir, args: []string{"log", "-m", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--format=", h.Base + ".." + h.Head}, limit: 64 << 20})
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, line := range lines(out) {
		if p, ok := strings.CutPrefix(strings.TrimLeft(line, "\x00\n"), "-\t-\t"); ok {
			found[p] = true
		}
	}
	return found, nil
}

// judge names every violation once.
func (r Rules) judge(changes []change) []string {
	maxFiles, maxBytes := r.MaxFiles, r.MaxFileBytes
	if maxFiles == 0 {
		maxFiles = 500
	}
	if maxBytes == 0 {
		maxBytes = 5 << 20
	}
	paths := map[string]bool{}
	var bad []string
	for _, c := range changes {
		paths[c.path] = true
		switch {
		case r.protects(c.path):
			bad = append(bad, fmt.Sprintf("%q is protected", c.path))
		case c.mode == "160000":
			bad = append(bad, fmt.Sprintf("%q is a submodule", c.path))
		case c.mode == "120000" && c.size > 4096:
			bad = append(bad, fmt.Sprintf("%q is an overlong link", c.path))
		case c.size > maxBytes:
			bad = append(bad, fmt.Sprintf("%q has %d bytes, allowed are %d", c.path, c.size, maxBytes))
		case c.binary && !r.AllowBinary:
			bad = append(bad, fmt.Sprintf("%q is binary", c.path))
		}
	}
	if len(paths) > maxFiles {
		bad = append(bad, fmt.Sprintf("%d files changed, allowed are %d", len(paths), maxFiles))
	}
	slices.Sort(bad)
	bad = slices.Compact(bad)
	if len(bad) > 20 {
		bad = append(bad[:20], fmt.Sprintf("and %d more", len(bad)-20))
	}
	return bad
}

// protects compares without case: a checkout on another system may not tell the cases apart. The agent's own configuration is
// protected whatever the rules say, except what Allow names.
func (r Rules) protects(p string) bool {
	if matches(r.Allow, p) {
		return false
	}
	first, _, _ := strings.Cut(p, "/")
	for _, name := range sandbox.Protected {
		if strings.EqualFold(first, name) {
			return true
		}
	}
	return matches(r.Protect, p)
}

func matches(globs []string, p string) bool {
	p = strings.ToLower(path.Clean(p))
	return slices.ContainsFunc(globs, func(g string) bool {
		ok, err := doublestar.Match(strings.ToLower(g), p)
		return ok || err != nil // a glob that cannot be read protects everything
	})
}
