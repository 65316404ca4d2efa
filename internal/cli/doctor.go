package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reasonix/internal/chat"
	"reasonix/internal/config"
	"reasonix/internal/sandbox"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what works, what does not, and how to mend it",
		Args:  exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, env, err := a.settings("reasonix.toml")
			if err != nil {
				return err
			}
			items := append(a.filesHealth(cfg), a.commonHealth(c.Context(), cfg, env)...)
			if len(cfg.Routes)+len(cfg.Connections) > 0 { // a host is configured here too
				items = append(items, a.botHealth(c.Context(), cfg, env)...)
			}
			return a.report(items)
		},
	}
}

func (a *app) botDoctor() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that the host needs: state, doors, routes, sandbox, model",
		Args:  exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, env, err := a.settings("")
			if err != nil {
				return err
			}
			items := append(a.filesHealth(cfg), a.commonHealth(c.Context(), cfg, env)...)
			return a.report(append(items, a.botHealth(c.Context(), cfg, env)...))
		},
	}
}

// report prints the lines and turns a failing one into the exit code 1.
func (a *app) report(items []chat.HealthItem) error {
	bad := 0
	for _, it := range items {
		mark := "ok  "
		if !it.OK {
			mark = "FAIL"
			bad++
		}
		fmt.Fprintf(a.out, "%s  %-22s %s\n", mark, it.Name, it.Text)
		if !it.OK && it.Mend != "" {
			fmt.Fprintf(a.out, "      %-22s → %s\n", "", it.Mend)
		}
	}
	if bad > 0 {
		fmt.Fprintf(a.out, "\n%d of %d checks failed.\n", bad, len(items))
		return exit{ExitError}
	}
	fmt.Fprintln(a.out, "\nEverything works.")
	return nil
}

func (a *app) filesHealth(cfg config.Config) []chat.HealthItem {
	text := "built-in defaults only; `reasonix setup` writes a file to start from"
	if len(cfg.Files) > 0 {
		text = strings.Join(cfg.Files, ", ")
	}
	items := []chat.HealthItem{{Name: "configuration", OK: true, Text: text}}
	for _, w := range cfg.Warnings {
		items = append(items, chat.HealthItem{Name: "configuration", Text: w, Mend: "remove it or move it to where it counts"})
	}
	for _, p := range rulesOf(cfg).Problems() {
		items = append(items, chat.HealthItem{Name: "permission rule", Text: p.String(), Mend: "mend or remove the rule; as it stands it never matches"})
	}
	return append(items, a.envHealth())
}

func (a *app) envHealth() chat.HealthItem {
	_, envFile, err := a.paths()
	if err != nil {
		return chat.HealthItem{Name: "saved keys", Text: err.Error(), Mend: "set REASONIX_HOME"}
	}
	info, err := os.Stat(envFile)
	if err != nil {
		return chat.HealthItem{Name: "saved keys", OK: true, Text: "no " + envFile + "; keys come from the process environment"}
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return chat.HealthItem{Name: "saved keys", Text: envFile + " can be read by others", Mend: "chmod 600 " + envFile}
	}
	return chat.HealthItem{Name: "saved keys", OK: true, Text: envFile}
}

// commonHealth checks what both the terminal and the host need.
func (a *app) commonHealth(ctx context.Context, cfg config.Config, env config.Env) []chat.HealthItem {
	items := append([]chat.HealthItem{gitHealth(ctx)}, a.sandboxHealth(ctx, cfg)...)
	return append(items, shellHealth(cfg, cfg.Sandbox.Bash != "off"), a.modelHealth(ctx, cfg, env))
}

func gitHealth(ctx context.Context) chat.HealthItem {
	out, err := exec.CommandContext(ctx, "git", "--version").Output()
	if err != nil {
		return chat.HealthItem{Name: "git", Text: "cannot be run: " + err.Error(), Mend: "install git 2.30 or newer"}
	}
	return chat.HealthItem{Name: "git", OK: true, Text: strings.TrimSpace(string(out))}
}

// boxConfig is what the configuration says about boxes; workspaces are folders that tasks can write.
func boxConfig(cfg config.Config, workspaces ...string) sandbox.Config {
	return sandbox.Config{Bash: cfg.Sandbox.Bash, Backend: cfg.Sandbox.Backend, AllowReduced: cfg.Sandbox.AllowReduced, Workspaces: workspaces}
}

// sandboxHealth is believed only after a command really ran in a box. What a reduced one does not hold is an item each.
func (a *app) sandboxHealth(ctx context.Context, cfg config.Config) []chat.HealthItem {
	box, rep, err := sandbox.Detect(ctx, boxConfig(cfg))
	if err != nil {
		return []chat.HealthItem{{Name: "sandbox", Text: rep.Reason, Mend: rep.Mend}}
	}
	items := []chat.HealthItem{{Name: "sandbox", OK: true, Text: boxWords(box, rep, cfg)}}
	for _, g := range rep.Gaps {
		items = append(items, chat.HealthItem{Name: "sandbox does not hold", OK: true, Text: g.ID + ": " + g.What})
	}
	if err := checkBoxNetwork(box, cfg); err != nil {
		items = append(items, chat.HealthItem{Name: "sandbox", Text: err.Error(), Mend: "install bubblewrap, or take network = true away"})
	}
	return items
}

