package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"reasonix/internal/budget"
	"reasonix/internal/chat"
	"reasonix/internal/config"
	"reasonix/internal/flow"
	"reasonix/internal/permission"
	"reasonix/internal/redact"
	"reasonix/internal/run"
	"reasonix/internal/sandbox"
	"reasonix/internal/task"
	"reasonix/internal/workspace"
)

// workshop sets up attempts from the configuration: it implements flow.Workshop.
type workshop struct {
	cfg    config.Config
	doors  map[string]chat.Door
	spaces *workspace.Store
	box    sandbox.Box // nil: no box on this machine, so no bash
	shell  sandbox.Interpreter
	log    *slog.Logger
	data   string // where workspaces and mirrors live
	home   string // of the configuration and the saved keys
	model  func(ref string) (model, error)
	keeper keeper // what the tasks need, and the quotas

	mu     sync.Mutex
	models map[string]model
}

// openWorkshop opens the workspaces and really runs a command in a box. Without a box the host starts all the same, bash is absent, and the log says so.
func (a *app) openWorkshop(ctx context.Context, h *house, env config.Env, secrets *redact.Redactor) (*workshop, error) {
	data, err := filepath.Abs(config.ExpandHome(h.cfg.Bot.Data))
	if err != nil {
		return nil, err
	}
	home, err := config.Home(a.getenv)
	if err != nil {
		return nil, err
	}
	w := &workshop{home: home, cfg: h.cfg, doors: h.doors, log: h.log, data: data, models: map[string]model{}}
	w.model = func(ref string) (model, error) { return a.openModel(h.cfg, env, ref) }
	boxes := boxConfig(h.cfg, data)
	boxes.Bash = "enforce" // bot tasks never run unconfined
	box, report, err := sandbox.Detect(ctx, boxes)
	switch {
	case errors.Is(err, sandbox.ErrUnavailable):
		h.log.Warn("no sandbox: tasks have no bash, and what they change cannot be published", "reason", report.Reason, "mend", report.Mend)
	case err != nil:
		return nil, err
	default:
		w.box = taskBox(box)
	}
	if w.box == nil && err == nil {
		h.log.Warn("no sandbox: tasks have no bash, and what they change cannot be published", "reason", strings.Join(report.Warnings, "; "))
	}
	if sandbox.Reduced(box) {
		h.log.Warn("tasks run in the reduced box, which allow_reduced_box = true allows; `reasonix doctor` lists what it does not hold", "reason", report.NoFull)
	}
	if err := checkBoxNetwork(box, h.cfg); err != nil {
		return nil, err
	}
	if w.shell, err = shellChoice(h.cfg).Find(w.box != nil, []string{data}); err != nil {
		return nil, err
	}
	w.spaces, err = workspace.Open(data, workspace.Options{
		Box: w.box, SetupCache: int64(h.cfg.Bot.SetupCacheMB) << 20,
		Warn: func(err error) { h.log.Warn("workspaces", "error", err) },
		Scan: scanWith(secrets),
	})
	return w, err
}

// taskBox: a box that confines nothing, as Windows has, is none for tasks of other people's text.
func taskBox(box sandbox.Box) sandbox.Box {
	if box == nil || box.Name() == "off" {
		return nil
	}
	return box
}

// scanWith looks for secrets in what would be published: those the host knows and the usual patterns. A scan that fails finds something: it
// must not let a diff through unseen.
func scanWith(secrets *redact.Redactor) func(string) []string {
	return func(diff string) []string {
		findings, err := secrets.Scan(diff)
		if err != nil {
			return []string{"the diff could not be scanned for secrets: " + err.Error()}
		}
		found := make([]string, len(findings))
		for i, f := range findings {
			found[i] = f.String()
		}
		return found
	}
}

// notice is shown by surfaces when the default model is a scenario or the box a reduced one.
func (w *workshop) notice() string {
	var words []string
	if m, err := w.open(""); err == nil && m.scripted {
		words = append(words, "The model is a written scenario. Its tool calls are real: they run in the sandbox and change real files.")
	}
	if sandbox.Reduced(w.box) {
		words = append(words, "Commands run in the reduced box: the page Health and `reasonix doctor` list what it does not hold.")
	}
	return strings.Join(words, " ")
}

