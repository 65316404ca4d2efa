package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"reasonix/internal/config"
	"reasonix/internal/evidence"
	"reasonix/internal/flow"
	"reasonix/internal/permission"
	"reasonix/internal/tool"
)

func (a *app) permissionCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "permission", Short: "Explain, test and list what may run", Args: exactly(0, "a subcommand"),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.permissionExplain(), a.permissionTest(), a.permissionList(), a.permissionRevoke())
	return c
}

func (a *app) permissionExplain() *cobra.Command {
	var name, args, posture, surface string
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain --tool TOOL --args JSON",
		Short: "Say what would happen to a call, and why",
		Args:  exactly(0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			if name == "" {
				return usageError{errors.New("--tool is needed, for example: --tool bash --args '{\"command\":\"go test ./...\"}'")}
			}
			cfg, _, err := a.settings("reasonix.toml")
			if err != nil {
				return err
			}
			dir, err := os.Getwd()
			if err != nil {
				return err
			}
			reg, err := builtins()
			if err != nil {
				return err
			}
			decoded, err := reg.DecodePartial(name, args)
			if err != nil {
				return usageError{err}
			}
			t, known := reg.Get(name)
			call := permission.Call{Tool: name, Args: decoded, ReadOnly: known && t.ReadOnly(), Root: dir}
			d := rulesOf(cfg).Decide(call, permission.Situation{Posture: permission.Posture(posture), Surface: permission.Surface(surface)})
			if asJSON {
				return a.json(d)
			}
			a.printDecision(d)
			return nil
		},
	}
	c.Flags().StringVar(&name, "tool", "", "the tool's name")
	c.Flags().StringVar(&args, "args", "{}", "the call's arguments, a JSON object")
	c.Flags().StringVar(&posture, "posture", "ask", "ask, auto or yolo")
	c.Flags().StringVar(&surface, "surface", "attended", "attended or headless")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) printDecision(d permission.Decision) {
	fmt.Fprintf(a.out, "decision: %s\n", d.Verdict)
	if d.Class != "" {
		fmt.Fprintf(a.out, "class:    %s\n", d.Class)
	}
	if d.Offending != "" {
		fmt.Fprintf(a.out, "because:  %s\n", visible(d.Offending))
	}
	if d.Rule != "" {
		fmt.Fprintf(a.out, "rule:     %s  (%s)\n", d.Rule, d.Source)
	}
	fmt.Fprintf(a.out, "reason:   %s\n", d.Reason)
}

// builtins are all built-in tools, for looking at and never for calling.
func builtins() (*tool.Registry, error) {
	all := tool.Builtins(tool.Env{Files: describedFiles{}, Shell: noShell{}, Note: func(string, json.RawMessage) {}})
	return tool.NewRegistry(append(all, evidence.NewStep(evidence.StepPorts{}))...)
}

// describedFiles stands in where tools are only described and never called.
type describedFiles struct{ tool.Files }

func (a *app) permissionTest() *cobra.Command {
	return &cobra.Command{
		Use:   "test FILE.jsonl|-",
		Short: "Evaluate policy cases, one JSON line each; exit 1 when a want differs",
		Long: `test reads one case a line, each with rules of its own, and prints one JSON line for each. Fields of a case: allow, ask, deny (lists),
mode, posture, surface (attended or headless), allow_dynamic_bash, plan_window, hook (none, allows or blocks), tool, args,
read_only, and want, which is compared when it is there. Keep such files beside your policy.`,
		Args: exactly(1, "a file, or - for standard input"),
		RunE: func(_ *cobra.Command, args []string) error {
			in := a.in
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return fmt.Errorf("read cases: %w", err)
				}
				defer f.Close()
				in = f
			}
			return a.testCases(args[0], in)
		},
	}
}

func (a *app) testCases(name string, in io.Reader) error {
	reg, err := builtins()
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 4<<20)
	differs := 0
	out := json.NewEncoder(a.out)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		res, err := permission.EvaluateCase(lines.Bytes(), func(tool string, args json.RawMessage) error {
			_, err := reg.DecodePartial(tool, string(args))
			return err
		})
		if err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if err := out.Encode(res); err != nil {
			return err
		}
		if res.Differs {
			differs++
			fmt.Fprintf(a.errs, "%s:%d: decided %s, wanted %s\n", name, n, res.Verdict, res.Want)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if differs > 0 {
		return exit{ExitError}
	}
	return nil
}

