package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"reasonix/internal/agent"
	"reasonix/internal/hook"
	"reasonix/internal/permission"
)

// ErrBlockedRequest: a UserPromptSubmit hook blocked the request; the model never saw it.
var ErrBlockedRequest = errors.New("a UserPromptSubmit hook blocked the request")

// maxStops bounds how often Stop hooks send one request back to work.
const maxStops = 3

// Hooks are the user's commands around one run. A nil Hooks runs none.
type Hooks struct {
	Runner    *hook.Runner
	Dir       string
	TaskID    string // empty in the terminal
	SessionID string
	Standing  *Standing // for the posture; may be nil
}

func (h *Hooks) any(e hook.Event, tool string) bool { return h != nil && h.Runner.Any(e, tool) }

func (h *Hooks) run(ctx context.Context, in hook.Input) hook.Outcome {
	in.Dir, in.TaskID, in.SessionID, in.Posture = h.Dir, h.TaskID, h.SessionID, h.Standing.Posture()
	return h.Runner.Run(ctx, in)
}

// Before is PreToolUse, for Rules.Before.
func (h *Hooks) Before(ctx context.Context, c permission.Call) (permission.HookVerdict, string) {
	if !h.any(hook.PreToolUse, c.Tool) {
		return permission.HookNone, ""
	}
	out := h.run(ctx, hook.Input{Event: hook.PreToolUse, Tool: c.Tool, Args: c.Args})
	return out.Verdict, out.Reason
}

// Request is PermissionRequest, for Rules.Request: a block denies, and an allow answers what hook.Answers lets it answer.
func (h *Hooks) Request(ctx context.Context, c permission.Call, d permission.Decision) permission.Decision {
	if !h.any(hook.PermissionRequest, c.Tool) {
		return d
	}
	out := h.run(ctx, hook.Input{Event: hook.PermissionRequest, Tool: c.Tool, Args: c.Args, Reason: d.Reason})
	switch {
	case out.Blocked():
		d.Verdict, d.Reason = permission.Deny, "a PermissionRequest hook blocked the call: "+out.Reason
	case hook.Answers(d, out):
		d.Verdict, d.Reason = permission.Allow, strings.TrimSuffix("a PermissionRequest hook allowed it: "+out.Reason, ": ")
	}
	return d
}

// after is PostToolUse, for agent.Config.After; nil when there is nothing to run.
func (h *Hooks) after() func(context.Context, agent.Ran) string {
	if h == nil {
		return nil
	}
	return func(ctx context.Context, r agent.Ran) string {
		if !h.any(hook.PostToolUse, r.Tool) {
			return ""
		}
		out := h.run(ctx, hook.Input{Event: hook.PostToolUse, Tool: r.Tool, Args: r.Args, Result: r.Text, IsError: !r.OK})
		if out.Blocked() {
			return "[hook] The call ran, and a PostToolUse hook objects: " + out.Reason + hookContext(out)
		}
		return strings.TrimPrefix(hookContext(out), "\n")
	}
}

// submit is UserPromptSubmit: what the hooks add to the text, or ErrBlockedRequest with their reason.
func (h *Hooks) submit(ctx context.Context, text string) (string, error) {
	if !h.any(hook.UserPromptSubmit, "") {
		return "", nil
	}
	out := h.run(ctx, hook.Input{Event: hook.UserPromptSubmit, Prompt: text})
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if out.Blocked() {
		return "", fmt.Errorf("%w: %s", ErrBlockedRequest, out.Reason)
	}
	if c := hookContext(out); c != "" {
		return "\n" + c, nil
	}
	return "", nil
}

func hookContext(out hook.Outcome) string {
	if c := strings.TrimSpace(out.Context); c != "" {
		return "\n[hook] " + c
	}
	return ""
}

// stopHooks asks the Stop hooks before the work ends; an objection is told to the model, at most maxStops times for a request.
func (d *drive) stopHooks(ctx context.Context, out agent.Outcome) (bool, error) {
	h := d.spec.Hooks
	if !h.any(hook.Stop, "") {
		return false, nil
	}
	key, free := "", false
	for n := range maxStops {
		if key = fmt.Sprintf("stop:%s:%d", d.spec.PromptKey, n+1); !d.loop.Seen(key) {
			free = true
			break
		}
	}
	said := h.run(ctx, hook.Input{Event: hook.Stop, Reason: out.Text})
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if !said.Blocked() {
		return false, nil
	}
	if !free {
		return false, d.loop.Note(ctx, "stop_hook", "the work ended although a Stop hook still objects: "+said.Reason)
	}
	return true, d.loop.Say(ctx, key, "[host] Before the work ends, a Stop hook objects: "+said.Reason+"\nMend it, or say why it cannot be mended.")
}