// boxKind is shown beside each task where the box is not the full one.
func (w *workshop) boxKind() string {
	switch {
	case w.box == nil:
		return "none (no bash)"
	case sandbox.Reduced(w.box):
		return "reduced (" + w.box.Name() + ")"
	}
	return ""
}

// open builds a model once.
func (w *workshop) open(ref string) (model, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, ok := w.models[ref]; ok {
		return m, nil
	}
	m, err := w.model(ref)
	if err == nil {
		w.models[ref] = m
	}
	return m, err
}

// Price is a model's configured price.
func (w *workshop) Price(ref string) budget.Price {
	m, err := w.open(ref)
	if err != nil {
		return budget.Price{}
	}
	return m.price()
}

// Prepare opens or makes the task's workspace.
func (w *workshop) Prepare(ctx context.Context, t task.Task, grants []flow.Grant) (flow.Bench, error) {
	m, err := w.open(t.Spec.Model)
	if err != nil {
		return nil, err
	}
	repo, err := w.repo(t.Spec.Repo)
	if err != nil {
		return nil, err
	}
	req := workspace.Request{
		ID: t.WorkspaceID, Repo: repo.Name, URL: config.ExpandHome(repo.URL), Base: cmp.Or(t.Spec.Base, repo.Base), SHA: t.Spec.SHA, Branch: t.Branch,
		Resume:     t.Parent != "" || t.Attempts > 1,
		SetupFiles: repo.SetupFiles,
		Admit:      func(ctx context.Context) error { return w.keeper.admit(ctx, t.Spec.Route) },
		Credential: w.credential(repo),
	}
	if t.Spec.Publish != nil {
		req.Rules.Protect = t.Spec.Publish.Protect
	}
	space, err := w.spaces.Prepare(ctx, req)
	if err != nil {
		return nil, mendRepo(err, repo)
	}
	b := &bench{shop: w, t: t, grants: grants, model: m, repo: repo, space: space}
	if err := b.open(ctx); err != nil {
		return nil, err
	}
	if err := space.Setup(ctx, repo.Setup, b.extra(), nil); err != nil {
		return nil, fmt.Errorf("%w. Check setup of the repository %q under [[repos]]: it runs in the sandbox, %s", err, repo.Name, networkWords(t.Spec.Network))
	}
	return b, nil
}

// mendRepo says what a person can do about a repository that cannot be used.
func mendRepo(err error, repo config.Repo) error {
	switch {
	case errors.Is(err, workspace.ErrNoRoom):
		return fmt.Errorf("%w. End or answer waiting tasks, or raise max_workspaces or max_workspaces_mb, then continue", err)
	case errors.Is(err, workspace.ErrNoRepository):
		return fmt.Errorf("%w. Check url and connection of the repository %q under [[repos]], then continue", err, repo.Name)
	case errors.Is(err, workspace.ErrNoBase):
		return fmt.Errorf("%w. Check base of the repository %q under [[repos]], then continue", err, repo.Name)
	}
	return err
}

func (w *workshop) repo(name string) (config.Repo, error) {
	if name == "" {
		return config.Repo{}, nil // an empty repository: work that needs no source
	}
	i := slices.IndexFunc(w.cfg.Repos, func(r config.Repo) bool { return r.Name == name })
	if i < 0 {
		return config.Repo{}, fmt.Errorf("the repository %q is not under [[repos]] any more: add it again, then continue", name)
	}
	return w.cfg.Repos[i], nil
}

// credential asks the door that the repository names; the secret stays in this process.
func (w *workshop) credential(repo config.Repo) workspace.Credential {
	door, ok := w.doors[repo.Via].(chat.Credentials)
	if !ok {
		return nil
	}
	slug := slugOf(repo)
	return func(ctx context.Context) (string, string, error) { return door.GitCredentials(ctx, slug) }
}

// slugOf is the platform's name of a repository, from its url where it is not configured.
func slugOf(repo config.Repo) string {
	if repo.Slug != "" {
		return repo.Slug
	}
	parts := strings.Split(strings.TrimSuffix(strings.TrimSuffix(repo.URL, "/"), ".git"), "/")
	if len(parts) < 2 {
		return ""
	}
	return strings.Join(parts[len(parts)-2:], "/")
}

