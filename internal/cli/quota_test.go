package cli

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reasonix/internal/task"
	"reasonix/internal/workspace"
)

// Whatever the tasks are: no quota and no age lets a workspace go that a task works on which has not ended, nor one of the tasks that it
// follows from.
func TestNothingGoesWhileATaskMayStillNeedIt(t *testing.T) {
	ctx := context.Background()
	states := []task.State{task.Queued, task.Running, task.Parked, task.Completed, task.Failed, task.Cancelled, task.Expired}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 10).Draw(t, "tasks")
		tasks := make([]task.Task, n)
		now := time.Unix(1000, 0)
		for i := range tasks {
			tk := task.Task{ID: fmt.Sprint("t", i), State: rapid.SampledFrom(states).Draw(t, "state"), WorkspaceID: fmt.Sprint("w", rapid.IntRange(0, 6).Draw(t, "workspace"))}
			tk.Spec.Route = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "route")
			if tk.State.Ended() {
				tk.Ended = now.Add(-time.Duration(rapid.IntRange(0, 99).Draw(t, "age")) * time.Second)
			}
			if i > 0 && rapid.Bool().Draw(t, "follows") {
				tk.Parent = fmt.Sprint("t", rapid.IntRange(0, i-1).Draw(t, "parent"))
			}
			tasks[i] = tk
		}
		k := keeper{tasks: func(context.Context) ([]task.Task, error) { return tasks, nil }}
		uses, err := k.uses(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var infos []workspace.Info
		var tenants []workspace.Tenant
		for i := range 7 {
			id := fmt.Sprint("w", i)
			infos = append(infos, workspace.Info{ID: id, Created: now.Add(-time.Hour)})
			tenants = append(tenants, workspace.Tenant{ID: id, Route: uses[id].Route, Bytes: 5, Use: uses[id].Use})
		}
		gone := map[string]bool{}
		for _, i := range (workspace.Keep{For: time.Second, Count: rapid.IntRange(0, 3).Draw(t, "keep")}).Expired(infos, plain(uses), now) {
			gone[i.ID] = true
		}
		more, _ := workspace.Admit(tenants, "a", workspace.Room{Count: rapid.IntRange(0, 7).Draw(t, "count"), Bytes: 20}, workspace.Room{Count: 2})
		for _, x := range more {
			gone[x.ID] = true
		}
		byID := map[string]task.Task{}
		for _, tk := range tasks {
			byID[tk.ID] = tk
		}
		for _, tk := range tasks {
			for at := tk; !tk.State.Ended() && at.ID != ""; at = byID[at.Parent] {
				if gone[at.WorkspaceID] {
					t.Fatalf("%s goes, but %s (%s) needs it", at.WorkspaceID, tk.ID, tk.State)
				}
			}
		}
	})
}
