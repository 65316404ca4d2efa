package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	_ "embed"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"

	"reasonix/internal/config"
	"reasonix/internal/sandbox"
)

//go:embed demo/repo.txtar
var demoRepo []byte

//go:embed demo/scenario.toml
var demoScenario []byte

const demoRequest = "The test of this repository fails. Find out why, fix it, and show that the test passes."

// demoFlags are the switches of the demo.
type demoFlags struct {
	check    bool
	keep     bool
	listen   string
	scenario string
}

func (a *app) demoCommand() *cobra.Command {
	var f demoFlags
	c := &cobra.Command{
		Use:   "demo",
		Short: "See it work: a page, a request, an approval, a fixed test",
		Long: `demo makes a small git repository with a failing test in a temporary folder, runs a host on it with a console page, and prints a
single-use link. With DEEPSEEK_API_KEY or OPENAI_API_KEY set a real model works; without one the model is a written scenario
whose tool calls are real. --check walks the same path without a browser and exits 0 or 1.`,
		Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.check && !c.Flags().Changed("listen") {
				f.listen = "127.0.0.1:0" // nobody opens the page
			}
			return a.demo(c.Context(), f)
		},
	}
	c.Flags().BoolVar(&f.check, "check", false, "drive the path without a browser, approve once and deny once, and exit 0 or 1")
	c.Flags().BoolVar(&f.keep, "keep", false, "leave the temporary folder for a look")
	c.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8787", "address of the page")
	c.Flags().StringVar(&f.scenario, "scenario", "", "another scenario file for the scripted model")
	return c
}

func (a *app) demo(ctx context.Context, f demoFlags) error {
	dir, err := os.MkdirTemp("", "reasonix-demo-")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if f.keep {
		fmt.Fprintf(a.out, "The demo's folder: %s\n", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	if err := makeDemoRepo(ctx, filepath.Join(dir, "split")); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	cfg, env, scripted, err := a.demoConfig(dir, f)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if err := a.demoBox(ctx, cfg, dir); err != nil {
		return err
	}
	if f.check {
		return a.demoCheck(ctx, dir, cfg, env)
	}
	logFile, err := os.Create(filepath.Join(dir, "host.log"))
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer logFile.Close()
	h, err := a.assemble(ctx, cfg, env, slog.New(slog.NewTextHandler(logFile, nil)))
	if err != nil {
		return err
	}
	defer h.close()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	if scripted {
		fmt.Fprintln(a.out, "No model key found, so the model is a written scenario. Its tool calls are real.")
	}
	fmt.Fprintf(a.out, "The repository with the failing test: %s\nStop with Ctrl-C.\n\n", filepath.Join(dir, "split"))
	return a.serve(ctx, h)
}

// demoBox looks for a box before anything is shown, and says it plainly when there is only the reduced one.
func (a *app) demoBox(ctx context.Context, cfg config.Config, dir string) error {
	box, rep, err := sandbox.Detect(ctx, boxConfig(cfg))
	if err != nil {
		return fmt.Errorf("the demo needs a sandbox: %s. %s", rep.Reason, rep.Mend)
	}
	if !sandbox.Reduced(box) {
		return nil
	}
	fmt.Fprintf(a.out, "NOTICE: the demo runs in the reduced box (%s). A host never does so unless its configuration says allow_reduced_box = true. It does not hold:\n",
		rep.NoFull)
	for _, g := range rep.Gaps {
		fmt.Fprintf(a.out, "  - %s\n", g.What)
	}
	fmt.Fprintln(a.out)
	if sandbox.OpenFolders(box) {
		return os.Chmod(dir, 0o711)
	}
	return nil
}

// makeDemoRepo writes the files and commits them.
func makeDemoRepo(ctx context.Context, dir string) error {
	for _, f := range txtar.Parse(demoRepo).Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"add", "-A"},
		{"-c", "user.name=Demo", "-c", "user.email=demo@example.com", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "split: divide a bill"},
	} {
		if out, err := git(ctx, dir, args...); err != nil {
			return fmt.Errorf("make the repository: git %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.hooksPath=/dev/null"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// demoConfig is a host on a temporary folder, with one person who may do everything.
func (a *app) demoConfig(dir string, f demoFlags) (config.Config, config.Env, bool, error) {
	_, envFile, err := a.paths()
	if err != nil {
		return config.Config{}, config.Env{}, false, err
	}
	env, err := config.LoadEnv(envFile, a.getenv)
	if err != nil {
		return config.Config{}, env, false, err
	}
	scenario := filepath.Join(dir, "scenario.toml")
	text := demoScenario
	if f.scenario != "" {
		if text, err = os.ReadFile(f.scenario); err != nil {
			return config.Config{}, env, false, err
		}
	}
	if err := os.WriteFile(scenario, text, 0o600); err != nil {
		return config.Config{}, env, false, err
	}
	model := demoModel(env, f)
	path := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(path, []byte(demoTOML(dir, scenario, model, f.listen)), 0o600); err != nil {
		return config.Config{}, env, false, err
	}
	cfg, err := config.Load(config.Sources{User: path})
	return cfg, env, model == "scripted", err
}

// demoModel picks a real model where a key is at hand; the check always uses the scenario, so that it says the same everywhere.
func demoModel(env config.Env, f demoFlags) string {
	switch {
	case f.check || f.scenario != "":
	case env.Get("DEEPSEEK_API_KEY") != "":
		return "deepseek"
	case env.Get("OPENAI_API_KEY") != "":
		return "openai"
	}
	return "scripted"
}

func demoTOML(dir, scenario, model, listen string) string {
	return fmt.Sprintf(`default_model = %[3]q

[permissions]
mode  = "ask"
allow = ["Bash(go test:*)"]
deny  = ["Bash(git push:*)"]

[sandbox]
allow_reduced_box = true

[[providers]]
name = "scripted"
kind = "script"
scenario = %[2]q

[bot]
state = "sqlite:%[1]s/state.db"
data = "%[1]s/data"
console = %[4]q
listen = "127.0.0.1:0"
suggest = %[5]q

[[people]]
name = "visitor"
role = "admin"
console = "visitor"

[[repos]]
name = "split"
url = "%[1]s/split"
base = "main"

[[routes]]
name = "demo"
on = "console"
mode = "run"
posture = "ask"
repo = "split"
asks = { approvers = ["visitor"], requester_may_approve = true, expire = "1h", then = "deny" }
publish = { pr = false }
`, filepath.ToSlash(dir), filepath.ToSlash(scenario), model, listen, demoRequest)
}

// errCheck is a step of the check that did not hold.
var errCheck = errors.New("demo check failed")
