package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"reasonix/internal/sandbox"
)

// check says what cannot be meant, all of it at once.
func (c *Config) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	oneOf := func(key, v string, allowed ...string) {
		if !slices.Contains(allowed, v) {
			bad("%s = %q: use one of %s", key, v, strings.Join(allowed, ", "))
		}
	}
	oneOf("permissions.mode", c.Permissions.Mode, "ask", "allow", "deny")
	oneOf("sandbox.bash", c.Sandbox.Bash, "enforce", "off")
	if err := sandbox.CheckBackend(c.Sandbox.Backend, c.Sandbox.AllowReduced); err != nil {
		bad("sandbox.%v", err)
	}
	for _, w := range c.Sandbox.AllowWrite {
		if p := filepath.Clean(ExpandHome(w)); !filepath.IsAbs(p) || p == filepath.VolumeName(p)+string(filepath.Separator) {
			bad("sandbox.allow_write: %q: name an absolute folder, not the root of the file system", w)
		}
	}
	for key, n := range c.counts() {
		if n < 0 {
			bad("%s is negative: 0 means %s", key, zeroMeans(key))
		}
	}
	c.checkBox(bad)
	for _, h := range c.Sandbox.AllowHosts {
		if err := sandbox.CheckHost(h); err != nil {
			bad("sandbox.allow_hosts: %v", err)
		}
	}
	unique(bad, "providers", c.Providers, func(p Provider) string { return p.Name })
	unique(bad, "connections", c.Connections, func(x Connection) string { return x.Name })
	unique(bad, "repos", c.Repos, func(r Repo) string { return r.Name })
	unique(bad, "people", c.People, func(p Person) string { return p.Name })
	unique(bad, "routes", c.Routes, func(r Route) string { return r.Name })
	unique(bad, "schedules", c.Schedules, func(s Schedule) string { return s.Name })
	if _, err := c.Agent.Limits(true); err != nil {
		bad("agent.task_cost_budget: %v", err)
	}
	if c.Agent.GoalTokens < 0 {
		bad("agent.goal_token_budget is negative: 0 means no limit")
	}
	if _, err := c.Bot.BudgetDay.Limits(); err != nil {
		bad("bot.budget_day: %v", err)
	}
	for _, p := range c.People {
		if _, err := p.BudgetDay.Limits(); err != nil {
			bad("people.%s.budget_day: %v", p.Name, err)
		}
		oneOf("people."+p.Name+".role", p.Role, "user", "approver", "admin")
	}
	for _, p := range c.Providers {
		if p.Model == "" && len(p.Models) == 0 && p.Kind != "script" {
			bad("provider %q offers no model: set model = \"…\" or models = [\"…\"]", p.Name)
		}
	}
	for i := range c.Routes {
		c.checkRoute(&c.Routes[i], bad, oneOf)
	}
	for _, r := range c.Repos {
		for _, f := range r.SetupFiles {
			if f == "." || !filepath.IsLocal(f) || filepath.ToSlash(filepath.Clean(f)) != f {
				bad("repos.%s.setup_files: %q: name files below the repository, like \"package-lock.json\"", r.Name, f)
			}
		}
	}
	for _, s := range c.Schedules {
		if !slices.ContainsFunc(c.Routes, func(r Route) bool { return r.Name == s.Route && r.On == "schedule" }) {
			bad("schedule %q: route %q does not exist with on = \"schedule\"", s.Name, s.Route)
		}
	}
	return errors.Join(errs...)
}

