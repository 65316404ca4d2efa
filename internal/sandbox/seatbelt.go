package sandbox

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// The box of macOS is a profile for sandbox-exec. It is made here, on every system, so that it can be tested on every system. Among its
// rules the last one that matches counts.

// seatbeltBase is readable in every box: the system and the toolchains, but no home and nothing that runs.
var seatbeltBase = []string{"/System", "/usr", "/bin", "/sbin", "/opt/homebrew", "/opt/local", "/Library/Apple", "/Library/Developer", "/Library/Java",
	"/Library/Frameworks", "/Applications/Xcode.app/Contents/Developer", "/private/etc/ssl", "/private/etc/paths", "/private/etc/paths.d", "/private/etc/shells",
	"/private/etc/passwd", "/private/etc/group", "/private/etc/hosts", "/private/etc/localtime", "/private/var/db/timezone", "/private/var/db/dyld", "/private/var/select"}

var seatbeltDevices = []string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"}

// seatbeltGuarded are the places of a workspace that make a later command or the host run something, whether they exist or not.
var seatbeltGuarded = append(slices.Clone(Protected), ".git/config", ".git/config.worktree", ".git/hooks", ".git/info/attributes", ".git/commondir",
	".git/modules", ".git/worktrees")

// seatbeltFixed are folders that may be written but not moved or removed, because a guarded place lies in them.
var seatbeltFixed = []string{".git", ".git/info"}

// seatbeltProfile is the profile of a policy.
func seatbeltProfile(p Policy) (string, error) {
	if p.Network != nil {
		return "", errors.New("the box of macOS has no network yet: leave network = true out")
	}
	if err := checkSeatbelt(p); err != nil {
		return "", err
	}
	work := privatePath(p.Workspace)
	var write []string
	for _, dir := range slices.Concat(nonEmpty(p.Home), nonEmpty(p.Temp), p.Caches, p.Writable) {
		if dir = privatePath(dir); p.ReadOnly && below(work, dir) {
			continue // Plan: nothing in the workspace is writable, whatever else grants it
		}
		write = append(write, dir)
	}
	if !p.ReadOnly {
		write = append(write, work)
	}
	read := slices.Concat(seatbeltBase, privatePaths(p.Readable), []string{work}, write)
	var b strings.Builder
	b.WriteString(seatbeltHead)
	rules(&b, "allow file-read-metadata", "literal", ancestors(read))
	rules(&b, "allow file-read*", "subpath", read)
	rules(&b, "allow file-read* file-write-data file-ioctl", "literal", seatbeltDevices)
	rules(&b, "allow file-write*", "subpath", write)
	if !p.ReadOnly {
		guard(&b, work)
	}
	rules(&b, "deny file-read* file-write*", "subpath", privatePaths(p.ForbidRead))
	return b.String(), nil
}

// seatbeltHead: processes see and signal only those of the same box, and there is no network at all.
const seatbeltHead = `(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow file-read* (literal "/"))
(deny network*)
`

// guard denies writing what is protected. Names are matched whatever their case, because the usual file system of macOS does not tell them
// apart, and a file that does not exist yet has no spelling of its own.
func guard(b *strings.Builder, work string) {
	b.WriteString("(deny file-write*")
	for _, name := range seatbeltGuarded {
		b.WriteString("\n  (regex " + sbplString("^"+regexp.QuoteMeta(work)+"/"+caseless(name)+"(/|$)") + ")")
	}
	b.WriteString(")\n(deny file-write*")
	for _, name := range seatbeltFixed {
		b.WriteString("\n  (regex " + sbplString("^"+regexp.QuoteMeta(work)+"/"+caseless(name)+"$") + ")")
	}
	b.WriteString(")\n")
}

// caseless matches a name in any case.
func caseless(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsLetter(r) {
			b.WriteString("[" + string(unicode.ToLower(r)) + string(unicode.ToUpper(r)) + "]")
			continue
		}
		b.WriteString(regexp.QuoteMeta(string(r)))
	}
	return b.String()
}

// rules writes one rule for a list of paths, each once; without paths there is none, because a rule without a filter matches everything.
func rules(b *strings.Builder, action, filter string, paths []string) {
	if len(paths) == 0 {
		return
	}
	b.WriteString("(" + action)
	var seen []string
	for _, p := range paths {
		if !slices.Contains(seen, p) {
			b.WriteString("\n  (" + filter + " " + sbplString(p) + ")")
			seen = append(seen, p)
		}
	}
	b.WriteString(")\n")
}

// sbplString quotes for the profile's language, in which only the quote and the backslash are special.
func sbplString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// checkSeatbelt refuses paths that could end a string or mean another place. Paths are those of macOS, whatever system this runs on.
func checkSeatbelt(p Policy) error {
	if p.Workspace == "" {
		return errors.New("box policy: no workspace")
	}
	all := slices.Concat([]string{p.Workspace}, p.Caches, p.Writable, p.Readable, p.ForbidRead, nonEmpty(p.Home), nonEmpty(p.Temp))
	for _, name := range all {
		if !path.IsAbs(name) || path.Clean(name) != name || strings.ContainsFunc(name, unicode.IsControl) {
			return fmt.Errorf("box policy: path %q is not absolute and clean", name)
		}
	}
	for _, name := range slices.Concat([]string{p.Workspace}, p.Writable) {
		switch privatePath(name) {
		case "/", "/private", "/private/etc", "/private/var", "/private/tmp", "/System", "/Library", "/usr", "/dev", "/Users", "/Volumes":
			return fmt.Errorf("box policy: %s is never writable", name)
		}
	}
	return nil
}

// privatePath: /tmp, /var and /etc are links into /private on macOS, and a profile is matched against the real path.
func privatePath(name string) string {
	for _, link := range []string{"/tmp", "/var", "/etc"} {
		if below(link, name) {
			return "/private" + name
		}
	}
	return name
}

func privatePaths(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = privatePath(n)
	}
	return out
}

// ancestors are the folders above: programs look at each of them on their way.
func ancestors(names []string) (out []string) {
	for _, n := range names {
		for dir := path.Dir(n); dir != "/"; dir = path.Dir(dir) {
			if !slices.Contains(out, dir) {
				out = append(out, dir)
			}
		}
	}
	return append(out, "/tmp", "/var", "/etc") // the links themselves
}

func below(root, name string) bool {
	return name == root || strings.HasPrefix(name, strings.TrimSuffix(root, "/")+"/")
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}
