package run

import (
	"context"
	"path/filepath"

	"reasonix/internal/permission"
)

// Before asks the user's hooks about a call; reason is set when they block it. It fails closed.
type Before func(ctx context.Context, c permission.Call) (verdict permission.HookVerdict, reason string)

// Rules is the gate of a run: the configured policy, what people granted on top of it, the situation and the user's hooks.
type Rules struct {
	Policy     *permission.Policy
	Grants     []permission.Rule
	Situation  permission.Situation
	WriteRoots []string // absolute folders besides the workspace that may be written
	Managed    []string // absolute paths of the host's own configuration
	Never      []string // absolute folders of the host's state: no answer opens them for writing
	Home       string   // of the host's user, for a warning
	Before     Before   // may be nil
}

// Judge decides by the rules first, so that a hook never sees a call that a deny rule stops.
func (r Rules) Judge(ctx context.Context, c permission.Call) permission.Decision {
	c = r.complete(c)
	policy := r.Policy.With(r.Grants...)
	d := policy.Decide(c, r.Situation)
	if r.Before == nil || d.Verdict == permission.Deny {
		return d
	}
	s := r.Situation
	verdict, reason := r.Before(ctx, c)
	s.Hook = verdict
	d = policy.Decide(c, s)
	if verdict == permission.HookBlocks && reason != "" {
		d.Reason = reason
	}
	return d
}

// Digest covers the configured rules alone: a grant that comes with a press must not invalidate the action that was pressed for.
func (r Rules) Digest() string { return r.Policy.Digest() }

// Offers lists what a person may grant for later calls, narrowest first.
func (r Rules) Offers(c permission.Call) []string { return r.Policy.Offers(r.complete(c)) }

func (r Rules) complete(c permission.Call) permission.Call {
	c.WriteRoots, c.Managed, c.Never, c.Home = r.WriteRoots, r.Managed, r.Never, r.Home
	if c.RealRoot == "" && c.Root != "" {
		if real, err := filepath.EvalSymlinks(c.Root); err == nil {
			c.RealRoot = real
		}
	}
	return c
}
