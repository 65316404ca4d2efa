package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"reasonix/internal/chat"
	"reasonix/internal/config"
	"reasonix/internal/workspace"
)

const (
	freshSize   = 5 * time.Minute // for workspaces that tasks write
	removalWait = 5 * time.Second // for one that somebody holds just now
)

// rooms are the quotas of the host and of one route; a route that is not configured any more has none of its own.
func rooms(cfg config.Config, route string) (host, own workspace.Room) {
	host = workspace.Room{Count: cfg.Bot.MaxWorkspaces, Bytes: int64(cfg.Bot.MaxWorkspacesMB) << 20}
	if i := slices.IndexFunc(cfg.Routes, func(r config.Route) bool { return r.Name == route }); i >= 0 {
		own = workspace.Room{Count: cfg.Routes[i].MaxWorkspaces, Bytes: int64(cfg.Routes[i].MaxWorkspacesMB) << 20}
	}
	return host, own
}

// tenants are all workspaces with what the tasks say about them, and their sizes where somebody asks for them.
func (k keeper) tenants(ctx context.Context, sizes bool) ([]workspace.Tenant, error) {
	ids, err := k.spaces.IDs()
	if err != nil {
		return nil, err
	}
	uses, err := k.uses(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]workspace.Tenant, len(ids))
	for i, id := range ids {
		u := uses[id]
		all[i] = workspace.Tenant{ID: id, Route: u.Route, Use: u.Use}
		if !sizes {
			continue
		}
		since := u.Last
		if u.Needed || since.IsZero() {
			since = time.Now().Add(-freshSize)
		}
		if all[i].Bytes, err = k.spaces.Measured(ctx, id, since); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// admit makes room for a task's new workspace or says why there is none.
func (k keeper) admit(ctx context.Context, route string) error {
	host, own := rooms(k.cfg, route)
	if host == (workspace.Room{}) && own == (workspace.Room{}) {
		return nil
	}
	for {
		all, err := k.tenants(ctx, host.Bytes > 0 || own.Bytes > 0)
		if err != nil {
			return err
		}
		gone, err := workspace.Admit(all, route, host, own)
		if err != nil {
			return err
		}
		if len(gone) == 0 {
			return nil
		}
		if err := k.letGo(ctx, gone[0].ID); err != nil { // then look again: a reply may have started a task meanwhile
			return fmt.Errorf("make room for a workspace: %w", err)
		}
	}
}

// letGo removes a workspace that no task needs.
func (k keeper) letGo(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, removalWait)
	defer cancel()
	uses, err := k.uses(ctx)
	if err != nil || uses[id].Needed {
		return err
	}
	return k.spaces.Remove(ctx, id)
}

// spaceHealth shows how full the quotas are.
func (a *app) spaceHealth(ctx context.Context, cfg config.Config, h *house) chat.HealthItem {
	item := chat.HealthItem{Name: "workspaces"}
	data, err := filepath.Abs(config.ExpandHome(cfg.Bot.Data))
	if err == nil {
		var spaces *workspace.Store
		if spaces, err = workspace.Open(data, workspace.Options{}); err == nil {
			item.Text, item.OK, err = newKeeper(cfg, spaces, h.flow).fullness(ctx)
		}
	}
	if err != nil {
		return chat.HealthItem{Name: "workspaces", Text: err.Error(), Mend: "check [bot].data and the free space of its disk"}
	}
	if !item.OK {
		item.Mend = "end or answer waiting tasks (`reasonix bot tasks`), or raise max_workspaces or max_workspaces_mb"
	}
	return item
}

// fullness words what is used; room tells whether a new task of every route would get a workspace.
func (k keeper) fullness(ctx context.Context) (text string, room bool, err error) {
	all, err := k.tenants(ctx, true)
	if err != nil {
		return "", false, err
	}
	var bytes int64
	needed := 0
	for _, t := range all {
		bytes += t.Bytes
		if t.Needed {
			needed++
		}
	}
	host, _ := rooms(k.cfg, "")
	text = fmt.Sprintf("%d, %s, %d needed by tasks; quota: %s", len(all), workspace.Bytes(bytes), needed, quotaWords(host))
	room = true
	for _, r := range k.cfg.Routes {
		host, own := rooms(k.cfg, r.Name)
		if _, err := workspace.Admit(all, r.Name, host, own); err != nil {
			text += "; " + err.Error()
			room = false
		}
	}
	return text, room, nil
}

func quotaWords(r workspace.Room) string {
	if r == (workspace.Room{}) {
		return "none"
	}
	return r.String()
}
