// Package sandbox says where an allowed call may act, and holds it there: roots, forbidden reads, network, limits, and the boxes that enforce them.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

// Policy is what one box may touch. Paths are absolute and cleaned.
type Policy struct {
	Workspace  string   // writable, unless ReadOnly
	ReadOnly   bool     // Plan: the workspace is read-only too
	Home       string   // the task's own home, writable
	Temp       string   // the task's own temp, writable, shown as /tmp
	Caches     []string // the task's own caches, writable
	Writable   []string // [sandbox].allow_write and granted directories
	Readable   []string // extra read-only folders: shared git objects, toolchains outside the base system
	ForbidRead []string // hidden, also when they appear later
	Env        []string // the whole environment of the box: NAME=value from an allow list
	Limits     Limits
	Network    *Network // nil: none
}

// Limits bound one command; zero means the default of Defaults.
type Limits struct {
	Wall        time.Duration // negative: none
	Output      int64         // bytes kept in memory, head and tail
	Processes   int
	OpenFiles   int
	MemoryBytes int64   // of the whole call where control groups are to be had, else of each process
	FileBytes   int64   // largest file that may be written
	CPUSeconds  int     // of each process
	CPUs        float64 `json:",omitempty"` // of the whole call, in processors; holds with control groups alone
	DiskBytes   int64   // of the workspace, home, temp and caches together; sampled while a command runs, no default
}

// Command is one process tree in the box.
type Command struct {
	Argv   []string
	Dir    string // absolute, inside the workspace; empty for its root
	Stdin  io.Reader
	Output func([]byte) // live output, may be nil
	Env    []string     // added to the policy's
	Wall   time.Duration
}

// Result is how the tree ended.
type Result struct {
	Output   []byte // stdout and stderr, bounded, head and tail kept
	Omitted  int64
	ExitCode int
	TimedOut bool
	Stopped  string // "stopped: …" or "killed: …": the other limit that ended the command or a part of it; empty when none did
	Duration time.Duration
	Restored []string // protected files that the command changed and the host put back, relative to the workspace; the reduced box only
	Reached  []string // what the command reached or tried to reach over the network, in order, with the reason of a refusal
}

// Box runs commands under a Policy. Cancelling ctx ends the whole process tree within 2 s.
type Box interface {
	Name() string
	Run(ctx context.Context, p Policy, c Command) (Result, error)
}

// Accounts is a box that can run a workspace's commands under an unprivileged account of its own.
type Accounts interface {
	// Account gives the uid and gid that must own the workspace with this id; ok is false when the host is not root and
	// everything belongs to its own user.
	Account(id string) (uid, gid int, ok bool)
}

// FolderOpener is a box whose accounts reach a workspace only through folders that let others pass.
type FolderOpener interface {
	// OpenFolders tells whether the host has to make its own folders above the workspaces passable (mode 0711).
	OpenFolders() bool
}

// OpenFolders asks a box that may be nil.
func OpenFolders(box Box) bool {
	o, ok := box.(FolderOpener)
	return ok && o.OpenFolders()
}

// Reduced tells whether a box, which may be nil, is the reduced one: ReducedGaps lists what it does not hold.
func Reduced(box Box) bool { return box != nil && box.Name() == "landlock" }

// Protected are the names in the root of a workspace that configure the agent itself. A task can neither change nor create
// them (design, section 4, invariant 14).
var Protected = []string{".reasonix", "reasonix.toml", ".mcp.json"}

// ErrUnavailable: no box can be had on this machine; the message names why and the mend.
var ErrUnavailable = errors.New("no sandbox available")

// commandDir is where the command starts: never the host's own working directory.
func commandDir(p Policy, c Command) (string, error) {
	if !filepath.IsAbs(p.Workspace) {
		return "", fmt.Errorf("box policy: workspace %q is not absolute", p.Workspace)
	}
	if c.Dir == "" {
		return p.Workspace, nil
	}
	if filepath.Clean(c.Dir) != c.Dir || !within(p.Workspace, c.Dir) {
		return "", fmt.Errorf("directory %s is outside the workspace", c.Dir)
	}
	return c.Dir, nil
}
