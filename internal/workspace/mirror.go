package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

var notName = regexp.MustCompile(`[^A-Za-z0-9-]+`)

// mirrorName is readable and unique per address; a secret in the address does not show.
func mirrorName(repo, url string) string {
	sum := sha256.Sum256([]byte(url))
	name := strings.Trim(notName.ReplaceAllString(repo, "-"), "-")
	if len(name) > 40 {
		name = name[:40]
	}
	return strings.TrimPrefix(name+"-"+hex.EncodeToString(sum[:8]), "-") + ".git"
}

// mirror makes or refreshes the mirror of r.URL and returns its name. Callers that come while one is at work share its result;
// other processes wait at the lock. Objects are never collected, because clones borrow them.
func (s *Store) mirror(ctx context.Context, r Request) (string, error) {
	name := mirrorName(r.Repo, r.URL)
	done := s.flights.DoChan(fmt.Sprint(name, " ", r.SHA, r.Resume), func() (any, error) {
		// One caller that gives up must not fail the others.
		return nil, s.refresh(context.WithoutCancel(ctx), name, r)
	})
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case res := <-done:
		return name, res.Err
	}
}

func (s *Store) refresh(ctx context.Context, name string, r Request) error {
	unlock, err := s.lock(ctx, "mirror-"+name)
	if err != nil {
		return err
	}
	defer unlock()
	dir := s.mirrorDir(name)
	if _, err := os.Stat(filepath.Join(dir, "complete")); errors.Is(err, fs.ErrNotExist) {
		if err := s.initMirror(ctx, dir); err != nil {
			return err
		}
	}
	sweepGit(dir, time.Now())
	if r.SHA != "" && !r.Resume && s.has(ctx, dir, r.SHA) {
		return nil // pinned and here already: nothing to ask the remote for
	}
	err = s.fetch(ctx, dir, r, "--prune", r.URL, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNoRepository, withoutUserinfo(r.URL), err)
	}
	if err := s.defaultBranch(ctx, dir, r); err != nil {
		return err
	}
	if r.SHA != "" && !s.has(ctx, dir, r.SHA) {
		if err := s.fetch(ctx, dir, r, r.URL, "+"+r.SHA+":refs/pinned/"+r.SHA); err != nil {
			return fmt.Errorf("%w: commit %s: %w", ErrNoBase, r.SHA, err)
		}
	}
	return writeFile(filepath.Join(dir, "complete"), nil)
}

// initMirror starts over when an earlier start did not end. Objects are readable for the accounts of boxes, whatever the umask.
func (s *Store) initMirror(ctx context.Context, dir string) error {
	if err := removeTree(dir); err != nil {
		return err
	}
	_, err := s.git(ctx, "", "init", "--quiet", "--bare", "--template=", "--shared=0644", dir)
	return err
}

func (s *Store) fetch(ctx context.Context, dir string, r Request, args ...string) error {
	args = append([]string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules"}, args...)
	_, err := s.run(ctx, gitCall{dir: dir, args: args, cred: r.Credential, url: r.URL})
	return err
}

// defaultBranch remembers which branch the remote's HEAD names; an empty remote names none.
func (s *Store) defaultBranch(ctx context.Context, dir string, r Request) error {
	out, err := s.run(ctx, gitCall{dir: dir, args: []string{"ls-remote", "--symref", r.URL, "HEAD"}, cred: r.Credential, url: r.URL})
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNoRepository, withoutUserinfo(r.URL), err)
	}
	for _, line := range strings.Split(string(out), "\n") {
		ref, ok := strings.CutPrefix(line, "ref: ")
		if !ok {
			continue
		}
		ref, _, _ = strings.Cut(ref, "\t")
		if strings.HasPrefix(ref, "refs/heads/") {
			_, err := s.git(ctx, dir, "symbolic-ref", "HEAD", ref)
			return err
		}
	}
	return nil
}

func (s *Store) has(ctx context.Context, dir, sha string) bool {
	_, err := s.git(ctx, dir, "cat-file", "-e", sha+"^{commit}")
	return err == nil
}

// resolve pins the base to one commit. ref is the branch it came from; sha is empty for a repository without commits.
func (s *Store) resolve(ctx context.Context, dir string, r Request) (ref, sha string, err error) {
	switch {
	case r.SHA != "":
		if !s.has(ctx, dir, r.SHA) {
			return "", "", fmt.Errorf("%w: commit %s", ErrNoBase, r.SHA)
		}
		return r.Base, r.SHA, nil
	case r.Base != "":
		for _, prefix := range []string{"refs/heads/", "refs/tags/"} {
			if sha, err := s.git(ctx, dir, "rev-parse", "--verify", "--quiet", prefix+r.Base+"^{commit}"); err == nil {
				return r.Base, sha, nil
			}
		}
		return "", "", fmt.Errorf("%w: branch %s in %s", ErrNoBase, r.Base, withoutUserinfo(r.URL))
	}
	if refs, err := s.git(ctx, dir, "for-each-ref", "--count=1", "refs/heads"); err != nil || refs == "" {
		return "", "", err
	}
	head, err := s.git(ctx, dir, "symbolic-ref", "HEAD")
	if err != nil {
		return "", "", err
	}
	sha, err = s.git(ctx, dir, "rev-parse", "--verify", "--quiet", head+"^{commit}")
	if err != nil {
		return "", "", fmt.Errorf("%w: the default branch %s is missing; name one as base", ErrNoBase, head)
	}
	return strings.TrimPrefix(head, "refs/heads/"), sha, nil
}
