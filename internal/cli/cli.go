// Package cli is what a person types: subcommands, flags, assembly, exit codes and the texts that say what to do next.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"reasonix/internal/config"
	"reasonix/internal/sandbox"
	"reasonix/internal/tui"
)

// Exit codes. `reasonix help exit-codes` prints this table.
const (
	ExitDone        = 0   // done; refused calls that the model worked around leave 0
	ExitError       = 1   // something failed
	ExitUsage       = 2   // the command line is wrong
	ExitQuestion    = 3   // ended on a question or a plan that nobody could answer
	ExitRefused     = 4   // ended because of a refusal
	ExitBudget      = 5   // a limit was reached
	ExitBlocked     = 6   // the goal is blocked
	ExitInterrupted = 130 // interrupted
)

const exitCodeHelp = `Exit codes of reasonix run:

    0  done; refused calls that the model worked around leave 0
    1  an error: the message says what failed and what to do
    2  the command line is wrong
    3  ended on a question or a plan that nobody could answer
    4  ended because a call was refused
    5  a limit was reached (steps, tokens, cost or time)
    6  the goal reported that it is blocked
  130  interrupted

Every other subcommand uses 0, 1, 2 and 130.
`

// exit carries a code up to Main; what had to be said was said.
type exit struct{ code int }

func (e exit) Error() string { return fmt.Sprintf("exit %d", e.code) }

// usageError is a mistake in the command line.
type usageError struct{ error }

// app is what every subcommand shares.
type app struct {
	version string
	in      io.Reader
	out     io.Writer
	errs    io.Writer
	getenv  func(string) string

	configPath string // --config
}

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, version string, args []string) int {
	if len(args) > 0 && args[0] == sandbox.RelayCommand { // the start of a box with a network; it becomes the command
		fmt.Fprintln(os.Stderr, "reasonix:", sandbox.Relay(args[1:]))
		return ExitError
	}
	if len(args) == 1 && args[0] == sandbox.StageCommand { // the start of a reduced box; it stays outside and ends what runs inside
		if err := sandbox.Stage(); err != nil {
			fmt.Fprintln(os.Stderr, "reasonix:", err)
			return ExitError
		}
		return ExitDone
	}
	a := &app{version: version, in: os.Stdin, out: os.Stdout, errs: os.Stderr, getenv: os.Getenv}
	return a.main(ctx, args)
}

func (a *app) main(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errs)
	err := root.ExecuteContext(ctx)
	var code exit
	var usage usageError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &code):
		return code.code
	case ctx.Err() != nil:
		return ExitInterrupted
	case errors.As(err, &usage):
		fmt.Fprintf(a.errs, "reasonix: %v\nTry `reasonix --help`.\n", err)
		return ExitUsage
	}
	fmt.Fprintf(a.errs, "reasonix: %v\n", err)
	return ExitError
}

func (a *app) root() *cobra.Command {
	var f chatFlags
	root := &cobra.Command{
		Use:           "reasonix",
		Short:         "A host for unattended coding work",
		Long:          "reasonix runs coding work that people ask for where they are: a chat, a comment, a schedule, a page — or this terminal.\n\nWithout a subcommand, at a terminal, it begins `reasonix chat` in this folder, with the flags below.",
		Version:       a.version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q", args[0])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if in, ok := a.in.(*os.File); c.Flags().NFlag() > 0 || ok && tui.IsTerminal(in, os.Stdout, a.getenv) {
				return a.chat(c.Context(), f, "")
			}
			return c.Help()
		},
	}
	f.addTo(root)
	root.PersistentFlags().StringVar(&a.configPath, "config", "", "configuration file (default: ~/.reasonix/config.toml)")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(a.chatCommand(), a.runCommand(), a.setupCommand(), a.doctorCommand(), a.botCommand(), a.permissionCommand(), a.demoCommand(), exitCodesTopic())
	return root
}

func exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodeHelp}
}

// exactly turns cobra's complaint about arguments into a usage error.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return usageError{fmt.Errorf("expected %s, got %d arguments", what, len(args))}
		}
		return nil
	}
}

// settings reads the configuration: the user's file (or --config) and, for terminal work, the project's in dir.
func (a *app) settings(projectFile string) (config.Config, config.Env, error) {
	user, envPath, err := a.paths()
	if err != nil {
		return config.Config{}, config.Env{}, err
	}
	if a.configPath != "" {
		if _, err := os.Stat(a.configPath); err != nil {
			return config.Config{}, config.Env{}, fmt.Errorf("read configuration: %w", err)
		}
		user = a.configPath
	}
	cfg, err := config.Load(config.Sources{User: user, Project: projectFile})
	if err != nil {
		return cfg, config.Env{}, fmt.Errorf("configuration: %w", err)
	}
	env, err := config.LoadEnv(envPath, a.getenv)
	return cfg, env, err
}
