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
	for key, n := range map[string]int64{"sandbox.disk_mb": int64(c.Sandbox.DiskMB), "bot.keep_workspaces": int64(c.Bot.Keep), "bot.keep_workspaces_for": int64(c.Bot.KeepFor)} {
		if n < 0 {
			bad("%s is negative: 0 means no limit", key)
		}
	}
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
