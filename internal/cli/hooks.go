package cli

import (
	"context"
	"fmt"
	"time"

	"reasonix/internal/config"
	"reasonix/internal/hook"
	"reasonix/internal/permission"
	"reasonix/internal/run"
)

// hooksOf are the user's commands around calls; nil when none is configured.
func hooksOf(cfg config.Config, dir string) (run.Before, error) {
	if len(cfg.Hooks) == 0 {
		return nil, nil
	}
	hooks := make([]hook.Hook, len(cfg.Hooks))
	for i, h := range cfg.Hooks {
		if h.Event != string(hook.PreToolUse) {
			return nil, fmt.Errorf("%s: hooks for %s are not available yet; %s is", h.Source, h.Event, hook.PreToolUse)
		}
		hooks[i] = hook.Hook{Event: hook.Event(h.Event), Matcher: h.Matcher, Command: h.Command, Timeout: time.Duration(h.TimeoutSeconds) * time.Second, Source: h.Source}
	}
	runner, err := hook.New(hooks, hook.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, c permission.Call) (permission.HookVerdict, string) {
		if !runner.Any(hook.PreToolUse, c.Tool) {
			return permission.HookNone, ""
		}
		out := runner.Run(ctx, hook.Input{Event: hook.PreToolUse, Dir: dir, Tool: c.Tool, Args: c.Args})
		return out.Verdict, out.Reason
	}, nil
}
