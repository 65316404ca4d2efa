package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mountKind is how a place in the box comes to be.
type mountKind int

const (
	bindRO mountKind = iota
	bindRW
	data    // a small read-only file with given content
	maskDir // an empty folder nobody can open
	maskFile
)

// mount is one place in the box. Order matters: a later one covers an earlier one.
type mount struct {
	kind mountKind
	src  string
	dest string
	text string
}

// etc is what programs need of /etc and what holds no secret; anything else of the host's configuration is absent.
var etc = []string{"alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone", "nsswitch.conf",
	"protocols", "services", "mime.types", "ssl/certs", "ssl/openssl.cnf", "ca-certificates", "ca-certificates.conf", "pki/tls/certs",
	"pki/ca-trust", "terminfo", "bash.bashrc", "inputrc", "fonts", "magic", "os-release", "debian_version", "java-17-openjdk",
	"java-21-openjdk", "python3", "python3.11", "python3.12", "python3.13", "perl", "locale.alias"}

// usrLinks are symlinks into /usr on merged systems and real folders elsewhere.
var usrLinks = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// baseArgs is the readable system, the same for every box.
func baseArgs() []string {
	var args []string
	for _, dir := range baseTrees() {
		args = append(args, "--ro-bind-try", dir, dir)
	}
	for _, dir := range usrLinks {
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
			continue
		}
		args = append(args, "--ro-bind-try", dir, dir)
	}
	for _, name := range etc {
		path := filepath.Join("/etc", name)
		if _, err := os.Stat(path); err == nil {
			args = append(args, "--ro-bind-try", path, path)
		}
	}
	// As uid 0 the kernel settings under /proc/sys can be written without any capability, core_pattern among them.
	return append(args, "--proc", "/proc", "--ro-bind-try", "/proc/sys", "/proc/sys",
		"--ro-bind-try", "/proc/sysrq-trigger", "/proc/sysrq-trigger", "--dev", "/dev",
		"--size", strconv.Itoa(256<<20), "--tmpfs", "/dev/shm", "--symlink", "/tmp", "/var/tmp")
}

// identity gives the box's user a name, and git its manners, without showing the host's accounts or configuration.
func identity(uid, gid int, home string) []mount {
	passwd := "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
	group := "root:x:0:\nnogroup:x:65534:\n"
	if uid == 0 {
		passwd = fmt.Sprintf("root:x:0:0:root:%s:/bin/bash\n", home)
	} else {
		passwd += fmt.Sprintf("task:x:%d:%d:task:%s:/bin/bash\n", uid, gid, home)
		group += fmt.Sprintf("task:x:%d:\n", gid)
	}
	return []mount{
		{kind: data, dest: "/etc/passwd", text: passwd},
		{kind: data, dest: "/etc/group", text: group},
		{kind: data, dest: "/etc/hosts", text: "127.0.0.1 localhost\n::1 localhost\n"},
		{kind: data, dest: "/etc/gitexclude", text: gitExclude()},
		{kind: data, dest: "/etc/gitconfig", text: gitConfig},
	}
}

// gitConfig: excludesFile keeps the shadows of missing protected files out of `git add -A`.
const gitConfig = "[core]\n\texcludesFile = /etc/gitexclude\n" + gitManners

// gitManners is the part that every box has.
const gitManners = `[safe]
	directory = *
[user]
	name = Reasonix task
	email = task@reasonix.invalid
[init]
	defaultBranch = main
[gc]
	auto = 0
[maintenance]
	auto = false
`

// planMounts lays the policy out: roots by depth so that the nearer one wins, then what is protected inside the workspace, then
// what must not be read. It returns the shadows that have to exist on the host first.
func planMounts(p Policy) ([]mount, []shadow, error) {
	if err := checkPolicy(p); err != nil {
		return nil, nil, err
	}
	roots := rootMounts(p)
	if p.ReadOnly { // nothing below can be written, so nothing needs protection
		forbidden, shadows := forbiddenMounts(p, roots)
		return append(roots, forbidden...), shadows, nil
	}
	carve, shadows, err := protect(p.Workspace)
	if err != nil {
		return nil, nil, err
	}
	forbidden, more := forbiddenMounts(p, append(slices.Clone(roots), carve...))
	return slices.Concat(roots, carve, forbidden), append(shadows, more...), nil
}

