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
	WriteRoots []string  // absolute folders besides the workspace that may be written
	Managed    []string  // absolute paths of the host's own configuration
	Before     Before    // may be nil
	Request    Request   // may be nil
	Standing   *Standing // what changes while the attempt runs; nil: Situation holds throughout
	Never      []string  // absolute folders of the host's state: no answer opens them for writing
	Home       string    // of the host's user, for a warning
}

// Request asks the user's hooks on PermissionRequest whether they answer for a person; a block is a no. They are asked before people are, and
// never again about the same call: a person's answer is not theirs to overturn.
type Request func(ctx context.Context, c permission.Call, d permission.Decision) permission.Decision

// Judge decides by the rules first, so that a hook never sees a call that a deny rule stops.
func (r Rules) Judge(ctx context.Context, c permission.Call) permission.Decision {
	c = r.complete(c)
	policy := r.Policy.With(r.Standing.grantsOr(r.Grants)...)
	s := r.Standing.situation(r.Situation)
	d := policy.Decide(c, s)
	if d.Verdict == permission.Deny {
		return d
	}
	if r.Before != nil {
		d = r.afterHooks(ctx, policy, c, s)
	}
	if r.Request != nil && !c.Asked && (d.Verdict == permission.Ask || d.Verdict == permission.AskHuman) {
		d = r.Request(ctx, c, d)
	}
	return d
}

// WithHooks adds the user's hooks; nil adds none.
func (r Rules) WithHooks(h *Hooks) Rules {
	if h != nil {
		r.Before, r.Request = h.Before, h.Request
	}
	return r
}

func (r Rules) afterHooks(ctx context.Context, policy *permission.Policy, c permission.Call, s permission.Situation) permission.Decision {
	verdict, reason := r.Before(ctx, c)
	s.Hook = verdict
	d := policy.Decide(c, s)
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
