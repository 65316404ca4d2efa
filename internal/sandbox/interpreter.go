package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"reasonix/internal/tool"
)

// ShellChoice is [tools.shell]: which program runs the lines of the bash tool (Spec, section 5).
type ShellChoice struct {
	Prefer string // "auto" (or empty), "bash", "powershell" or "pwsh"
	Path   string // absolute; empty: where the program usually is
}

// Interpreter runs the lines. The zero value is bash at its usual place.
type Interpreter struct {
	program string // absolute, but for bash on Windows, which may be found on PATH
	power   bool
}

// PowerShell tells that lines are not bash: permission rules cannot look into them.
func (i Interpreter) PowerShell() bool { return i.power }

// Program is what runs the lines.
func (i Interpreter) Program() string {
	if i.program == "" {
		return bashPath()
	}
	return i.program
}

func (i Interpreter) argv(line string) []string {
	if i.power {
		return []string{i.program, "-NoLogo", "-NoProfile", "-NonInteractive", "-Command", line}
	}
	return []string{i.Program(), "-c", line}
}

// Shell is NewShell with this interpreter.
func (i Interpreter) Shell(box Box, policy func() Policy) tool.Shell { return shell{box, policy, i} }

// Jobs is NewJobs with this interpreter.
func (i Interpreter) Jobs(box Box, policy func() Policy) *Jobs {
	return &Jobs{shell: shell{box, policy, i}, list: map[string]*job{}}
}

// Language implements an optional part of tool.Shell: what the model has to write.
func (s shell) Language() string {
	if s.with.power {
		return "PowerShell"
	}
	return "bash"
}

// Check says what cannot be meant on any machine.
func (c ShellChoice) Check() error {
	if !slices.Contains([]string{"", "auto", "bash", "powershell", "pwsh"}, c.Prefer) {
		return fmt.Errorf("tools.shell.prefer = %q: use one of auto, bash, powershell, pwsh", c.Prefer)
	}
	if strings.ContainsAny(c.Path, "\x00\n") {
		return errors.New("tools.shell.path holds a control character")
	}
	return nil
}

// Find resolves the choice on this machine. boxed tells that lines run in a box, which shows the base system alone. A program inside
// one of the workspaces, or where somebody else can write, is refused.
func (c ShellChoice) Find(boxed bool, workspaces []string) (Interpreter, error) {
	return c.find(finder{goos: runtime.GOOS, boxed: boxed, look: exec.LookPath, trusted: func(path string) string {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return err.Error()
		}
		return distrust(path, real, workspaces)
	}})
}

// finder is what Find asks the machine.
type finder struct {
	goos    string
	boxed   bool
	look    func(name string) (string, error)
	trusted func(path string) string // why not
}

func (c ShellChoice) find(f finder) (Interpreter, error) {
	if err := c.Check(); err != nil {
		return Interpreter{}, err
	}
	power := c.Prefer == "powershell" || c.Prefer == "pwsh"
	if power && f.goos != "windows" {
		return Interpreter{}, fmt.Errorf("tools.shell.prefer = %q: PowerShell runs lines on Windows only; use \"auto\" or \"bash\" here", c.Prefer)
	}
	if c.Path != "" {
		return c.at(f)
	}
	if f.goos != "windows" {
		return Interpreter{}, nil
	}
	names := []string{c.Prefer}
	if c.Prefer == "" || c.Prefer == "auto" {
		names = []string{"bash", "pwsh", "powershell"}
	}
	for _, name := range names {
		if path, err := f.look(name); err == nil {
			return Interpreter{program: path, power: name != "bash"}, nil
		}
	}
	return Interpreter{}, fmt.Errorf("no %s on PATH: install Git for Windows or PowerShell, or name the program with tools.shell.path", strings.Join(names, ", "))
}

// at takes the program that the path names; its file name has to say what it is.
func (c ShellChoice) at(f finder) (Interpreter, error) {
	bad := func(format string, args ...any) (Interpreter, error) {
		return Interpreter{}, fmt.Errorf("tools.shell.path = %q: "+format, append([]any{c.Path}, args...)...)
	}
	slashed := strings.ReplaceAll(c.Path, `\`, "/")
	absolute := strings.HasPrefix(c.Path, "/")
	if f.goos == "windows" {
		absolute = len(slashed) > 2 && slashed[1:3] == ":/"
	} else {
		slashed = c.Path
	}
	if !absolute {
		return bad("name the program with its absolute path")
	}
	name := slashed[strings.LastIndex(slashed, "/")+1:]
	if f.goos == "windows" {
		name = strings.TrimSuffix(strings.ToLower(name), ".exe")
	}
	power := name == "powershell" || name == "pwsh"
	switch {
	case name != "bash" && !power:
		return bad("it has to be a bash, powershell or pwsh")
	case power && f.goos != "windows":
		return bad("PowerShell runs lines on Windows only; name a bash, or leave path away")
	case c.Prefer != "" && c.Prefer != "auto" && c.Prefer != name:
		return bad("prefer asks for %s; make them agree", c.Prefer)
	}
	if why := f.trusted(c.Path); why != "" {
		return bad("it cannot be used: %s", why)
	}
	if f.boxed && !shownInABox(c.Path) {
		return bad("a box shows only %s and what belongs to them; name a bash there, or leave path away", strings.Join(baseTrees(), ", "))
	}
	return Interpreter{program: c.Path, power: power}, nil
}

// baseTrees are the folders of programs that every box shows.
func baseTrees() []string { return []string{"/usr", "/nix/store"} }

func shownInABox(path string) bool {
	return slices.ContainsFunc(append(baseTrees(), "/bin"), func(b string) bool { return within(b, path) })
}

// bashPath is bash at its usual absolute place; where there is none the name alone is left to say so.
func bashPath() string {
	for _, p := range []string{"/bin/bash", "/usr/bin/bash"} {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	return "bash"
}