func checkPolicy(p Policy) error {
	if p.Workspace == "" {
		return errors.New("box policy: no workspace")
	}
	for _, path := range slices.Concat([]string{p.Workspace}, p.Caches, p.Writable, p.Readable, p.ForbidRead, present(p.Home), present(p.Temp)) {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || strings.ContainsRune(path, 0) {
			return fmt.Errorf("box policy: path %q is not absolute and clean", path)
		}
	}
	for _, path := range slices.Concat([]string{p.Workspace}, p.Writable) {
		switch path {
		case "/", "/proc", "/dev", "/sys", "/run", "/etc", "/usr":
			return fmt.Errorf("box policy: %s is never writable", path)
		}
	}
	return nil
}

func present(path string) []string {
	if path == "" {
		return nil
	}
	return []string{path}
}

func rootMounts(p Policy) []mount {
	var out []mount
	if p.Temp != "" {
		out = append(out, mount{kind: bindRW, src: p.Temp, dest: "/tmp"})
	}
	for _, path := range p.Readable {
		if !inBase(path) {
			out = append(out, mount{kind: bindRO, src: path, dest: path})
		}
	}
	for _, path := range slices.Concat(present(p.Home), p.Caches, p.Writable) {
		if p.ReadOnly && within(p.Workspace, path) {
			continue // Plan: nothing in the workspace is writable, whatever else grants it
		}
		out = append(out, mount{kind: bindRW, src: path, dest: path})
	}
	work := mount{kind: bindRW, src: p.Workspace, dest: p.Workspace}
	if p.ReadOnly {
		work.kind = bindRO
	}
	out = append(out, work)
	slices.SortStableFunc(out, func(a, b mount) int { return depth(a.dest) - depth(b.dest) })
	return out
}

func depth(path string) int { return strings.Count(path, "/") }

func inBase(path string) bool {
	return slices.ContainsFunc(baseTrees(), func(b string) bool { return within(b, path) })
}

// forbiddenMounts masks what exists, and shadows what could come to exist in a place the task can write.
func forbiddenMounts(p Policy, visible []mount) ([]mount, []shadow) {
	var out []mount
	var shadows []shadow
	for _, path := range p.ForbidRead {
		real := resolve(path)
		around, writable := reach(visible, real)
		if around == "" && !inBase(real) {
			continue // not in the box at all
		}
		info, err := os.Stat(real)
		if err == nil && around != "" && IsShadow(info) {
			shadows = append(shadows, shadow{root: around, path: real, dir: info.IsDir()})
		}
		switch {
		case err == nil && info.IsDir():
			out = append(out, mount{kind: maskDir, dest: real})
		case err == nil:
			out = append(out, mount{kind: maskFile, dest: real})
		case writable:
			missing := firstMissing(real)
			shadows = append(shadows, shadow{root: around, path: missing})
			out = append(out, mount{kind: maskFile, dest: missing})
		}
	}
	return out, shadows
}

// resolve follows the links of what exists of path and leaves the rest as it is.
func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil || path == "/" {
		return real
	}
	return filepath.Join(resolve(filepath.Dir(path)), filepath.Base(path))
}

// reach gives the nearest root around path that the box shows, and whether it is writable.
func reach(mounts []mount, path string) (around string, writable bool) {
	best := -1
	for _, m := range mounts {
		if within(m.dest, path) && depth(m.dest) >= best && m.src == m.dest {
			best, around, writable = depth(m.dest), m.dest, m.kind == bindRW
		}
	}
	return around, writable
}

// firstMissing is the topmost part of path that does not exist: as long as it is shadowed, nothing below can appear.
func firstMissing(path string) string {
	for {
		parent := filepath.Dir(path)
		if _, err := os.Lstat(parent); err == nil || parent == path {
			return path
		}
		path = parent
	}
}
