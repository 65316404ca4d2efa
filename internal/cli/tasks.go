package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"reasonix/internal/chat"
	"reasonix/internal/flow"
	"reasonix/internal/task"
)

// states are those of a task.
var states = []string{"queued", "running", "parked", "completed", "failed", "cancelled", "expired"}

func (a *app) tasksCommand() *cobra.Command {
	var asJSON bool
	var state string
	c := &cobra.Command{
		Use:   "tasks",
		Short: "List tasks; show, cancel or retry one",
		Args:  exactly(0, "a subcommand or none"),
		RunE: func(c *cobra.Command, _ []string) error {
			if state != "" && !slices.Contains(states, state) {
				return usageError{fmt.Errorf("--state %q: use one of %s", state, strings.Join(states, ", "))}
			}
			return a.withDesk(c.Context(), func(h *flow.Host) error {
				tasks, err := h.Tasks(c.Context(), chat.TaskFilter{State: state, Limit: 200})
				if err != nil {
					return err
				}
				if asJSON {
					return a.json(tasks)
				}
				return a.taskTable(tasks)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&state, "state", "", "only tasks in this state")
	c.AddCommand(a.taskShow(), a.taskCancel(), a.taskRetry())
	return c
}

func (a *app) taskTable(tasks []chat.TaskView) error {
	if len(tasks) == 0 {
		fmt.Fprintln(a.out, "No tasks.")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "TASK\tSTATE\tROUTE\tASKED BY\tUPDATED\tREQUEST")
	for _, t := range tasks {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, t.State, t.Route, t.Requester, t.Updated.Local().Format(time.DateTime), t.Title)
	}
	return w.Flush()
}

func (a *app) taskShow() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "show TASK", Short: "Show a task with its asks, receipt and delivery troubles", Args: exactly(1, "a task"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withDesk(c.Context(), func(h *flow.Host) error {
				t, err := h.Task(c.Context(), args[0])
				if errors.Is(err, chat.ErrNotFound) {
					return fmt.Errorf("there is no task %s; `reasonix bot tasks` lists them", args[0])
				}
				if err != nil {
					return err
				}
				if asJSON {
					return a.json(t)
				}
				a.printTask(t)
				return nil
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) printTask(t chat.TaskView) {
	p := func(label, v string) {
		if v != "" {
			fmt.Fprintf(a.out, "%-14s %s\n", label, v)
		}
	}
	p("task", t.ID)
	p("state", t.State)
	p("request", t.Request)
	p("asked by", t.Requester)
	p("route", t.Route)
	for _, f := range t.Controls {
		p("", f.Label+": "+f.Value)
	}
	p("repository", strings.TrimSpace(t.Repo+" "+t.Branch))
	p("pull request", t.PullRequest)
	p("result", t.Result)
	for _, ask := range t.Asks {
		p("ask", fmt.Sprintf("%s %s: %s %s", ask.ID, ask.State, ask.Title, ask.Answer))
	}
	if r := t.Receipt; r != nil {
		for _, f := range append(append(r.Checks, r.Tools...), r.Usage...) {
			p("receipt", f.Label+": "+f.Value)
		}
		for _, s := range r.HostFacts {
			p("host notes", s)
		}
	}
	for _, s := range t.Trouble {
		p("trouble", s)
	}
	if t.Diff != "" {
		fmt.Fprintln(a.out, "\n"+t.Diff)
	}
}

func (a *app) taskCancel() *cobra.Command {
	return &cobra.Command{
		Use: "cancel TASK", Short: "Stop a task: at once when it waits, at its next breath when it runs", Args: exactly(1, "a task"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withDesk(c.Context(), func(h *flow.Host) error {
				return a.event(c.Context(), h, chat.Event{Verb: chat.VerbStop, Text: args[0]})
			})
		},
	}
}

func (a *app) taskRetry() *cobra.Command {
	return &cobra.Command{
		Use: "retry TASK", Short: "Queue an ended task again; it continues its transcript", Args: exactly(1, "a task"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withDesk(c.Context(), func(h *flow.Host) error {
				if err := h.RetryTask(c.Context(), task.NewID("cli"), args[0]); err != nil {
					return err
				}
				fmt.Fprintln(a.out, "Queued again.")
				return nil
			})
		},
	}
}

// event sends what a person types here through the same way in as every other door.
func (a *app) event(ctx context.Context, h *flow.Host, e chat.Event) error {
	name, err := loginName()
	if err != nil {
		return err
	}
	e.Key, e.On, e.Received = "cli:"+task.NewID("event"), "cli", time.Now()
	e.Actor = chat.Actor{Kind: "cli", ID: name, Name: name}
	e.Place = chat.Place{Connection: "cli", Kind: "cli", Channel: "terminal"}
	out, err := h.Accept(ctx, e)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.out, out.Text)
	if out.Kind == chat.OutcomeRefused {
		return exit{ExitError}
	}
	return nil
}

func loginName() (string, error) {
	u, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("find out who you are: %w", err)
	}
	return u.Username, nil
}

func (a *app) asksCommand() *cobra.Command {
	var all, asJSON bool
	c := &cobra.Command{
		Use:   "asks",
		Short: "List what waits for a person; show or answer one",
		Args:  exactly(0, "a subcommand or none"),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withDesk(c.Context(), func(h *flow.Host) error {
				asks, err := h.Asks(c.Context(), !all)
				if err != nil {
					return err
				}
				if asJSON {
					return a.json(asks)
				}
				return a.askTable(asks)
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "answered and expired ones too")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(a.askShow(), a.askAnswer())
	return c
}

func (a *app) askTable(asks []chat.AskView) error {
	if len(asks) == 0 {
		fmt.Fprintln(a.out, "Nothing waits for a person.")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ASK\tSTATE\tTASK\tKIND\tSINCE\tWHAT")
	for _, x := range asks {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", x.ID, x.State, x.TaskID, x.Kind, x.Created.Local().Format(time.DateTime), x.Title)
	}
	return w.Flush()
}

func (a *app) findAsk(ctx context.Context, h *flow.Host, id string) (chat.AskView, error) {
	asks, err := h.Asks(ctx, false)
	if err != nil {
		return chat.AskView{}, err
	}
	for _, x := range asks {
		if x.ID == id {
			return x, nil
		}
	}
	return chat.AskView{}, fmt.Errorf("there is no ask %s; `reasonix bot asks` lists the open ones", id)
}

func (a *app) askShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ASK", Short: "Show an ask whole", Args: exactly(1, "an ask"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withDesk(c.Context(), func(h *flow.Host) error {
				x, err := a.findAsk(c.Context(), h, args[0])
				if err != nil {
					return err
				}
				a.printAsk(x)
				return nil
			})
		},
	}
}

