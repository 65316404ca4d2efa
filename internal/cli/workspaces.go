package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"reasonix/internal/chat"
	"reasonix/internal/config"
	"reasonix/internal/flow"
	"reasonix/internal/task"
	"reasonix/internal/workspace"
)

// keeper lets workspaces go that no task needs.
type keeper struct {
	spaces *workspace.Store
	tasks  func(ctx context.Context) ([]task.Task, error)
	keep   workspace.Keep
	cfg    config.Config             // quotas
	shop   func() (*workshop, error) // repositories and their credentials, for import
}

func newKeeper(cfg config.Config, spaces *workspace.Store, h *flow.Host) keeper {
	return keeper{cfg: cfg, spaces: spaces, keep: workspace.Keep{For: time.Duration(cfg.Bot.KeepFor), Count: cfg.Bot.Keep},
		tasks: func(ctx context.Context) ([]task.Task, error) {
			return h.Ledger.Tasks(ctx, chat.TaskFilter{Limit: math.MaxInt32})
		}}
}

// use is what the tasks say about a workspace.
type use struct {
	workspace.Use
	Route string // of the newest task on it
	at    time.Time
}

// uses says what the tasks need: a live one its own workspace and those of its ancestors.
func (k keeper) uses(ctx context.Context) (map[string]use, error) {
	tasks, err := k.tasks(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the tasks: %w", err)
	}
	byID := make(map[string]task.Task, len(tasks))
	for _, t := range tasks {
		byID[t.ID] = t
	}
	uses := map[string]use{}
	for _, t := range tasks {
		u := uses[t.WorkspaceID]
		if t.Ended.After(u.Last) {
			u.Last = t.Ended
		}
		if !t.Created.Before(u.at) {
			u.Route, u.at = t.Spec.Route, t.Created
		}
		uses[t.WorkspaceID] = u
		if t.State.Ended() {
			continue
		}
		for at, hops := t, 0; at.ID != "" && hops <= len(tasks); at, hops = byID[at.Parent], hops+1 {
			u := uses[at.WorkspaceID]
			u.Needed = true
			uses[at.WorkspaceID] = u
		}
	}
	return uses, nil
}

// collect removes what may go, or only names it. The tasks are read again before each removal: a reply may have started one meanwhile.
func (k keeper) collect(ctx context.Context, dry bool) ([]workspace.Info, error) {
	all, err := k.spaces.List(ctx)
	if err != nil {
		return nil, err
	}
	uses, err := k.uses(ctx)
	if err != nil {
		return nil, err
	}
	var gone []workspace.Info
	var failed error // one that cannot be removed holds up no other
	for _, i := range k.keep.Expired(all, plain(uses), time.Now()) {
		if !dry {
			if uses, err = k.uses(ctx); err != nil {
				return gone, err
			}
			if uses[i.ID].Needed {
				continue
			}
			if err := k.spaces.Remove(ctx, i.ID); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
		}
		gone = append(gone, i)
	}
	return gone, failed
}

func plain(uses map[string]use) map[string]workspace.Use {
	out := make(map[string]workspace.Use, len(uses))
	for id, u := range uses {
		out[id] = u.Use
	}
	return out
}

