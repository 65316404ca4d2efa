// Package workspace is a directory per task: mirrored once, cloned per task, snapshotted at every park, harvested at the end.
package workspace

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"reasonix/internal/sandbox"
)

// Request says what a task works on.
type Request struct {
	ID         string                          // workspace id; Prepare with the same id opens what is there
	Repo       string                          // name, for messages and the mirror's folder
	URL        string                          // path or URL; empty: an empty repository
	Base       string                          // branch, empty for the repository's default
	SHA        string                          // exact commit, wins over Base
	Branch     string                          // the task's own branch
	Resume     bool                            // earlier work was done under ID: a workspace that is gone starts from what Branch holds at the remote, if it is there
	SetupFiles []string                        // files of the base that setup commands depend on, for the cache; empty: all files
	Admit      func(ctx context.Context) error // asked before a new workspace is made, one at a time; its error ends Prepare. May be nil
	Credential Credential
	Rules      Rules // what may be harvested; not stored, give them at every Prepare
}

// Credential gives access for one fetch or push; it lives in the host process alone.
type Credential func(ctx context.Context) (user, secret string, err error)

// Rules are the diff policy. Zero values mean the defaults named beside them.
type Rules struct {
	MaxFiles     int      // changed paths, default 500
	MaxFileBytes int64    // of one changed file, default 5 MiB
	AllowBinary  bool     // binary files may change
	Protect      []string // globs (doublestar) that must not change, as in publish.protect
	Allow        []string // globs that are exempt from Protect
}

// Harvest is what the host read from the task's bundle, in its own repository of that task.
type Harvest struct {
	GitDir    string // host-side repository that holds Head
	Base      string
	Head      string // commit with everything, uncommitted changes included; equals Base when nothing changed
	Diff      string // unified diff Base..Head, bounded; the whole when Truncated is false
	Truncated bool
	Files     []string // changed paths
	Ignored   []string // notes for people: what was left out and why
}

// Empty tells whether the task changed nothing.
func (h Harvest) Empty() bool { return h.Head == h.Base }

// Promised errors.
var (
	ErrNoRepository = errors.New("repository cannot be reached")
	ErrNoBase       = errors.New("base does not exist")
	ErrPolicy       = errors.New("the change is outside what this route may publish")
	// ErrMoved: the remote branch holds commits that this task does not know; nothing was pushed.
	ErrMoved = errors.New("the remote branch has moved")
	// ErrNoSnapshot: the workspace has no snapshot to restore from.
	ErrNoSnapshot = errors.New("no snapshot")
	// ErrUnknown: no workspace with that id.
	ErrUnknown = errors.New("no such workspace")
)

// Workspace is the directory of one task. Everything but Dir, Home, Temp and Caches belongs to the host.
type Workspace struct {
	ID      string
	Dir     string // the clone
	Home    string
	Temp    string
	Caches  string
	BaseSHA string
	Branch  string
	// Restored is set when Dir was rebuilt from a snapshot: ignored files are gone and setup has to run again.
	Restored bool
	From     Snapshot // that it was rebuilt from; zero when there was none
	Fresh    bool     // made by this Prepare
	// SetupCached: the setup commands did not run, their result was copied from an earlier task's clone.
	SetupCached bool
	Pushed      string // Fresh, and started from what the task's branch held at the remote: that commit

	store   *Store
	meta    meta
	rules   Rules
	touched bool // commands ran in it
	// setupFiles are those of the base that the setup cache is keyed by; empty: all.
	setupFiles []string
	// packing: one bundle at a time.
	packing sync.Mutex
	mu      sync.Mutex
	base    *baseTree
	cache   map[string]cached
}

// meta is what the host keeps about a workspace; writing it is the last step of making one.
type meta struct {
	ID      string    `json:"id"`
	Repo    string    `json:"repo"`
	URL     string    `json:"url"`
	Mirror  string    `json:"mirror,omitempty"` // folder name below mirrors
	BaseRef string    `json:"base_ref,omitempty"`
	Base    string    `json:"base"`
	Branch  string    `json:"branch"`
	Created time.Time `json:"created"`
	Pinned  bool      `json:"pinned,omitempty"` // base is a commit that the request named
	Pushed  string    `json:"pushed,omitempty"` // head of the last push
}

// Policy is the box of this workspace, with what the caller adds: extra's lists and environment are appended, its limits, Network,
// ReadOnly and ForbidRead are taken over.
func (w *Workspace) Policy(extra sandbox.Policy) sandbox.Policy {
	p := sandbox.Policy{
		Workspace: w.Dir, ReadOnly: extra.ReadOnly, Home: w.Home, Temp: w.Temp,
		Caches:     slices.Concat([]string{w.Caches}, extra.Caches),
		Writable:   slices.Clone(extra.Writable),
		Readable:   slices.Clone(extra.Readable),
		ForbidRead: slices.Clone(extra.ForbidRead),
		Env:        slices.Concat(sandbox.BoxEnv(w.store.opt.Lookup, w.Home, "/tmp", w.Caches), extra.Env),
		Limits:     extra.Limits,
		Network:    extra.Network,
	}
	if w.meta.Mirror != "" {
		p.Readable = append(p.Readable, w.store.mirrorObjects(w.meta.Mirror))
	}
	return p
}

// BoxDigest identifies what the box allows, wherever the store lies: an approval that was given before the store moved still holds.
func (w *Workspace) BoxDigest(p sandbox.Policy, box sandbox.Box) string {
	place := func(path string) string {
		if rel, err := filepath.Rel(w.store.root, path); err == nil && filepath.IsLocal(rel) {
			return "/store/" + filepath.ToSlash(rel)
		}
		return path
	}
	all := func(list []string, f func(string) string) []string {
		out := make([]string, len(list))
		for i, v := range list {
			out[i] = f(v)
		}
		return out
	}
	p.Workspace, p.Home, p.Temp = place(p.Workspace), place(p.Home), place(p.Temp)
	p.Caches, p.Writable, p.Readable = all(p.Caches, place), all(p.Writable, place), all(p.Readable, place)
	p.Env = all(p.Env, func(kv string) string {
		return strings.ReplaceAll(kv, w.store.root+string(filepath.Separator), "/store/")
	})
	return p.DigestIn(box)
}

// Place names the workspace in what an approval is bound to, wherever the store lies.
func (w *Workspace) Place() string { return "workspace:" + w.ID }
