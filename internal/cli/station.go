package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"reasonix/internal/config"
	"reasonix/internal/permission"
	"reasonix/internal/run"
	"reasonix/internal/sandbox"
	"reasonix/internal/session"
	"reasonix/internal/tool"
)

// station is a folder that a person at a terminal works in: file tools on the folder, bash in a box, rules of user and project. Its box and
// what runs in the background live as long as it does; each attempt is equipped anew.
type station struct {
	cfg     config.Config
	home    string // of the configuration
	root    string // the workspace
	box     sandbox.Box
	why     string              // no box: what every command is told
	with    sandbox.Interpreter // of the lines of bash
	scratch scratch
	jobs    *sandbox.Jobs

	mu       sync.Mutex
	standing *run.Standing // of the attempt that runs
	dirs     []string      // opened for writing on top of the configuration
}

// openStation really runs a command in a box. Without one bash = "enforce" refuses every command and says how to mend it.
func (a *app) openStation(ctx context.Context, cfg config.Config, dir string) (*station, error) {
	home, err := config.Home(a.getenv)
	if err != nil {
		return nil, err
	}
	root, err := workspaceRoot(cfg, dir)
	if err != nil {
		return nil, err
	}
	s := &station{cfg: cfg, home: home, root: root}
	box, report, err := sandbox.Detect(ctx, boxConfig(cfg, root))
	if errors.Is(err, sandbox.ErrUnavailable) {
		s.why = fmt.Sprintf("there is no sandbox on this machine (%s). %s, or set [sandbox] bash = \"off\" to run commands unconfined", report.Reason, report.Mend)
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if err := checkBoxNetwork(box, cfg); err != nil {
		s.why = err.Error()
		return s, nil
	}
	s.box = box
	if s.with, err = shellChoice(cfg).Find(box.Name() != "off", []string{root}); err != nil {
		return nil, err
	}
	if s.scratch, err = scratchDirs(home, root); err != nil {
		return nil, err
	}
	s.jobs = s.with.Jobs(box, s.policy)
	return s, nil
}

// Close ends what runs in the background.
func (s *station) Close() {
	if s.jobs != nil {
		s.jobs.Close()
		_ = os.RemoveAll(s.scratch.temp)
	}
}

// reconfigure takes a changed configuration for the attempts that follow.
func (s *station) reconfigure(cfg config.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg = cfg
}

// policy is the box as it stands now.
func (s *station) policy() sandbox.Policy {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.configured()
	p.Writable = append(p.Writable, s.dirs...)
	return planned(p, s.standing)
}

// configured is the box without what was granted: a grant that comes with an answer is no drift of the action that it answers.
func (s *station) configured() sandbox.Policy {
	return sandbox.Policy{
		Workspace: s.root, Home: s.scratch.home, Temp: s.scratch.temp, Caches: []string{s.scratch.caches}, Writable: expanded(s.cfg.Sandbox.AllowWrite),
		Readable: toolchains(), ForbidRead: expanded(s.cfg.Sandbox.ForbidRead), Env: sandbox.BoxEnv(os.LookupEnv, s.scratch.home, "/tmp", s.scratch.caches),
		Limits:  boxLimits(s.cfg, false),
		Network: terminalNetwork(s.cfg),
	}
}

// equipment is what an attempt adds to its station.
type equipment struct {
	log      session.Log
	surface  permission.Surface
	standing *run.Standing
	grants   []permission.Rule
	dirs     []string
	keep     bool // what runs in the background goes on from attempt to attempt
}

// equip fills the spec of an attempt, but for what it is about: mode, prompt and model.
func (s *station) equip(ctx context.Context, e equipment) (run.Spec, error) {
	write := append(append(expanded(s.cfg.Sandbox.AllowWrite), s.home), e.dirs...)
	files, err := sandbox.NewFiles(sandbox.FilesConfig{Workspace: s.root, Write: write, ReadAnywhere: true, ForbidRead: expanded(s.cfg.Sandbox.ForbidRead)})
	if err != nil {
		return run.Spec{}, err
	}
	s.mu.Lock()
	s.standing, s.dirs = e.standing, e.dirs
	s.mu.Unlock()
	own, err := systemPrompt(s.cfg)
	if err != nil {
		return run.Spec{}, err
	}
	spec := run.Spec{
		Session: e.log, Standing: e.standing, ReadOnlyBox: s.cfg.Sandbox.Bash != "off", BlockedRepeats: s.cfg.Agent.GoalBlockedRepeats, WorkDir: s.root,
		BoxDigest: "none", Temperature: s.cfg.Agent.Temperature, System: run.System(own, s.root, runtime.GOOS+"/"+runtime.GOARCH, true, s.cfg.Sandbox.Network),
	}
	if spec.Hooks, err = hooksOf(s.cfg, s.root, "", &spec); err != nil {
		return run.Spec{}, err
	}
	spec.Gate = run.Rules{
		Policy: rulesOf(s.cfg), Grants: e.grants, WriteRoots: write, Never: []string{s.home}, Home: userHome(), Standing: e.standing,
		Managed:   []string{filepath.Join(s.home, "config.toml"), filepath.Join(s.home, ".env")},
		Situation: permission.Situation{Posture: permission.Posture(e.standing.Posture()), Surface: e.surface},
	}.WithHooks(spec.Hooks)
	kit := run.Kit{Files: files.While(e.standing.Planning), Shell: noShell{s.why}, Enabled: s.cfg.Tools.Enabled}
	if s.box != nil {
		spec.BoxDigest = s.configured().DigestIn(s.box)
		kit.Shell, kit.Background = s.with.Shell(s.box, s.policy), s.jobs
		if e.keep {
			kit.Runs = s.jobs.Knows
		}
	}
	if n := terminalNetwork(s.cfg); n != nil {
		if kit.Web, err = n.Client(); err != nil {
			return run.Spec{}, err
		}
	}
	return spec, kit.Fill(ctx, &spec)
}

// boxWords say for status where commands may act.
func (s *station) boxWords() string {
	switch {
	case s.box == nil:
		return "none: " + s.why
	case s.cfg.Sandbox.Bash == "off":
		return "off: commands run unconfined; file tools keep to " + s.root
	}
	words := s.box.Name() + ", no network"
	if s.cfg.Sandbox.Network {
		words = s.box.Name() + ", HTTP and HTTPS through a proxy"
	}
	return words + "; writable: " + s.root
}

func workspaceRoot(cfg config.Config, dir string) (string, error) {
	root := dir
	if cfg.Sandbox.WorkspaceRoot != "" {
		root = config.ExpandHome(cfg.Sandbox.WorkspaceRoot)
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

func terminalNetwork(cfg config.Config) *sandbox.Network {
	if !cfg.Sandbox.Network {
		return nil
	}
	return &sandbox.Network{AllowHosts: cfg.Sandbox.AllowHosts}
}

// noShell refuses every command with the reason.
type noShell struct{ why string }

func (n noShell) Run(context.Context, tool.Command) (tool.Result, error) {
	return tool.Result{}, errors.New("bash refused: " + n.why)
}

type scratch struct{ home, temp, caches string }

// scratchDirs are the box's own home and caches, kept per folder so that builds stay warm, and a temp folder for this run.
func scratchDirs(home, root string) (scratch, error) {
	base := filepath.Join(home, "boxes", folderName(root))
	s := scratch{home: filepath.Join(base, "home"), caches: filepath.Join(base, "caches")}
	for _, d := range []string{s.home, s.caches} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return s, fmt.Errorf("make the box's folders: %w", err)
		}
	}
	var err error
	s.temp, err = os.MkdirTemp(base, "temp-")
	return s, err
}