// keepTidy collects at the start and every hour until ctx ends.
func (h *house) keepTidy(ctx context.Context) {
	shop, ok := h.flow.Workshop.(*workshop)
	if !ok {
		return
	}
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		gone, err := newKeeper(h.cfg, shop.spaces, h.flow).collect(ctx, false)
		if err != nil && ctx.Err() == nil {
			h.log.Warn("old workspaces could not be removed", "error", err)
		}
		if len(gone) > 0 {
			h.log.Info("old workspaces removed", "count", len(gone))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (a *app) workspaceCommand() *cobra.Command {
	c := &cobra.Command{Use: "workspace", Short: "List, show, restore, move and let go the folders of tasks", Args: exactly(0, "a subcommand"),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	var asJSON, dry bool
	list := &cobra.Command{Use: "list", Short: "List the workspaces and who needs them", Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withKeeper(c.Context(), func(k keeper) error { return a.listWorkspaces(c.Context(), k, asJSON) })
		}}
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	show := &cobra.Command{Use: "show ID", Short: "Show one: folder, size, snapshots, tasks", Args: exactly(1, "a workspace"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withKeeper(c.Context(), func(k keeper) error { return a.showWorkspace(c.Context(), k, args[0]) })
		}}
	restore := &cobra.Command{Use: "restore ID FOLDER", Short: "Write the newest snapshot's files into an empty folder", Args: exactly(2, "a workspace and a folder"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withKeeper(c.Context(), func(k keeper) error {
				if err := k.spaces.Restore(c.Context(), args[0], args[1]); err != nil {
					return mendWorkspace(err)
				}
				fmt.Fprintf(a.out, "Restored into %s. Files that git ignores are not part of a snapshot.\n", args[1])
				return nil
			})
		}}
	var whole bool
	export := &cobra.Command{Use: "export ID FILE", Short: "Write the snapshots into a new file, for another host", Args: exactly(2, "a workspace and a file"),
		Long: "export writes the snapshots of a workspace and what is needed to go on from them on another host. The base commit comes from the " +
			"repository's address there; --whole takes its history along, for a host that cannot reach it.",
		RunE: func(c *cobra.Command, args []string) error {
			return a.withKeeper(c.Context(), func(k keeper) error { return a.exportWorkspace(c.Context(), k, args[0], args[1], whole) })
		}}
	export.Flags().BoolVar(&whole, "whole", false, "take the base's history along")
	imports := &cobra.Command{Use: "import FILE", Short: "Take in what export wrote on another host", Args: exactly(1, "a file"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withKeeper(c.Context(), func(k keeper) error { return a.importWorkspace(c.Context(), k, args[0]) })
		}}
	gc := &cobra.Command{Use: "gc", Short: "Remove workspaces that no task needs and that are past [bot].keep_workspaces_for or keep_workspaces", Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withKeeper(c.Context(), func(k keeper) error {
				gone, err := k.collect(c.Context(), dry)
				word := map[bool]string{true: "would go", false: "removed"}[dry]
				for _, i := range gone {
					fmt.Fprintf(a.out, "%s  %s %s\n", i.ID, i.Repo, word)
				}
				fmt.Fprintf(a.out, "%d %s.\n", len(gone), word)
				return err
			})
		}}
	gc.Flags().BoolVar(&dry, "dry-run", false, "only name them")
	c.AddCommand(list, show, restore, export, imports, gc)
	return c
}

// withKeeper opens workspaces and tasks beside a running host.
func (a *app) withKeeper(ctx context.Context, f func(keeper) error) error {
	return a.withHouse(ctx, func(h *house) error {
		data, err := filepath.Abs(config.ExpandHome(h.cfg.Bot.Data))
		if err != nil {
			return err
		}
		spaces, err := workspace.Open(data, workspace.Options{})
		if err != nil {
			return err
		}
		k := newKeeper(h.cfg, spaces, h.flow)
		k.shop = func() (*workshop, error) {
			_, env, err := a.settings("")
			if err != nil {
				return nil, err
			}
			doors, err := a.openDoors(h.cfg, env, h.slots)
			return &workshop{cfg: h.cfg, doors: doors, spaces: spaces, log: h.log, data: data}, err
		}
		return f(k)
	})
}

func mendWorkspace(err error) error {
	switch {
	case errors.Is(err, workspace.ErrUnknown):
		return fmt.Errorf("%w; `reasonix bot workspace list` names them", err)
	case errors.Is(err, workspace.ErrNoSnapshot):
		return fmt.Errorf("%w: one is made when a turn changed something, and when a task waits or ends", err)
	case errors.Is(err, workspace.ErrNoBase):
		return fmt.Errorf("%w. The repository here does not have the commit that the work is based on: export with --whole", err)
	case errors.Is(err, workspace.ErrExists):
		return fmt.Errorf("%w; it stays as it is", err)
	}
	return err
}

// workspaceView is one line of the list.
type workspaceView struct {
	ID        string    `json:"id"`
	Repo      string    `json:"repo"`
	Branch    string    `json:"branch"`
	Snapshots int       `json:"snapshots"`
	Bytes     int64     `json:"bytes"`
	Route     string    `json:"route"`
	Needed    bool      `json:"needed"`
	Created   time.Time `json:"created"`
	LastEnd   time.Time `json:"last_end,omitzero"`
}

func (a *app) listWorkspaces(ctx context.Context, k keeper, asJSON bool) error {
	all, err := k.spaces.List(ctx)
	if err != nil {
		return err
	}
	tenants, err := k.tenants(ctx, true)
	if err != nil {
		return err
	}
	uses := map[string]workspace.Tenant{}
	for _, t := range tenants {
		uses[t.ID] = t
	}
	views := make([]workspaceView, len(all))
	for n, i := range all {
		u := uses[i.ID]
		views[n] = workspaceView{ID: i.ID, Repo: i.Repo, Branch: i.Branch, Snapshots: i.Snapshots, Bytes: u.Bytes, Route: u.Route, Needed: u.Needed, Created: i.Created, LastEnd: u.Last}
	}
	if asJSON {
		return a.json(views)
	}
	if len(views) == 0 {
		fmt.Fprintln(a.out, "No workspaces.")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "WORKSPACE\tREPOSITORY\tROUTE\tSIZE\tSNAPSHOTS\tNEEDED\tLAST TASK ENDED")
	for _, v := range views {
		needed, ended := "no", "-"
		if v.Needed {
			needed = "yes"
		}
		if !v.LastEnd.IsZero() {
			ended = v.LastEnd.Local().Format(time.DateTime)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", v.ID, v.Repo, v.Route, workspace.Bytes(v.Bytes), v.Snapshots, needed, ended)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return a.listTotals(ctx, k)
}

func (a *app) listTotals(ctx context.Context, k keeper) error {
	text, _, err := k.fullness(ctx)
	if err != nil {
		return err
	}
	mirrors, err := k.spaces.MirrorsSize(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "\nTogether: %s. Mirrors, shared by all: %s.\n", text, workspace.Bytes(mirrors))
	return nil
}

func (a *app) showWorkspace(ctx context.Context, k keeper, id string) error {
	snaps, err := k.spaces.Snapshots(ctx, id)
	if err != nil {
		return mendWorkspace(err)
	}
	all, err := k.spaces.List(ctx)
	if err != nil {
		return err
	}
	size, err := k.spaces.Size(ctx, id)
	if err != nil {
		return err
	}
	tasks, err := k.tasks(ctx)
	if err != nil {
		return fmt.Errorf("read the tasks: %w", err)
	}
	p := func(label, v string) { fmt.Fprintf(a.out, "%-12s %s\n", label, v) }
	for _, i := range all {
		if i.ID == id {
			p("workspace", i.ID)
			p("repository", strings.TrimSpace(i.Repo+" "+i.Branch))
			p("base", i.Base)
			p("folder", i.Dir)
		}
	}
	p("size", workspace.Bytes(size))
	for _, s := range snaps {
		p("snapshot", s.At.Local().Format(time.DateTime)+" "+s.SHA)
	}
	for _, t := range tasks {
		if t.WorkspaceID == id {
			p("task", fmt.Sprintf("%s %s: %s", t.ID, t.State, t.Title))
		}
	}
	return nil
}