// bench is one attempt's equipment: it implements flow.Bench.
type bench struct {
	shop   *workshop
	t      task.Task
	grants []flow.Grant
	model  model
	repo   config.Repo
	space  *workspace.Workspace
	jobs   *sandbox.Jobs // nil: no box
	turns  *workspace.Turns
	cfg    config.Config // with the repository's tightening rules
	files  *sandbox.Files
}

// open opens the file tools on the workspace and, through them, reads the repository's own rules, which can only tighten.
func (b *bench) open(ctx context.Context) error {
	cfg := b.shop.cfg
	files, err := sandbox.NewFiles(sandbox.FilesConfig{
		Workspace: b.space.Dir, Write: b.writeRoots(), Readable: toolchains(), ForbidRead: expanded(cfg.Sandbox.ForbidRead),
	})
	if err != nil {
		return err
	}
	b.files, b.cfg = files, cfg
	data, _, err := files.Read(ctx, "reasonix.toml", 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		b.cfg, err = config.Tighten(cfg, "reasonix.toml", data)
	}
	if err != nil {
		return fmt.Errorf("the repository's own reasonix.toml cannot be read: %w", err)
	}
	for _, ignored := range b.cfg.Warnings[len(cfg.Warnings):] {
		b.shop.log.Warn("a repository's own setting has no effect", "task", b.t.ID, "repo", b.repo.Name, "setting", ignored)
	}
	return nil
}

func expanded(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = config.ExpandHome(p)
	}
	return out
}

// toolchains are folders outside the base system that a box may read: a Go tree that is installed elsewhere.
var toolchains = sync.OnceValue(func() []string {
	path, err := exec.LookPath("go")
	if err != nil {
		return nil
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil
	}
	root := filepath.Dir(filepath.Dir(path))
	if strings.HasPrefix(root, "/usr/") || filepath.Base(filepath.Dir(path)) != "bin" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(root, "src", "runtime")); err != nil {
		return nil
	}
	return []string{root}
})

func (b *bench) policy() sandbox.Policy {
	p := b.extra()
	p.Writable = b.writeRoots()
	return b.space.Policy(p)
}

// writeRoots are the configured folders and those that people granted to this task.
func (b *bench) writeRoots() []string {
	roots := expanded(b.shop.cfg.Sandbox.AllowWrite)
	for _, g := range b.grants {
		if dir, ok := g.WriteDir(); ok {
			roots = append(roots, dir)
		}
	}
	return roots
}

// extra is what the configuration adds to the workspace's own box.
func (b *bench) extra() sandbox.Policy {
	return sandbox.Policy{
		Writable: expanded(b.cfg.Sandbox.AllowWrite), Readable: toolchains(), ForbidRead: expanded(b.cfg.Sandbox.ForbidRead),
		Limits:  boxLimits(b.cfg, true),
		Network: b.network(),
	}
}

// network is what the task's route allows; every target is logged on the host.
func (b *bench) network() *sandbox.Network {
	if !b.t.Spec.Network {
		return nil
	}
	return &sandbox.Network{AllowHosts: b.cfg.Sandbox.AllowHosts, Reached: func(target, refused string) {
		if refused != "" {
			b.shop.log.Warn("a box was refused a target", "task", b.t.ID, "target", target, "reason", refused)
			return
		}
		b.shop.log.Info("a box reached", "task", b.t.ID, "target", target)
	}}
}

func networkWords(network bool) string {
	if network {
		return "with HTTP and HTTPS through the host's proxy"
	}
	return "without network (network = true on the route, or under [sandbox], opens HTTP and HTTPS)"
}

