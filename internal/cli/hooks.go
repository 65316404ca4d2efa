package cli

import (
	"time"

	"reasonix/internal/config"
	"reasonix/internal/hook"
	"reasonix/internal/run"
)

// hooksOf are the user's commands around calls, questions, requests and the end; nil when none is configured. taskID is empty in the terminal.
func hooksOf(cfg config.Config, dir, taskID string, s *run.Spec) (*run.Hooks, error) {
	if len(cfg.Hooks) == 0 {
		return nil, nil
	}
	hooks := make([]hook.Hook, len(cfg.Hooks))
	for i, h := range cfg.Hooks {
		hooks[i] = hook.Hook{Event: hook.Event(h.Event), Matcher: h.Matcher, Command: h.Command, Timeout: time.Duration(h.TimeoutSeconds) * time.Second, Source: h.Source}
	}
	runner, err := hook.New(hooks, hook.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	return &run.Hooks{Runner: runner, Dir: dir, TaskID: taskID, SessionID: s.Session.ID(), Standing: s.Standing}, nil
}
