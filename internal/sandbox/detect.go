package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Config is the [sandbox] block as far as boxes are concerned.
type Config struct {
	Bash    string // "enforce" (default) or "off"
	Backend string // "auto" (default), "bwrap" or "landlock"
	// AllowReduced lets the reduced box stand in where there is no full one; Backend "landlock" needs it.
	AllowReduced bool
	// Workspaces are folders that tasks can write: a backend's program is never taken from inside one of them.
	Workspaces []string
	Path       string // where to look for programs; empty: PATH of the process
}

// Report says, for people, what was found.
type Report struct {
	Mode     string   // enforce or off
	Backend  string   // name of the box, empty when there is none
	Gaps     []Gap    // what a reduced box does not hold
	NoFull   string   // why the reduced box stands in for the full one; empty where it was asked for
	Program  string   // absolute path of the backend's program
	Version  string   // of that program
	Reason   string   // why there is no box
	Mend     string   // what to do about it
	Warnings []string // works, but should be known
	Limits   []string // limits that hold in this box
	PerCall  []string // those of memory, processes and processors that bound a whole call, by control groups
}

// Detect finds a box and really runs a command in it. With Bash "off" it returns a box named "off" that confines nothing; on
// Windows that is the only mode (Spec, section 5). Without a usable backend it returns ErrUnavailable, and the Report has
// the reason and the mend.
func Detect(ctx context.Context, cfg Config) (Box, Report, error) {
	switch cfg.Bash {
	case "", "enforce", "off":
	default:
		return nil, Report{}, fmt.Errorf("sandbox: bash = %q: use \"enforce\" or \"off\"", cfg.Bash)
	}
	if err := CheckBackend(cfg.Backend, cfg.AllowReduced); err != nil {
		return nil, Report{}, fmt.Errorf("sandbox: %w", err)
	}
	if cfg.Bash == "off" {
		return offBox{}, Report{Mode: "off", Backend: "off", Warnings: []string{"commands run unconfined"}}, nil
	}
	return detect(ctx, cfg)
}

// CheckBackend refuses what nobody should get by accident.
func CheckBackend(backend string, allowReduced bool) error {
	switch backend {
	case "", "auto", "bwrap":
		return nil
	case "landlock":
		if allowReduced {
			return nil
		}
		return errors.New("backend = \"landlock\" is the reduced box, which holds less than the full one (docs/SANDBOX.md lists what it does not hold): " +
			"write allow_reduced_box = true beside it if that is what you want")
	}
	return fmt.Errorf("backend = %q: use \"auto\", \"bwrap\" or \"landlock\"", backend)
}

// detectNone is what a system without a box of its own gets: on Windows the mode is always off, elsewhere there is no box.
func detectNone(goos string) (Box, Report, error) {
	if goos == "windows" {
		return offBox{}, Report{Mode: "off", Backend: "off",
			Warnings: []string{"Windows has no sandbox for commands: bash = \"enforce\" is ignored and commands run unconfined"}}, nil
	}
	return unavailable(Report{Reason: "there is no box for " + goos,
		Mend: "run on Linux with bubblewrap, or set [sandbox] bash = \"off\" to run commands unconfined"})
}

func unavailable(r Report) (Box, Report, error) {
	r.Mode = "enforce"
	return nil, r, fmt.Errorf("%w: %s; %s", ErrUnavailable, r.Reason, r.Mend)
}

// findProgram looks for name in path, but never in a relative folder, inside a workspace, or where somebody else can write.
func findProgram(name, path string, workspaces []string) (string, []string) {
	var skipped []string
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			skipped = append(skipped, fmt.Sprintf("%q: not an absolute folder", dir))
			continue
		}
		file := filepath.Join(dir, name)
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			continue
		}
		if why := distrust(file, real, workspaces); why != "" {
			skipped = append(skipped, file+": "+why)
			continue
		}
		return real, skipped
	}
	return "", skipped
}

func distrust(file, real string, workspaces []string) string {
	for _, w := range workspaces {
		if resolved, err := filepath.EvalSymlinks(w); err == nil {
			w = resolved
		}
		if within(w, real) || within(w, file) {
			return "inside a workspace"
		}
	}
	for _, p := range []string{real, filepath.Dir(real), filepath.Dir(file)} {
		info, err := os.Stat(p)
		if err != nil {
			return err.Error()
		}
		if info.Mode().Perm()&0o002 != 0 {
			return p + " can be written by anybody"
		}
		if !ownedByUs(info) {
			return p + " belongs to another user"
		}
	}
	if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return "not an executable file"
	}
	return ""
}

// firstLine keeps an error message short enough for a report.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if len(s) > 300 {
		s = s[:300] + "…"
	}
	return s
}
