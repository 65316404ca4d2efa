package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reasonix/adapters/cron"
	"reasonix/internal/budget"
	"reasonix/internal/chat"
	"reasonix/internal/config"
	"reasonix/internal/flow"
	"reasonix/internal/permission"
	"reasonix/internal/provider"
	"reasonix/internal/redact"
	"reasonix/internal/store/sqlite"
	"reasonix/internal/task"
)

// house is a host with everything that belongs to it.
type house struct {
	cfg    config.Config
	log    *slog.Logger
	flow   *flow.Host
	doors  map[string]chat.Door
	slots  cron.Slots // how far each schedule came
	state  *sqlite.Store
	closer []func() error
}

func (h *house) close() {
	for _, f := range slices.Backward(h.closer) {
		if err := f(); err != nil {
			h.log.Warn("close", "error", err)
		}
	}
}

// statePath reads [bot].state; SQLite is what is built.
func statePath(cfg config.Config) (string, error) {
	path, ok := strings.CutPrefix(cfg.Bot.State, "sqlite:")
	if !ok || path == "" {
		return "", fmt.Errorf("[bot].state = %q: only sqlite:PATH is available", cfg.Bot.State)
	}
	return filepath.Abs(config.ExpandHome(path))
}

// desk opens the state alone: for commands that look, answer, cancel and retry beside a running host.
func (a *app) desk(ctx context.Context, cfg config.Config, env config.Env) (*house, error) {
	log := slog.New(slog.NewTextHandler(a.errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	h := &house{cfg: cfg, log: log}
	opt, err := a.hostOptions(ctx, h, env)
	if err != nil {
		h.close()
		return nil, err
	}
	h.flow = flow.New(opt)
	return h, nil
}

// assemble opens everything a host works with. What could not be safe is refused here, with the mend in the text.
func (a *app) assemble(ctx context.Context, cfg config.Config, env config.Env, log *slog.Logger) (*house, error) {
	h := &house{cfg: cfg, log: log}
	if err := a.furnish(ctx, h, env); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (a *app) furnish(ctx context.Context, h *house, env config.Env) error {
	if err := checkRoutes(h.cfg); err != nil {
		return err
	}
	opt, err := a.hostOptions(ctx, h, env)
	if err != nil {
		return err
	}
	h.log = slog.New(opt.Redactor.NewHandler(h.log.Handler()))
	opt.Log = h.log
	if h.doors, err = a.openDoors(h.cfg, env, h.slots); err != nil {
		return err
	}
	opt.Doors = h.doors
	opt.Needed = []string{"console"} // a page that nobody can open would look like a host that hangs
	shop, err := a.openWorkshop(ctx, h, env, opt.Redactor)
	if err != nil {
		return err
	}
	opt.Workshop = shop
	opt.Notice, opt.Box = shop.notice(), shop.boxKind()
	opt.Checks = func(ctx context.Context) []chat.HealthItem { return a.commonHealth(ctx, h.cfg, env) }
	h.flow = flow.New(opt)
	shop.keeper = newKeeper(h.cfg, shop.spaces, h.flow)
	return nil
}

func (a *app) hostOptions(ctx context.Context, h *house, env config.Env) (flow.Options, error) {
	path, err := statePath(h.cfg)
	if err != nil {
		return flow.Options{}, err
	}
	id := hostID()
	ledger, err := sqlite.Open(ctx, path, sqlite.Options{Log: h.log, Host: id})
	if err != nil {
		return flow.Options{}, err
	}
	h.closer = append(h.closer, ledger.Close)
	h.slots, h.state = ledger, ledger
	routes, err := routesOf(h.cfg)
	if err != nil {
		return flow.Options{}, err
	}
	day, err := h.cfg.Bot.BudgetDay.Limits()
	if err != nil {
		return flow.Options{}, fmt.Errorf("[bot].budget_day: %w", err)
	}
	return flow.Options{
		DayLimits: day,
		ID:        id, Ledger: ledger, Routes: routes, People: peopleOf(h.cfg), Redactor: redact.New(secretsOf(h.cfg, env)), Log: h.log,
		MaxTasks: h.cfg.Bot.MaxTasks, LeaseTTL: time.Duration(h.cfg.Bot.Lease), Sweep: time.Duration(h.cfg.Bot.Lease) / 3,
	}, nil
}

func hostID() string {
	name, err := os.Hostname()
	if err != nil {
		name = "host"
	}
	return name
}

// secretsOf are the values that the host knows and never shows: saved keys, and every variable that the configuration names.
func secretsOf(cfg config.Config, env config.Env) map[string]string {
	out := map[string]string{}
	for name, v := range env.Saved() {
		out[name] = v
	}
	for _, p := range cfg.Providers {
		if key, err := p.Key(env); err == nil && key != "" {
			out["provider "+p.Name] = key
		}
	}
	for _, c := range cfg.Connections {
		for key, v := range c.Block {
			if name, ok := v.(string); ok && strings.HasSuffix(key, "_env") && env.Get(name) != "" {
				out[name] = env.Get(name)
			}
		}
	}
	return out
}

// openDoors builds every connection, and the console that [bot] asks for.
func (a *app) openDoors(cfg config.Config, env config.Env, slots cron.Slots) (map[string]chat.Door, error) {
	doors := map[string]chat.Door{}
	for _, c := range append(slices.Clone(cfg.Connections), builtinDoors(cfg)...) {
		door, err := chat.Open(c.Kind, chat.DoorConfig{Name: c.Name, Decode: c.Decode, Getenv: env.Get})
		if err != nil {
			return nil, err
		}
		doors[c.Name] = door
	}
	if len(cfg.Schedules) > 0 {
		clock, err := cron.New(schedulesOf(cfg), slots, cron.SystemClock{})
		if err != nil {
			return nil, err
		}
		doors["schedule"] = clock
	}
	return doors, nil
}

func schedulesOf(cfg config.Config) []cron.Schedule {
	out := make([]cron.Schedule, len(cfg.Schedules))
	for i, s := range cfg.Schedules {
		out[i] = cron.Schedule(s)
	}
	return out
}

// builtinDoors are the doors that no [[connections]] entry is needed for.
func builtinDoors(cfg config.Config) []config.Connection {
	var out []config.Connection
	if at := cfg.Bot.Console; at != "" && at != "off" {
		block := map[string]any{"listen": at, "session_key_file": filepath.Join(config.ExpandHome(cfg.Bot.Data), "console.key"), "suggest": cfg.Bot.Suggest}
		if cfg.Bot.PublicURL != "" {
			block["public_url"] = cfg.Bot.PublicURL
		}
		out = append(out, config.Connection{Name: "console", Kind: "console", Block: block, At: "[bot].console"})
	}
	return out
}

func peopleOf(cfg config.Config) task.People {
	var out task.People
	for _, p := range cfg.People {
		ids := map[string]string{}
		for kind, id := range map[string]string{"slack": p.Slack, "github": p.GitHub, "console": p.Console, "cli": p.CLI} {
			if id != "" {
				ids[kind] = id
			}
		}
		day, _ := p.BudgetDay.Limits() // the configuration was checked when it was read
		out = append(out, task.Person{Name: p.Name, Role: task.Role(p.Role), Identities: ids, DayLimits: day})
	}
	return out
}

func kindsOf(cfg config.Config) map[string]string {
	kinds := map[string]string{}
	for _, c := range append(slices.Clone(cfg.Connections), builtinDoors(cfg)...) {
		kinds[c.Name] = c.Kind
	}
	return kinds
}

// checkRoutes refuses routes whose asks nobody could answer.
func checkRoutes(cfg config.Config) error {
	routes, err := routesOf(cfg)
	if err != nil {
		return err
	}
	people, kinds := peopleOf(cfg), kindsOf(cfg)
	var errs []error
	for i := range routes {
		errs = append(errs, routes[i].Check(people, kinds))
		if _, _, err := cfg.ResolveModel(routes[i].Model); err != nil {
			errs = append(errs, fmt.Errorf("route %q: %w", routes[i].Name, err))
		}
	}
	return errors.Join(errs...)
}

func routesOf(cfg config.Config) ([]task.Route, error) {
	kinds := kindsOf(cfg)
	out := make([]task.Route, len(cfg.Routes))
	for i, r := range cfg.Routes {
		limits, err := r.Budget.Limits()
		if err != nil {
			return nil, fmt.Errorf("route %q: %w", r.Name, err)
		}
		if limits.Tokens == 0 {
			limits.Tokens = cfg.Bot.TaskTokens
		}
		if limits.Time == 0 {
			limits.Time = time.Duration(cfg.Bot.TaskTime)
		}
		day, err := r.BudgetDay.Limits()
		if err != nil {
			return nil, fmt.Errorf("route %q: budget_day: %w", r.Name, err)
		}
		out[i] = task.Route{
			DayLimits: day,
			Name:      r.Name, On: r.On, Mode: task.Mode(r.Mode), Posture: r.Posture, Model: r.Model, Repo: r.Repo, Headless: r.Headless,
			Match:  task.Match{Command: r.Match.Command, Repo: r.Match.Repo, Channel: r.Match.Channel, Role: task.Role(r.Match.Role)},
			Limits: limits, MaxSteps: cfg.Bot.MaxSteps, Network: r.Network || cfg.Sandbox.Network,
			Asks: task.Asks{
				To: placeOf(r.Asks.To, kinds), Approvers: r.Asks.Approvers, Quorum: r.Asks.Quorum, RequesterMayApprove: r.Asks.RequesterMayApprove,
				Expire: time.Duration(r.Asks.Expire), Then: r.Asks.Then,
			},
		}
		if at := slices.IndexFunc(cfg.Repos, func(x config.Repo) bool { return x.Name == r.Repo }); at >= 0 {
			out[i].Base, out[i].Slug = cfg.Repos[at].Base, slugOf(cfg.Repos[at])
		}
		if p := r.Publish; p != nil {
			out[i].Publish = &task.Publish{Connection: p.Connection, PR: p.PR, Draft: p.Draft, Protect: p.Protect}
		}
	}
	return out, nil
}

// placeOf reads "connection:channel".
func placeOf(to string, kinds map[string]string) *chat.Place {
	name, channel, ok := strings.Cut(to, ":")
	if !ok {
		return nil
	}
	return &chat.Place{Connection: name, Kind: kinds[name], Channel: channel}
}

// rulesOf are the configured permission rules, each with its file and line.
func rulesOf(cfg config.Config) *permission.Policy {
	p := cfg.Permissions
	with := func(list string, texts []string) []permission.Rule {
		rules := make([]permission.Rule, len(texts))
		for i, t := range texts {
			rules[i] = permission.Rule{Text: t, Source: p.Sources[list+"\x00"+t]}
		}
		return rules
	}
	return permission.NewPolicy(permission.Config{Mode: permission.Mode(p.Mode), Allow: with("allow", p.Allow), Ask: with("ask", p.Ask), Deny: with("deny", p.Deny), AllowDynamicBash: p.AllowDynamicBash,
		ForeignShell: foreignShell(cfg)})
}

// model is a provider that is ready to use.
type model struct {
	provider provider.Provider
	name     string
	scripted bool
	entry    config.Provider
	id       string
}

func (a *app) openModel(cfg config.Config, env config.Env, ref string) (model, error) {
	p, id, err := cfg.ResolveModel(ref)
	if err != nil {
		return model{}, err
	}
	key, err := p.Key(env)
	if err != nil {
		return model{}, err
	}
	if key == "" && p.APIKeyEnv != "" && p.Kind != "script" && !p.FromProject {
		return model{}, fmt.Errorf("model %s/%s has no key: put %s=… into the saved keys (`reasonix setup` makes the file) or set it in the environment", p.Name, id, p.APIKeyEnv)
	}
	extra := map[string]any{}
	if p.Scenario != "" {
		extra["path"] = config.ExpandHome(p.Scenario)
	}
	made, err := provider.New(p.Kind, provider.Config{Name: p.Name, BaseURL: p.BaseURL, RequestURL: p.RequestURL, Model: id, APIKey: key, Extra: extra})
	if err != nil {
		return model{}, err
	}
	return model{provider: made, name: p.Name + "/" + id, scripted: p.Kind == "script", entry: p, id: id}, nil
}

// price is the model's configured price; the zero value when there is none.
func (m model) price() budget.Price {
	p, ok := m.entry.Prices[m.id]
	if !ok {
		return budget.Price{}
	}
	micros := func(v float64) int64 { return int64(math.Round(v * 1e6)) }
	return budget.Price{Input: micros(p.Input), Output: micros(p.Output), CacheRead: micros(p.CacheRead), Currency: p.Currency}
}

// probeModel asks for one short turn.
func (a *app) probeModel(ctx context.Context, cfg config.Config, env config.Env, p config.Provider, id string) error {
	m, err := a.openModel(cfg, env, p.Name+"/"+id)
	if err != nil {
		return err
	}
	ch, err := m.provider.Stream(ctx, provider.Request{Messages: []provider.Message{{Role: provider.RoleUser, Content: "Answer with the word ok."}}, MaxTokens: 16})
	if err != nil {
		return err
	}
	for c := range ch {
		if c.Type == provider.ChunkError {
			return c.Err
		}
	}
	return ctx.Err()
}

// loginLink waits for the console and makes a single-use link for a person.
func (h *house) loginLink(ctx context.Context, person string) (string, error) {
	door, ok := h.doors["console"].(interface {
		Ready() <-chan struct{}
		LoginLink(person string) (string, error)
	})
	if !ok {
		return "", errors.New("the console is off: set [bot].console")
	}
	select {
	case <-door.Ready():
	case <-ctx.Done():
		return "", ctx.Err()
	}
	return door.LoginLink(person)
}

// announce prints a single-use link for each person with a console identity, once the page is up.
func (h *house) announce(ctx context.Context, out io.Writer) {
	if _, ok := h.doors["console"]; !ok {
		return
	}
	for _, p := range h.cfg.People {
		if p.Console == "" {
			continue
		}
		link, err := h.loginLink(ctx, p.Name)
		if err != nil {
			h.log.Warn("console", "error", err)
			return
		}
		fmt.Fprintf(out, "Console for %s (the link works once): %s\n", p.Name, link)
	}
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}
