package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"reasonix/internal/agent"
	"reasonix/internal/config"
	"reasonix/internal/permission"
	"reasonix/internal/run"
	"reasonix/internal/sandbox"
	"reasonix/internal/session"
	"reasonix/internal/task"
	"reasonix/internal/tool"
)

// terminalSpec equips a headless run in a folder: file tools on the folder, bash in a box, rules of user and project.
func (a *app) terminalSpec(ctx context.Context, cfg config.Config, log session.Log, dir string, f runFlags) (run.Spec, func(), error) {
	home, err := config.Home(a.getenv)
	if err != nil {
		return run.Spec{}, nil, err
	}
	root, err := workspaceRoot(cfg, dir)
	if err != nil {
		return run.Spec{}, nil, err
	}
	write := append(expanded(cfg.Sandbox.AllowWrite), home)
	files, err := sandbox.NewFiles(sandbox.FilesConfig{Workspace: root, Write: write, ReadAnywhere: true, ForbidRead: expanded(cfg.Sandbox.ForbidRead)})
	if err != nil {
		return run.Spec{}, nil, err
	}
	standing := run.NewStanding(f.posture, f.plan)
	shell, jobs, digest, cleanup, err := a.terminalShell(ctx, cfg, home, root, standing)
	if err != nil {
		return run.Spec{}, nil, err
	}
	own, err := systemPrompt(cfg)
	if err != nil {
		return run.Spec{}, cleanup, err
	}
	s := run.Spec{
		Session: log, Mode: f.mode(), Standing: standing, ReadOnlyBox: cfg.Sandbox.Bash != "off", BlockedRepeats: cfg.Agent.GoalBlockedRepeats, WorkDir: root, BoxDigest: digest, Temperature: cfg.Agent.Temperature, MaxSteps: f.maxSteps,
		System: run.System(own, root, runtime.GOOS+"/"+runtime.GOARCH, true, cfg.Sandbox.Network),
	}
	if s.Hooks, err = hooksOf(cfg, root, "", &s); err != nil {
		return run.Spec{}, cleanup, err
	}
	s.Gate = run.Rules{
		Policy: rulesOf(cfg), WriteRoots: write, Never: []string{home}, Home: userHome(), Managed: []string{filepath.Join(home, "config.toml"), filepath.Join(home, ".env")}, Standing: standing,
		Situation: permission.Situation{Posture: permission.Posture(f.posture), Surface: permission.Headless},
	}.WithHooks(s.Hooks)
	kit := run.Kit{Files: files, Shell: shell, Background: jobs, Enabled: cfg.Tools.Enabled}
	if n := terminalNetwork(cfg); n != nil {
		if kit.Web, err = n.Client(); err != nil {
			return run.Spec{}, cleanup, err
		}
	}
	err = kit.Fill(ctx, &s)
	return s, cleanup, err
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

// terminalShell puts bash into a box on the folder. Without one bash = "enforce" refuses every command and says how to mend it.
func (a *app) terminalShell(ctx context.Context, cfg config.Config, home, root string, standing *run.Standing) (tool.Shell, tool.Background, string, func(), error) {
	box, report, err := sandbox.Detect(ctx, boxConfig(cfg, root))
	if errors.Is(err, sandbox.ErrUnavailable) {
		return noShell{fmt.Sprintf("there is no sandbox on this machine (%s). %s, or set [sandbox] bash = \"off\" to run commands unconfined", report.Reason, report.Mend)}, nil, "none", func() {}, nil
	}
	if err != nil {
		return nil, nil, "", nil, err
	}
	if err := checkBoxNetwork(box, cfg); err != nil {
		return noShell{err.Error()}, nil, "none", func() {}, nil
	}
	scratch, err := scratchDirs(home, root)
	if err != nil {
		return nil, nil, "", nil, err
	}
	policy := sandbox.Policy{
		Workspace: root, Home: scratch.home, Temp: scratch.temp, Caches: []string{scratch.caches}, Writable: expanded(cfg.Sandbox.AllowWrite),
		Readable: toolchains(), ForbidRead: expanded(cfg.Sandbox.ForbidRead), Env: sandbox.BoxEnv(os.LookupEnv, scratch.home, "/tmp", scratch.caches),
		Limits: sandbox.Limits{Wall: time.Duration(cfg.Tools.BashTimeoutSeconds) * time.Second},
	}
	policy.Network = terminalNetwork(cfg)
	now := func() sandbox.Policy { return planned(policy, standing) }
	jobs := sandbox.NewJobs(box, now)
	return sandbox.NewShell(box, now), jobs, policy.DigestIn(box), func() {
		jobs.Close()
		_ = os.RemoveAll(scratch.temp)
	}, nil
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

func restoredNote(t task.Task) agent.Steer {
	return agent.Steer{Key: fmt.Sprintf("restored:%s:%d", t.ID, t.Attempts), Text: "The host: the workspace was restored from its last snapshot. Files that git ignores are gone and have to be made again."}
}