func (a *app) printAsk(x chat.AskView) {
	fmt.Fprintf(a.out, "%s (%s)\n%s\n", x.Title, x.State, x.ID)
	if x.Text != "" {
		fmt.Fprintln(a.out, "\n"+visible(x.Text))
	}
	for _, b := range x.Blocks {
		fmt.Fprintf(a.out, "\n--- %s\n%s\n---\n", b.Name, visible(b.Text))
	}
	for _, f := range x.Fields {
		fmt.Fprintf(a.out, "%s: %s\n", f.Label, visible(f.Value))
	}
	if x.Digest != "" {
		fmt.Fprintln(a.out, "digest:", x.Digest)
	}
	if x.Answer != "" {
		fmt.Fprintln(a.out, "answer:", visible(x.Answer))
	}
	for _, b := range x.Buttons {
		more := ""
		if b.Input {
			more = " TEXT"
		}
		fmt.Fprintf(a.out, "  reasonix bot asks answer %s %s%s   # %s\n", x.ID, b.Choice, more, b.Label)
	}
}

// visible shows control characters as escapes, so that a text cannot repaint the terminal.
func visible(s string) string { return chat.Visible(s) }

func (a *app) askAnswer() *cobra.Command {
	return &cobra.Command{
		Use: "answer ASK CHOICE [TEXT...]", Short: "Answer an ask, as the person that [[people]] ties to your login name", Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withDesk(c.Context(), func(h *flow.Host) error {
				return a.event(c.Context(), h, chat.Event{Verb: chat.VerbPress, Press: &chat.Press{AskID: args[0], Choice: args[1], Text: strings.Join(args[2:], " ")}})
			})
		},
	}
}

func (a *app) json(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