// Equip fills the spec: model, tools, rules, tree and box.
func (b *bench) Equip(ctx context.Context, s *run.Spec) error {
	kit := run.Kit{Files: b.files.While(s.Standing.Planning), Enabled: b.cfg.Tools.Enabled}
	if b.shop.box != nil {
		standing := s.Standing
		now := func() sandbox.Policy { return planned(b.policy(), standing) }
		b.jobs = b.shop.shell.Jobs(b.shop.box, now)
		kit.Shell, kit.Background = b.shop.shell.Shell(b.shop.box, now), b.jobs
		s.ReadOnlyBox = true
		b.turns = workspace.NewTurns(b.space, time.Duration(b.shop.cfg.Bot.SnapshotEvery), func(err error) {
			b.shop.log.Warn("snapshot at a turn boundary failed; the workspace itself is there", "task", b.t.ID, "error", err)
		})
		s.Snapshot = b.turns
	}
	if n := b.network(); n != nil {
		web, err := n.Client()
		if err != nil {
			return err
		}
		kit.Web = web
	}
	if err := kit.Fill(ctx, s); err != nil {
		return err
	}
	own, err := systemPrompt(b.cfg)
	if err != nil {
		return err
	}
	if s.Hooks, err = hooksOf(b.cfg, b.space.Dir, b.t.ID, s); err != nil {
		return err
	}
	s.Provider, s.Temperature, s.MaxTokens = b.model.provider, b.cfg.Agent.Temperature, b.model.entry.MaxTokens
	s.System = run.System(own, b.space.Dir, runtime.GOOS+"/"+runtime.GOARCH, kit.Shell != nil, b.t.Spec.Network)
	s.Gate = run.Rules{
		Policy: rulesOf(b.cfg), Grants: flow.GrantRules(b.grants), WriteRoots: b.writeRoots(), Never: b.shop.hostState(), Home: userHome(), Standing: s.Standing,
		Situation: permission.Situation{Posture: permission.Posture(b.t.Spec.Posture), Surface: flow.SurfaceOf(b.t)},
	}.WithHooks(s.Hooks)
	s.Tree, s.WorkDir, s.BlockedRepeats = b.space, b.space.Dir, b.cfg.Agent.GoalBlockedRepeats
	s.Place = b.space.Place()
	s.BoxDigest = b.space.BoxDigest(b.space.Policy(b.extra()), b.shop.box) // without grants: one that comes with a press is no drift
	return b.noteLoss(ctx, s)
}

// planned narrows a box while a plan is not approved: commands may read, and write nothing but their own temp, home and caches.
func planned(p sandbox.Policy, s *run.Standing) sandbox.Policy {
	if s.Planning() {
		p.ReadOnly, p.Writable = true, nil
	}
	return p
}

func systemPrompt(cfg config.Config) (string, error) {
	if cfg.Agent.SystemPromptFile == "" {
		return cfg.Agent.SystemPrompt, nil
	}
	data, err := os.ReadFile(config.ExpandHome(cfg.Agent.SystemPromptFile))
	if err != nil {
		return "", fmt.Errorf("read agent.system_prompt_file: %w", err)
	}
	return string(data), nil
}

func userHome() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return "" // only a warning depends on it
	}
	return home
}

// hostState are the folders that no answer opens for a task: workspaces of others, the database, keys and configuration.
func (w *workshop) hostState() []string {
	state := []string{w.data, w.home}
	if path, err := statePath(w.cfg); err == nil {
		state = append(state, filepath.Dir(path))
	}
	return state
}

// Snapshot keeps the workspace on the host's side.
func (b *bench) Snapshot(ctx context.Context) error {
	_, err := b.space.Snapshot(ctx)
	return err
}

// Harvest reads what the task made.
func (b *bench) Harvest(ctx context.Context, message string) (workspace.Harvest, error) {
	if b.shop.box == nil {
		return workspace.Harvest{Base: b.space.BaseSHA, Head: b.space.BaseSHA, Ignored: []string{"without a sandbox the change cannot be read"}}, nil
	}
	return b.space.Harvest(ctx, message)
}

// Push brings the harvest to where the repository came from.
func (b *bench) Push(ctx context.Context, h workspace.Harvest, branch string) error {
	return b.space.Push(ctx, h, config.ExpandHome(b.repo.URL), branch, b.shop.credential(b.repo))
}

// Close ends what runs in the background and returns the lines of it. The next attempt tells the model, from the transcript.
func (b *bench) Close() []string {
	if b.turns != nil {
		b.turns.Quiet(context.Background()) // its box ends with the attempt
	}
	if b.jobs == nil {
		return nil
	}
	return b.jobs.Close()
}
