package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// rule lets the reduced box use one place and what lies below it.
type rule struct {
	Path   string `json:"path"`
	Rights uint64 `json:"rights"`
}

const (
	rightsFile = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate
	rightsRead = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
	rightsWork = rightsRead | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile |
		ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeFifo | ll.AccessFSMakeSym | ll.AccessFSRefer
	// rightsOwn has one right that rightsWork lacks, so that no folder can be moved out of the workspace: the kernel refuses its move to a
	// place with more rights. The right itself is void, because the filter lets nobody have a socket.
	rightsOwn    = rightsWork | ll.AccessFSMakeSock
	rightsDevice = ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate
)

// shown are files outside the base trees that programs need. Of /proc nothing that belongs to a process: without a namespace that
// would be every process of the machine.
var shown = []string{"/etc/passwd", "/etc/group", "/etc/hosts", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime",
	"/proc/version", "/proc/filesystems", "/proc/sys"}

var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// planRules lays the policy out as grants: there is nothing to take away later, so what is forbidden is left out.
func planRules(p Policy) ([]rule, error) {
	if err := checkPolicy(p); err != nil {
		return nil, err
	}
	if p.Network != nil {
		return nil, errors.New("the reduced box has no network at all: network = true needs the full box (install bubblewrap), or leave network out")
	}
	var readable []string
	base := slices.Concat(baseTrees(), usrLinks, shown)
	for _, name := range etc {
		base = append(base, filepath.Join("/etc", name))
	}
	for _, path := range base {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			readable = append(readable, real)
		}
	}
	readable = append(readable, p.Readable...)
	var out []rule
	if p.ReadOnly {
		readable = append(readable, p.Workspace)
	} else {
		outside, err := gitOutside(p.Workspace)
		if err != nil {
			return nil, err
		}
		out = append(out, rule{p.Workspace, rightsWork})
		out = append(out, outside...)
	}
	for _, path := range slices.Concat(present(p.Home), present(p.Temp), p.Caches, p.Writable) {
		if p.ReadOnly && within(p.Workspace, path) {
			continue // Plan: nothing in the workspace is writable, whatever else grants it
		}
		out = append(out, rule{path, rightsOwn})
	}
	forbidden, err := forbiddenIn(p, out)
	if err != nil {
		return nil, err
	}
	for _, path := range readable {
		rules, err := readRules(path, forbidden)
		if err != nil {
			return nil, err
		}
		out = append(out, rules...)
	}
	for _, path := range devices {
		if _, err := os.Stat(path); err == nil {
			out = append(out, rule{path, rightsDevice})
		}
	}
	return out, nil
}

// gitOutside grants the git folder of a linked worktree or a lone submodule, which lies elsewhere.
func gitOutside(workspace string) (out []rule, err error) {
	mounts, _, err := protect(workspace)
	for _, m := range mounts {
		if m.kind == bindRW && !within(workspace, m.dest) {
			out = append(out, rule{m.dest, rightsWork})
		}
	}
	return out, err
}

// forbiddenIn resolves what must not be read and refuses what lies where the box writes: a grant cannot leave it out there without
// closing the folder around it as well.
func forbiddenIn(p Policy, writable []rule) ([]string, error) {
	var out []string
	for _, path := range p.ForbidRead {
		real := resolve(path)
		if _, err := os.Lstat(real); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for _, w := range writable {
			if within(resolve(w.Path), real) {
				return nil, fmt.Errorf("forbid_read names %s inside the writable folder %s, and the reduced box cannot hide a file there: move it out, "+
					"take it off forbid_read, or use the full box (install bubblewrap)", path, w.Path)
			}
		}
		out = append(out, real)
	}
	return out, nil
}

// readRules grants path, or, where something below it is forbidden, its children one by one.
func readRules(path string, forbidden []string) ([]rule, error) {
	if slices.ContainsFunc(forbidden, func(f string) bool { return within(f, path) }) {
		return nil, nil
	}
	if !slices.ContainsFunc(forbidden, func(f string) bool { return within(path, f) }) {
		return []rule{{path, rightsRead}}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("leave out what is forbidden below %s: %w", path, err)
	}
	out := []rule{{path, ll.AccessFSReadDir}} // programs list the folder; a name is no content
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			continue // its target has a grant of its own, or none
		}
		below, err := readRules(filepath.Join(path, e.Name()), forbidden)
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}

// landlockRules opens every place, inside the workspace without following a link that a running command could have put there.
// close ends the descriptors that the rules name.
func landlockRules(rules []rule, workspace string) (out []landlock.Rule, closeAll func(), err error) {
	var files []*os.File
	closeAll = func() {
		for _, f := range files {
			f.Close()
		}
	}
	for _, r := range rules {
		fd, err := openSource(r.Path, workspace)
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("open %s: %w", r.Path, err)
		}
		f := os.NewFile(uintptr(fd), r.Path)
		files = append(files, f)
		info, err := f.Stat()
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("look at %s: %w", r.Path, err)
		}
		rights := r.Rights
		if !info.IsDir() {
			rights &= rightsFile
		}
		if rights == 0 {
			continue
		}
		out = append(out, landlock.PathAccess(landlock.AccessFSSet(rights), fmt.Sprintf("/proc/self/fd/%d", fd)))
	}
	return out, closeAll, nil
}
