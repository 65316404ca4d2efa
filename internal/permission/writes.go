package permission

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// extraWrites are the additional_write_dirs of a bash call that no root holds. What cannot be read is passed on as it stands: it
// is asked about and then refused by the tool.
func (s *subject) extraWrites() []string {
	raw, ok := s.args["additional_write_dirs"]
	if !ok || string(raw) == "null" {
		return nil
	}
	var dirs, out []string
	if err := json.Unmarshal(raw, &dirs); err != nil {
		return []string{string(raw)}
	}
	for _, d := range dirs {
		if abs := s.absolute(d); !s.writable(abs) {
			out = append(out, abs)
		}
	}
	return out
}

// writeAsk is the question about places outside the roots.
func (s *subject) writeAsk(places []string) Decision {
	slices.Sort(places)
	places = slices.Compact(places)
	reason := "write access outside the roots always needs a person: " + strings.Join(places, ", ")
	for _, p := range places {
		if s.call.Home != "" && within(p, filepath.ToSlash(s.call.Home)) {
			reason += ". Warning: " + p + " holds the whole home folder of the host's user, with its keys and settings"
		}
	}
	return Decision{Kind: KindWrite, Reason: reason, Writes: places, Folders: s.folders(places)}
}

// folders are what a person may open for later calls: those that a command names, or those that hold a file tool's targets (Spec, section 5).
// Folders of the system or of the host's state are opened for no later call.
func (s *subject) folders(places []string) []string {
	var out []string
	for _, p := range places {
		if s.call.Tool != "bash" {
			p = path.Dir(p)
		}
		if p = path.Clean(p); !path.IsAbs(p) && filepath.VolumeName(filepath.FromSlash(p)) == "" || s.guarded(p, true) != "" {
			return nil
		}
		out = append(out, p)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// guarded says why a place is never opened for writing; empty when it may be. The system's own places are closed to boxes and to later calls; a
// file tool may be let write one of them, once.
func (s *subject) guarded(p string, system bool) string {
	if strings.ContainsFunc(p, unreadable) {
		return fmt.Sprintf("%q is never opened for writing: its name holds a character that no card can show", p)
	}
	if path.Clean(p) == "/" {
		return "the root of the file system is never opened for writing"
	}
	for _, n := range s.call.Never {
		if n = filepath.ToSlash(n); within(n, p) || within(p, n) {
			return p + " is never opened for writing: the host keeps its own state there"
		}
	}
	if system && slices.ContainsFunc(systemFolders, func(n string) bool { return within(n, p) }) {
		return p + " is never opened for writing: it belongs to the system"
	}
	return ""
}

// unreadable characters end a line, or change how the text around them is shown.
func unreadable(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// systemFolders hold programs and devices; the box never opens them for writing either.
var systemFolders = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/nix", "/proc", "/root/.ssh", "/run", "/sbin", "/sys", "/usr", "/var/run"}

// neverWritten says why no answer can open a place that the call wants to write outside the roots.
func (s *subject) neverWritten() string {
	var places []string
	switch {
	case s.call.Tool == "bash":
		places = s.extraWrites()
	case editTools[s.call.Tool] && s.call.Root != "":
		for _, p := range s.paths {
			for _, raw := range []string{p.Raw, p.Resolved} {
				if abs := s.absolute(raw); raw != "" && !s.writable(abs) {
					places = append(places, abs)
				}
			}
		}
	}
	for _, p := range places {
		if why := s.guarded(p, s.call.Tool == "bash"); why != "" {
			return why
		}
	}
	return ""
}
