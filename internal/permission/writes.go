package permission

import (
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strings"
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
	return Decision{Kind: KindWrite, Reason: reason, Writes: places}
}

// system folders hold programs and devices; the box never opens them for writing either.
var system = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/nix", "/proc", "/root/.ssh", "/run", "/sbin", "/sys", "/usr", "/var/run"}

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
		if path.Clean(p) == "/" {
			return "the root of the file system is never opened for writing"
		}
		for _, n := range s.call.Never {
			if n = filepath.ToSlash(n); within(n, p) || within(p, n) {
				return p + " is never opened for writing: the host keeps its own state there"
			}
		}
		for _, n := range system {
			if s.call.Tool == "bash" && (within(n, p)) {
				return p + " is never opened for writing: it belongs to the system"
			}
		}
	}
	return ""
}
