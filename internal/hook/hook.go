// Package hook runs the user's own commands around calls: before and after a tool, around a question, a prompt and the end. It fails closed.
package hook

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"reasonix/internal/permission"
)

// Event is the moment at which a hook runs.
type Event string

// The events.
const (
	PreToolUse        Event = "PreToolUse"        // before a call; may block it
	PostToolUse       Event = "PostToolUse"       // after a call; a block is told to the model
	PermissionRequest Event = "PermissionRequest" // before people are asked
	UserPromptSubmit  Event = "UserPromptSubmit"  // before a prompt reaches the model; may block it
	Stop              Event = "Stop"              // before a turn ends; a block is told to the model
)

// Limits of one hook.
const (
	DefaultTimeout = 60 * time.Second
	MaxTimeout     = 10 * time.Minute
	maxOutput      = 32 << 10 // bytes kept of stdout and of stderr each
)

// Hook is one configured command.
type Hook struct {
	Event   Event
	Matcher string        // tools: names, families (Bash, Edit, Read) or mcp__server, separated by |; empty or *: all
	Command string        // a line for sh (cmd on Windows)
	Timeout time.Duration // 0: DefaultTimeout; at most MaxTimeout
	Source  string        // file:line, for messages
}

// Validate says what is wrong with a hook; a hook that would never run is an error, because a guard that sleeps is worse than none.
func (h Hook) Validate() error {
	switch h.Event {
	case PreToolUse, PostToolUse, PermissionRequest:
	case UserPromptSubmit, Stop:
		if h.Matcher != "" && h.Matcher != "*" {
			return fmt.Errorf("%s: hook for %s takes no matcher, it is about no tool", h.Source, h.Event)
		}
	default:
		return fmt.Errorf("%s: unknown hook event %q: write %s, %s, %s, %s or %s", h.Source, h.Event, PreToolUse, PostToolUse, PermissionRequest, UserPromptSubmit, Stop)
	}
	if strings.TrimSpace(h.Command) == "" {
		return fmt.Errorf("%s: hook for %s has no command", h.Source, h.Event)
	}
	if h.Timeout < 0 || h.Timeout > MaxTimeout {
		return fmt.Errorf("%s: hook timeout %s is not between 0 and %s", h.Source, h.Timeout, MaxTimeout)
	}
	for _, m := range h.matchers() {
		if strings.ContainsAny(m, "()") {
			return fmt.Errorf("%s: hook matcher %q: only names of tools, no specifier", h.Source, m)
		}
		if _, err := permission.ParseRule(strings.ReplaceAll(m, "*", "x"), ""); err != nil {
			return fmt.Errorf("%s: hook matcher %q: %w", h.Source, m, err)
		}
	}
	return nil
}

func (h Hook) matchers() []string {
	if h.Matcher == "" || h.Matcher == "*" {
		return nil
	}
	return strings.Split(h.Matcher, "|")
}

// about tells whether the hook runs for a tool.
func (h Hook) about(tool string) bool {
	list := h.matchers()
	if len(list) == 0 {
		return true
	}
	for _, m := range list {
		if permission.ToolMatches(m, tool) {
			return true
		}
	}
	return false
}

// Input is what a hook gets on stdin, as one JSON object.
type Input struct {
	Event     Event           `json:"hook_event_name"`
	SessionID string          `json:"session_id,omitempty"`
	TaskID    string          `json:"task_id,omitempty"`
	Dir       string          `json:"cwd,omitempty"`
	Tool      string          `json:"tool_name,omitempty"`
	Args      json.RawMessage `json:"tool_input,omitempty"`
	Result    string          `json:"tool_response,omitempty"` // PostToolUse
	IsError   bool            `json:"tool_error,omitempty"`    // PostToolUse
	Prompt    string          `json:"prompt,omitempty"`        // UserPromptSubmit
	Reason    string          `json:"reason,omitempty"`        // PermissionRequest: why people are asked; Stop: why it ends
	Posture   string          `json:"posture,omitempty"`
}

// Outcome is what all hooks of a moment said together.
type Outcome struct {
	Verdict permission.HookVerdict // blocks when any blocked or failed; allows when one allowed and none blocked
	Reason  string                 // for blocks: what the hook said, or how it failed
	By      Hook                   // the hook that decided
	Context string                 // what hooks printed for the model, bounded
}

// Blocked is a shorthand for a block.
func (o Outcome) Blocked() bool { return o.Verdict == permission.HookBlocks }

// Answers tells whether an allowing PermissionRequest hook may stand in for the person that a decision asks for. It may
// only where the ordinary fallback asks: never for human_required lines, plans, writes outside the roots, or ask rules.
func Answers(d permission.Decision, o Outcome) bool {
	return o.Verdict == permission.HookAllows && d.Verdict == permission.Ask && d.Kind == permission.KindApproval && d.Rule == ""
}
