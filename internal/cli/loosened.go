package cli

import (
	"fmt"
	"slices"
	"strings"

	"reasonix/internal/config"
)

// warn says what is odd in a configuration as it was loaded, before flags, and what the project's own file opens.
func (a *app) warn(cfg config.Config, project string) {
	for _, w := range cfg.Warnings {
		fmt.Fprintln(a.errs, "reasonix:", w)
	}
	for _, l := range a.loosened(cfg, project) {
		fmt.Fprintln(a.errs, "reasonix: this folder's own reasonix.toml", l)
	}
}

// loosened says what a project's own file opens beyond the user's configuration. It counts, because a person works here on what is theirs (Spec, section
// 3.7); who has cloned somebody else's repository should see it before anything runs.
func (a *app) loosened(cfg config.Config, project string) []string {
	if !slices.Contains(cfg.Files, project) {
		return nil
	}
	user, _, err := a.settings("")
	if err != nil {
		return nil
	}
	var out []string
	say := func(opens bool, format string, args ...any) {
		if opens {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	say(cfg.Permissions.Mode == "allow" && user.Permissions.Mode != "allow", "lets whatever no rule matches run without asking (mode = \"allow\")")
	say(len(cfg.Permissions.Allow) > len(user.Permissions.Allow), "allows: %s", strings.Join(cfg.Permissions.Allow[min(len(user.Permissions.Allow), len(cfg.Permissions.Allow)):], ", "))
	say(cfg.Permissions.AllowDynamicBash && !user.Permissions.AllowDynamicBash, "lets lines that hide what they run go through (allow_dynamic_bash)")
	say(cfg.Sandbox.Bash == "off" && user.Sandbox.Bash != "off", "switches the sandbox of commands off (bash = \"off\")")
	say(cfg.Sandbox.Network && !user.Sandbox.Network, "opens the network for commands (network = true)")
	say(len(cfg.Sandbox.AllowWrite) > len(user.Sandbox.AllowWrite), "opens for writing: %s", strings.Join(cfg.Sandbox.AllowWrite[min(len(user.Sandbox.AllowWrite), len(cfg.Sandbox.AllowWrite)):], ", "))
	say(len(cfg.Hooks) > 0 && slices.ContainsFunc(cfg.Hooks, func(h config.Hook) bool { return strings.HasPrefix(h.Source, project) }), "runs commands of its own around calls (hooks)")
	return out
}
