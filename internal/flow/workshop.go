package flow

import (
	"context"

	"reasonix/internal/budget"
	"reasonix/internal/run"
	"reasonix/internal/task"
	"reasonix/internal/workspace"
)

// Workshop sets up what an attempt works with: the workspace, its box, the tools and the model.
type Workshop interface {
	// Prepare opens or makes the task's workspace. Its error says in one sentence what a person can do about it.
	Prepare(ctx context.Context, t task.Task, grants []Grant) (Bench, error)
	// Price is the model's configured price; the zero value when there is none.
	Price(model string) budget.Price
}

// Bench is one attempt's equipment.
type Bench interface {
	// Equip fills the parts of the spec, whose session is set, that belong to the workspace, the rules and the model.
	Equip(ctx context.Context, spec *run.Spec) error
	// Snapshot keeps the state of the workspace on the host's side.
	Snapshot(ctx context.Context) error
	// Harvest reads what the task made, as one change on top of its base.
	Harvest(ctx context.Context, message string) (workspace.Harvest, error)
	// Push brings the harvest to the repository it came from; it is idempotent.
	Push(ctx context.Context, h workspace.Harvest, branch string) error
	// Close ends the processes of the task and names those that were still running.
	Close() []string
}