// checkBoxNetwork refuses a network that the box cannot hold.
func checkBoxNetwork(box sandbox.Box, cfg config.Config) error {
	if !sandbox.Reduced(box) {
		return nil
	}
	where := "[sandbox]"
	if !cfg.Sandbox.Network {
		i := slices.IndexFunc(cfg.Routes, func(r config.Route) bool { return r.Network })
		if i < 0 {
			return nil
		}
		where = fmt.Sprintf("the route %q", cfg.Routes[i].Name)
	}
	return fmt.Errorf("network = true of %s needs the full box: the reduced one, which this host has, cannot narrow a network to the host's proxy", where)
}

func boxWords(box sandbox.Box, rep sandbox.Report, cfg config.Config) string {
	text := box.Name()
	if sandbox.Reduced(box) {
		text = "reduced box: " + text
	}
	if rep.Version != "" {
		text += " " + rep.Version + ", a command ran in it"
	}
	if len(rep.Limits) > 0 {
		text += "; limits: " + strings.Join(rep.Limits, ", ")
	}
	if missing := unheld(cfg, rep.PerCall); len(missing) > 0 {
		text += "; " + strings.Join(missing, "; ")
	}
	if box.Name() != "off" {
		text += "; network: " + networkHealth(box, cfg)
	}
	if rep.NoFull != "" {
		text += "; no full box: " + rep.NoFull
	}
	if len(rep.Warnings) > 0 {
		text += "; " + strings.Join(rep.Warnings, "; ")
	}
	if box.Name() == "off" {
		text = strings.Join(append([]string{"off: bash runs unconfined in `reasonix run`; bot tasks have no bash"}, rep.Warnings...), "; ")
	}
	return text
}

// networkHealth says what boxes reach.
func networkHealth(box sandbox.Box, cfg config.Config) string {
	if sandbox.Reduced(box) {
		return "none"
	}
	what := "HTTP and HTTPS through the host's proxy to public hosts"
	if len(cfg.Sandbox.AllowHosts) > 0 {
		what = "HTTP and HTTPS through the host's proxy to " + strings.Join(cfg.Sandbox.AllowHosts, ", ")
	}
	if cfg.Sandbox.Network {
		return what
	}
	var routes []string
	for _, r := range cfg.Routes {
		if r.Network {
			routes = append(routes, r.Name)
		}
	}
	if len(routes) == 0 {
		return "none"
	}
	return what + " on the routes " + strings.Join(routes, ", ") + ", none elsewhere"
}

// modelHealth asks the default model for one word.
func (a *app) modelHealth(ctx context.Context, cfg config.Config, env config.Env) chat.HealthItem {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	p, model, err := cfg.ResolveModel("")
	if err != nil {
		return chat.HealthItem{Name: "model", Text: err.Error(), Mend: "set default_model to a configured provider"}
	}
	name := p.Name + "/" + model
	key, err := p.Key(env)
	if err != nil {
		return chat.HealthItem{Name: "model", Text: err.Error(), Mend: "set api_key_file to a readable file"}
	}
	if key == "" && p.APIKeyEnv != "" {
		return chat.HealthItem{Name: "model", Text: name + " has no key", Mend: "put " + p.APIKeyEnv + "=… into the saved keys (`reasonix setup` makes the file)"}
	}
	if p.Kind == "script" {
		return chat.HealthItem{Name: "model", OK: true, Text: name + " is a written scenario"}
	}
	start := time.Now()
	if err := a.probeModel(ctx, cfg, env, p, model); err != nil {
		return chat.HealthItem{Name: "model", Text: err.Error(), Mend: "check base_url, the key and the network"}
	}
	return chat.HealthItem{Name: "model", OK: true, Text: fmt.Sprintf("%s answered in %s", name, time.Since(start).Round(time.Millisecond))}
}

// botHealth checks the host's own parts.
func (a *app) botHealth(ctx context.Context, cfg config.Config, env config.Env) []chat.HealthItem {
	items := []chat.HealthItem{stateHealth(cfg)}
	h, err := a.desk(ctx, cfg, env)
	if err != nil {
		return append(items, chat.HealthItem{Name: "state", Text: err.Error(), Mend: "check [bot].state and the free space of its disk"})
	}
	defer h.close()
	if err := checkRoutes(cfg); err != nil {
		items = append(items, chat.HealthItem{Name: "routes", Text: err.Error(), Mend: "mend the route as it says"})
	} else {
		items = append(items, chat.HealthItem{Name: "routes", OK: true, Text: fmt.Sprintf("%d, each with people who can be reached or headless", len(cfg.Routes))})
	}
	items = append(items, a.spaceHealth(ctx, cfg, h))
	doors, err := a.openDoors(cfg, env, h.slots)
	if err != nil {
		return append(items, chat.HealthItem{Name: "connections", Text: err.Error(), Mend: "mend the block under [[connections]]"})
	}
	for _, d := range doors {
		items = append(items, d.Check(ctx)...)
	}
	return items
}

func stateHealth(cfg config.Config) chat.HealthItem {
	path, err := statePath(cfg)
	if err != nil {
		return chat.HealthItem{Name: "state", Text: err.Error(), Mend: "write state = \"sqlite:PATH\" under [bot]"}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return chat.HealthItem{Name: "state", Text: err.Error(), Mend: "choose a folder that can be written"}
	}
	return chat.HealthItem{Name: "state", OK: true, Text: path}
}