func (a *app) permissionList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the rules in force with their places, and what people granted to the host", Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, _, err := a.settings("reasonix.toml")
			if err != nil {
				return err
			}
			deny, ask, allow := rulesOf(cfg).Rules()
			w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
			for _, l := range []struct {
				name  string
				rules []permission.Rule
			}{{"deny", deny}, {"ask", ask}, {"allow", allow}} {
				for _, r := range l.rules {
					fmt.Fprintf(w, "%s\t%s\t%s\n", l.name, r.Text, r.Source)
				}
			}
			for _, d := range cfg.Sandbox.AllowWrite {
				fmt.Fprintf(w, "write\t%s\t[sandbox].allow_write\n", d)
			}
			fmt.Fprintf(w, "fallback\t%s\tfor writers that no rule matches\n", cfg.Permissions.Mode)
			if err := w.Flush(); err != nil {
				return err
			}
			return a.listGrants(c)
		},
	}
}

func (a *app) listGrants(c *cobra.Command) error {
	if !a.hostHasState() {
		return nil
	}
	return a.withDesk(c.Context(), func(h *flow.Host) error {
		grants, err := h.Ledger.Grants(c.Context(), "", "")
		if err != nil {
			return err
		}
		for _, g := range grants {
			scope := "route " + g.Route
			if g.TaskID != "" {
				scope = "task " + g.TaskID
			}
			fmt.Fprintf(a.out, "grant %d  %s  %s, by %s at %s\n", g.ID, g.Rule, scope, g.By, g.At.Local().Format("2006-01-02 15:04"))
		}
		return nil
	})
}

// hostHasState tells whether a host has ever run with this configuration; listing rules must not create its state.
func (a *app) hostHasState() bool {
	cfg, _, err := a.settings("")
	if err != nil {
		return false
	}
	path, err := statePath(cfg)
	if err != nil {
		return false
	}
	_, err = os.Stat(path)
	return err == nil
}

func (a *app) permissionRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke GRANT|RULE", Short: "Take back a grant, by its number in `permission list`, or an allow rule, by its text",
		Long: `revoke takes a number from ` + "`permission list`" + ` and ends that grant of the host, or the text of a rule and takes it out of [permissions].allow of
reasonix.toml here and of your own configuration; the rest of the files stays as it is. For a folder that was opened for writing, give its path.`,
		Args: exactly(1, "the number of a grant, or the text of a rule"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return a.revokeRule(c.Context(), args[0])
			}
			return a.revokeGrant(c.Context(), id)
		},
	}
}

func (a *app) revokeGrant(ctx context.Context, id int64) error {
	return a.withDesk(ctx, func(h *flow.Host) error {
		err := h.Ledger.RevokeGrant(ctx, id)
		if errors.Is(err, flow.ErrUnknown) {
			return fmt.Errorf("there is no grant %d; `reasonix permission list` shows them", id)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(a.out, "Revoked. It counts from the next turn on, in running tasks too.")
		return nil
	})
}

// revokeRule takes a rule, or a folder that may be written, out of every file that holds it.
func (a *app) revokeRule(ctx context.Context, text string) error {
	user, _, err := a.paths()
	if err != nil {
		return err
	}
	home := filepath.Dir(user)
	if a.configPath != "" {
		user = a.configPath
	}
	list := config.AllowRules
	if filepath.IsAbs(text) {
		list = config.WriteDirs
	}
	found := false
	for _, file := range []string{"reasonix.toml", user} {
		err := a.editor(home).Remove(ctx, list, file, text)
		if errors.Is(err, config.ErrAbsent) {
			continue
		}
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(a.out, "Taken out of %s: %s\n", file, text)
	}
	if !found {
		return fmt.Errorf("no file allows %s; `reasonix permission list` shows the rules with their files", text)
	}
	return nil
}