func (c *Config) checkRoute(r *Route, bad func(string, ...any), oneOf func(string, string, ...string)) {
	at := "routes." + r.Name
	if r.Mode == "" {
		r.Mode = "run"
	}
	if r.Posture == "" {
		r.Posture = "ask"
	}
	if r.Asks.Then == "" {
		r.Asks.Then = "deny"
	}
	oneOf(at+".on", r.On, "slack.command", "slack.mention", "slack.message", "github.comment", "github.label", "console", "cli", "schedule")
	oneOf(at+".mode", r.Mode, "run", "goal", "plan")
	oneOf(at+".posture", r.Posture, "ask", "auto", "yolo")
	oneOf(at+".asks.then", r.Asks.Then, "deny", "park", "cancel")
	if r.Match.Role != "" {
		oneOf(at+".match.role", r.Match.Role, "none", "user", "approver", "admin")
	}
	if r.Repo != "" && !slices.ContainsFunc(c.Repos, func(x Repo) bool { return x.Name == r.Repo }) {
		bad("%s.repo = %q is not under [[repos]]", at, r.Repo)
	}
	if _, err := r.Budget.Limits(); err != nil {
		bad("%s.budget.cost: %v", at, err)
	}
	if r.MaxWorkspaces < 0 || r.MaxWorkspacesMB < 0 {
		bad("%s: max_workspaces or max_workspaces_mb is negative: 0 means no limit", at)
	}
	if _, err := r.BudgetDay.Limits(); err != nil {
		bad("%s.budget_day: %v", at, err)
	}
	if r.Asks.To != "" {
		name, channel, ok := strings.Cut(r.Asks.To, ":")
		if !ok || channel == "" || !c.hasConnection(name) {
			bad("%s.asks.to = %q: write \"connection:channel\" with a name from [[connections]]", at, r.Asks.To)
		}
	}
	if r.On == "schedule" && r.Asks.To == "" && !r.Headless {
		bad("%s: a schedule has no place of its own; set asks = { to = \"connection:channel\", … } or headless = true", at)
	}
	if r.Publish != nil && r.Publish.PR && !c.hasConnection(r.Publish.Connection) {
		bad("%s.publish.connection = %q is not under [[connections]]", at, r.Publish.Connection)
	}
}

func (c *Config) hasConnection(name string) bool {
	return name == "console" || slices.ContainsFunc(c.Connections, func(x Connection) bool { return x.Name == name })
}

func unique[T any](bad func(string, ...any), list string, items []T, name func(T) string) {
	seen := map[string]bool{}
	for _, it := range items {
		n := name(it)
		if n == "" {
			bad("an entry of [[%s]] has no name", list)
		}
		if seen[n] {
			bad("[[%s]] has two entries named %q", list, n)
		}
		seen[n] = true
	}
}

// counts are the numbers that cannot be negative.
func (c *Config) counts() map[string]int64 {
	s := c.Sandbox
	return map[string]int64{
		"sandbox.disk_mb": int64(s.DiskMB), "sandbox.memory_mb": int64(s.MemoryMB), "sandbox.processes": int64(s.Processes), "sandbox.open_files": int64(s.OpenFiles),
		"sandbox.file_mb": int64(s.FileMB), "sandbox.cpu_seconds": int64(s.CPUSeconds), "bot.keep_workspaces": int64(c.Bot.Keep), "bot.keep_workspaces_for": int64(c.Bot.KeepFor), "bot.snapshot_every": int64(c.Bot.SnapshotEvery), "bot.setup_cache_mb": int64(c.Bot.SetupCacheMB),
		"bot.max_workspaces": int64(c.Bot.MaxWorkspaces), "bot.max_workspaces_mb": int64(c.Bot.MaxWorkspacesMB),
	}
}

func zeroMeans(key string) string {
	switch key {
	case "sandbox.memory_mb", "sandbox.processes", "sandbox.open_files", "sandbox.file_mb":
		return "the default"
	}
	return "no limit"
}

// checkBox refuses limits under which no command can run at all.
func (c *Config) checkBox(bad func(string, ...any)) {
	s := c.Sandbox
	for _, least := range []struct {
		key     string
		is, min int
	}{{"memory_mb", s.MemoryMB, 16}, {"processes", s.Processes, 8}, {"open_files", s.OpenFiles, 16}, {"file_mb", s.FileMB, 1}} {
		if least.is > 0 && least.is < least.min {
			bad("sandbox.%s = %d: no command can work with less than %d", least.key, least.is, least.min)
		}
	}
	if s.CPUs < 0 || (s.CPUs > 0 && s.CPUs < 0.05) || s.CPUs > 4096 {
		bad("sandbox.cpus = %v: a number of processors from 0.05 on, or 0 for no limit", s.CPUs)
	}
	if err := (sandbox.ShellChoice{Prefer: c.Tools.Shell.Prefer, Path: c.Tools.Shell.Path}).Check(); err != nil {
		bad("%v", err)
	}
}
