package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reasonix/internal/agent"
	"reasonix/internal/budget"
	"reasonix/internal/config"
	"reasonix/internal/goal"
	"reasonix/internal/permission"
	"reasonix/internal/provider"
	"reasonix/internal/redact"
	"reasonix/internal/run"
	"reasonix/internal/session"
	"reasonix/internal/task"
)

// runFlags are the switches of a headless run.
type runFlags struct {
	format   string
	posture  string
	auto     bool
	model    string
	maxSteps int
	budget   string
	dir      string
	last     bool
	resume   string
	plan     bool
	goal     bool // the prompt began with /goal
	addDirs  []string
}

func (f runFlags) mode() string {
	switch {
	case f.plan:
		return run.ModePlan
	case f.goal:
		return run.ModeGoal
	}
	return run.ModeRun
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [flags] PROMPT",
		Short: "One headless run in a folder, against any OpenAI-compatible model",
		Long: `run works on the prompt in the current folder (or --dir) and streams the model's text. Nobody can be asked, so a call that would need
a person is refused and the model adapts: -y lets ordinary writes and commands through, rules in [permissions] decide the rest.
With --plan nothing is changed: the run ends on the plan with exit code 3, and --resume ID without --plan carries it out.
A prompt that begins with /goal is an objective: the run goes on until the model reports it complete or blocked.
A prompt of "-" is read from standard input. ` + "`reasonix help exit-codes`" + ` lists the exit codes.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("say what to do: reasonix run \"make the failing test pass\"")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.run(c.Context(), f, strings.Join(args, " ")) },
	}
	c.Flags().StringVar(&f.format, "output-format", "text", "text or json")
	c.Flags().StringVar(&f.posture, "permission-mode", "", "ask, auto or yolo (default ask)")
	c.Flags().BoolVarP(&f.auto, "auto", "y", false, "the same as --permission-mode auto")
	c.Flags().StringVar(&f.model, "model", "", "provider, model or provider/model (default: default_model)")
	c.Flags().IntVar(&f.maxSteps, "max-steps", 0, "most model calls, 0 = no limit")
	c.Flags().StringVar(&f.budget, "budget", "", budgetHelp)
	c.Flags().StringVar(&f.dir, "dir", ".", "folder to work in")
	c.Flags().StringArrayVar(&f.addDirs, "add-dir", nil, "another folder that may be written, beside [sandbox].allow_write; may be repeated")
	c.Flags().BoolVar(&f.last, "continue", false, "go on with the last session of this folder")
	c.Flags().BoolVar(&f.plan, "plan", false, "plan only: investigate, present the plan, change nothing")
	c.Flags().StringVar(&f.resume, "resume", "", "go on with the session of this id")
	return c
}

// result is the JSON form of a finished run.
type result struct {
	Type       string         `json:"type"`
	Subtype    string         `json:"subtype"`
	IsError    bool           `json:"is_error"`
	DurationMS int64          `json:"duration_ms"`
	NumTurns   int            `json:"num_turns"`
	Result     string         `json:"result"`
	SessionID  string         `json:"session_id"`
	TotalCost  float64        `json:"total_cost"`
	Currency   string         `json:"currency"`
	Usage      provider.Usage `json:"usage"`
	HostFacts  []string       `json:"host_facts,omitempty"` // what the host saw, beside the model's word

	plan bool // it ended on a plan
}

func (f *runFlags) check() error {
	if f.format != "text" && f.format != "json" {
		return usageError{fmt.Errorf("--output-format %q: use text or json", f.format)}
	}
	if f.auto && f.posture != "" && f.posture != "auto" {
		return usageError{fmt.Errorf("-y and --permission-mode %s contradict each other", f.posture)}
	}
	if f.auto {
		f.posture = "auto"
	}
	switch f.posture {
	case "":
		f.posture = "ask"
	case "ask", "auto", "yolo":
	default:
		return usageError{fmt.Errorf("--permission-mode %q: use ask, auto or yolo", f.posture)}
	}
	if f.maxSteps < 0 {
		return usageError{errors.New("--max-steps is a number of model calls, 0 or more")}
	}
	if f.last && f.resume != "" {
		return usageError{errors.New("--continue and --resume exclude each other")}
	}
	return nil
}

func (a *app) run(ctx context.Context, f runFlags, prompt string) error {
	if err := f.check(); err != nil {
		return err
	}
	if prompt == "-" {
		data, err := io.ReadAll(io.LimitReader(a.in, 1<<20))
		if err != nil {
			return fmt.Errorf("read the prompt: %w", err)
		}
		prompt = string(data)
	}
	if strings.TrimSpace(prompt) == "" {
		return usageError{errors.New("the prompt is empty")}
	}
	var err error
	if prompt, err = f.takeGoal(prompt); err != nil {
		return err
	}
	if f.addDirs, err = addedDirs(f.addDirs); err != nil {
		return err
	}
	started := time.Now()
	out, err := a.runOnce(ctx, f, prompt)
	out.DurationMS = time.Since(started).Milliseconds()
	return a.tell(ctx, f, out, err)
}

// takeGoal reads a leading /goal.
func (f *runFlags) takeGoal(prompt string) (string, error) {
	objective, ok := goal.Command(prompt)
	switch {
	case !ok:
		return prompt, nil
	case f.plan:
		return "", usageError{errors.New("--plan and /goal exclude each other: plan first, then resume with /goal")}
	case objective == "":
		return "", usageError{errors.New("say the objective after /goal")}
	}
	f.goal = true
	return objective, nil
}

// tell prints the result in the asked form and turns it into an exit code.
func (a *app) tell(ctx context.Context, f runFlags, r result, err error) error {
	code := exitOf(r.Subtype)
	if err != nil {
		r.Subtype, r.IsError, code = "error", true, ExitError
		if ctx.Err() != nil {
			r.Subtype, code = "interrupted", ExitInterrupted
		}
		r.Result = err.Error()
	}
	r.Type, r.IsError = "result", code != ExitDone
	if f.format == "json" {
		data, merr := json.Marshal(r)
		if merr != nil {
			return merr
		}
		fmt.Fprintln(a.out, string(data))
		return exitWith(code)
	}
	a.noteFacts(r)
	if code != ExitDone {
		fmt.Fprintf(a.errs, "\nreasonix: %s\n", endText(r))
	}
	return exitWith(code)
}

func exitWith(code int) error {
	if code == ExitDone {
		return nil
	}
	return exit{code}
}

var exits = map[string]int{"success": ExitDone, "question": ExitQuestion, "refused": ExitRefused, "budget": ExitBudget, "blocked": ExitBlocked, "interrupted": ExitInterrupted}

func exitOf(subtype string) int {
	if code, ok := exits[subtype]; ok {
		return code
	}
	return ExitError
}

func endText(r result) string {
	again := ""
	if r.SessionID != "" {
		again = fmt.Sprintf(" Go on with: reasonix run --resume %s \"…\"", r.SessionID)
	}
	switch r.Subtype {
	case "question":
		if r.plan {
			return fmt.Sprintf("ended on the plan; nothing was changed. Carry it out with: reasonix run --resume %s \"carry out the plan\", or change it with --plan --resume %[1]s \"…\"", r.SessionID)
		}
		return "ended on a question that nobody here can answer." + again
	case "refused":
		return "ended because a call was refused. Allow it with -y, --permission-mode or a rule in [permissions]." + again
	case "budget":
		return "a limit was reached." + again
	case "blocked":
		return "the goal is blocked." + again
	case "interrupted":
		return "interrupted." + again
	}
	return r.Result
}

// runOnce assembles and drives one run; the result is filled as far as it got.
func (a *app) runOnce(ctx context.Context, f runFlags, prompt string) (result, error) {
	var r result
	dir, err := folder(f.dir)
	if err != nil {
		return r, err
	}
	cfg, env, err := a.settings(filepath.Join(dir, "reasonix.toml"))
	if err != nil {
		return r, err
	}
	a.warn(cfg, filepath.Join(dir, "reasonix.toml"))
	cfg.Sandbox.AllowWrite = append(cfg.Sandbox.AllowWrite, f.addDirs...)
	model, err := a.openModel(cfg, env, f.model)
	if err != nil {
		return r, err
	}
	secrets := redact.New(secretsOf(cfg, env))
	log, err := a.openSession(dir, f)
	if err != nil {
		return r, err
	}
	defer log.Close()
	r.SessionID = log.ID()
	st, err := a.openStation(ctx, cfg, dir)
	if err != nil {
		return r, err
	}
	defer st.Close()
	spec, err := st.equip(ctx, equipment{log: log, surface: permission.Headless, standing: run.NewStanding(f.posture, f.plan)})
	if err != nil {
		return r, err
	}
	spec.Mode, spec.MaxSteps = f.mode(), f.maxSteps
	limits, err := f.limits(cfg, f.goal)
	if err != nil {
		return r, err
	}
	if limits != (budget.Limits{}) {
		spec.Meter = budget.NewMeter(budget.MeterConfig{Limits: limits, Price: model.price(), Now: time.Now})
	}
	spec.Provider, spec.MaxTokens, spec.Redact = model.provider, model.entry.MaxTokens, secrets.String
	spec.LiveRedact = func() agent.TextFilter { return secrets.Stream() }
	spec.Prompt, spec.PromptKey = prompt, task.NewID("prompt")
	shown := &terminal{app: a, quiet: f.format == "json"}
	spec.Observe = shown.observe
	out, err := run.Drive(ctx, spec)
	shown.flush()
	r.NumTurns, r.Usage, r.Result = out.Steps, out.Usage, secrets.String(out.Text)
	price := model.price()
	r.TotalCost, r.Currency = float64(price.Cost(out.Usage))/1e6, price.Currency
	r.HostFacts = hostFacts(ctx, log, spec.PromptKey, secrets)
	if errors.Is(err, run.ErrBlockedRequest) {
		r.Subtype, r.Result = "refused", secrets.String(err.Error())
		fmt.Fprintln(a.errs, "reasonix:", r.Result)
		return r, nil
	}
	if err != nil {
		return r, errors.New(secrets.String(err.Error()))
	}
	r.Subtype = subtypeOf(out)
	if out.Stop == agent.StopPending {
		r.plan = out.Pending[0].Kind == "plan"
		r.Result = strings.TrimSpace(r.Result + "\n\n" + secrets.String(out.Pending[0].Text))
		if !shown.quiet {
			fmt.Fprintln(a.out, secrets.String(out.Pending[0].Text))
		}
	}
	return r, nil
}

// folder is the absolute path of --dir.
func folder(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return "", fmt.Errorf("--dir %s is not a folder", dir)
	}
	return abs, nil
}

const budgetHelp = `limits of a request, instead of those in [agent]: tokens=200000 cost="5 USD" steps=50 time=30m, or off`

// limits are those of the command line, else those of the configuration.
func (f runFlags) limits(cfg config.Config, inGoal bool) (budget.Limits, error) {
	if f.budget == "" {
		return cfg.Agent.Limits(inGoal)
	}
	l, err := budget.ParseLimits(f.budget)
	if err != nil {
		return l, usageError{fmt.Errorf("--budget: %w", err)}
	}
	return l, nil
}

// addedDirs checks --add-dir and gives the real folders.
func addedDirs(dirs []string) ([]string, error) {
	var out []string
	for _, d := range dirs {
		abs, err := filepath.Abs(config.ExpandHome(d))
		if err == nil {
			abs, err = filepath.EvalSymlinks(abs)
		}
		if err != nil {
			return nil, usageError{fmt.Errorf("--add-dir %s: %w", d, err)}
		}
		if info, err := os.Stat(abs); err != nil || !info.IsDir() {
			return nil, usageError{fmt.Errorf("--add-dir %s is not a folder", d)}
		}
		if filepath.Dir(abs) == abs {
			return nil, usageError{fmt.Errorf("--add-dir %s: the root of the file system is never opened for writing", d)}
		}
		out = append(out, abs)
	}
	return out, nil
}

func subtypeOf(out run.Outcome) string {
	switch out.Stop {
	case agent.StopDone:
		if out.LastRefused {
			return "refused"
		}
		return "success"
	case agent.StopPending:
		if k := out.Pending[0].Kind; k == "question" || k == "plan" {
			return "question"
		}
		return "refused"
	case agent.StopSteps, agent.StopBudget:
		return "budget"
	case agent.StopBlocked:
		return "blocked"
	case agent.StopInterrupted:
		return "interrupted"
	}
	return "error"
}

// openSession makes a new transcript for the folder, or opens the one that the flags name.
func (a *app) openSession(dir string, f runFlags) (*session.File, error) {
	home, err := config.Home(a.getenv)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(home, "sessions", folderName(dir))
	id := f.resume
	if f.last {
		infos, err := session.List(folder)
		if err != nil {
			return nil, fmt.Errorf("--continue: %w", err)
		}
		if len(infos) == 0 {
			return nil, errors.New("--continue: this folder has no session yet; run without it")
		}
		id = infos[0].ID
	}
	if id == "" {
		id = task.NewID("run")
		return session.OpenFile(filepath.Join(folder, id+session.Ext), true)
	}
	path, err := session.FilePath(folder, id)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return nil, fmt.Errorf("--resume: there is no session %s of this folder", id)
	}
	return session.OpenFile(path, true)
}

// folderName is a readable, unique name for a folder's sessions.
func folderName(dir string) string {
	return filepath.Base(dir) + "-" + shortHash(dir)
}
