package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"reasonix/internal/permission"
)

// Options say where and with what hooks run.
type Options struct {
	Dir string
	// Env is the whole environment. Nil: PATH, HOME, USER, LANG, LC_ALL and TMPDIR of this process and nothing else, so that
	// no credential of the host reaches a hook.
	Env []string
}

// Runner runs hooks. It is safe for concurrent use.
type Runner struct {
	hooks []Hook
	opts  Options
}

// New checks the hooks; all faults are joined into the error.
func New(hooks []Hook, opts Options) (*Runner, error) {
	var faults []error
	for i := range hooks {
		faults = append(faults, hooks[i].Validate())
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if opts.Env == nil {
		for _, name := range []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "COMSPEC"} {
			if v, ok := os.LookupEnv(name); ok {
				opts.Env = append(opts.Env, name+"="+v)
			}
		}
	}
	return &Runner{hooks: append([]Hook(nil), hooks...), opts: opts}, nil
}

// Any tells whether some hook would run, so that callers can spare building an Input.
func (r *Runner) Any(e Event, tool string) bool {
	return len(r.matching(e, tool)) > 0
}

func (r *Runner) matching(e Event, tool string) []Hook {
	if r == nil {
		return nil
	}
	var out []Hook
	for _, h := range r.hooks {
		if h.Event == e && h.about(tool) {
			out = append(out, h)
		}
	}
	return out
}

// Run runs the hooks for in.Event in the order of their configuration; the first block ends it. A hook that fails, cannot
// be started or exceeds its time limit blocks.
func (r *Runner) Run(ctx context.Context, in Input) Outcome {
	var out Outcome
	list := r.matching(in.Event, in.Tool)
	if len(list) == 0 {
		return out
	}
	stdin, err := json.Marshal(in)
	if err != nil {
		return Outcome{Verdict: permission.HookBlocks, By: list[0], Reason: fmt.Sprintf("encode the input of a hook: %v", err)}
	}
	for _, h := range list {
		said := r.one(ctx, h, stdin)
		said.By = h
		out.Context = bound(out.Context + said.Context)
		if said.Blocked() {
			said.Context = out.Context
			return said
		}
		if said.Verdict == permission.HookAllows {
			out.Verdict, out.Reason, out.By = said.Verdict, said.Reason, h
		}
	}
	return out
}

// reply is what a hook may print as JSON instead of using its exit code.
type reply struct {
	Decision string `json:"decision"` // allow, block
	Reason   string `json:"reason"`
	Context  string `json:"context"` // for the model
}

func (r *Runner) one(ctx context.Context, h Hook, stdin []byte) Outcome {
	limit := h.Timeout
	if limit == 0 {
		limit = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := shell(ctx, h.Command)
	cmd.Dir, cmd.Env = r.opts.Dir, r.opts.Env
	cmd.Stdin = bytes.NewReader(stdin)
	var stdout, stderr capture
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	code := -1
	if cmd.ProcessState != nil {
		code = cmd.ProcessState.ExitCode()
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && code != 0 && code != 2:
		return blocks(h, fmt.Sprintf("did not end within %s and was ended", limit), stderr.text())
	case ctx.Err() != nil && code != 0 && code != 2:
		return blocks(h, "was interrupted", stderr.text())
	case code == 2:
		return blocked(h, stderr.text())
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return blocks(h, "failed ("+err.Error()+"), so the call is blocked", stderr.text())
	}
	return accepted(h, stdout.text())
}

// accepted reads what a hook that ended well printed.
func accepted(h Hook, stdout string) Outcome {
	trimmed := strings.TrimSpace(stdout)
	if !strings.HasPrefix(trimmed, "{") {
		return Outcome{Context: stdout}
	}
	var said reply
	if err := json.Unmarshal([]byte(trimmed), &said); err != nil {
		return blocks(h, "printed broken JSON ("+err.Error()+"), so the call is blocked", "")
	}
	out := Outcome{Reason: said.Reason, Context: said.Context}
	switch said.Decision {
	case "":
	case "allow", "approve":
		out.Verdict = permission.HookAllows
	case "block", "deny":
		return blocked(h, said.Reason)
	default:
		return blocks(h, fmt.Sprintf("printed the unknown decision %q, so the call is blocked", said.Decision), "")
	}
	return out
}

func blocked(h Hook, reason string) Outcome {
	reason = strings.TrimSpace(reason)
	if reason == "" {
		reason = "blocked by " + name(h) + " without a reason"
	}
	return Outcome{Verdict: permission.HookBlocks, Reason: reason}
}

func blocks(h Hook, how, stderr string) Outcome {
	reason := name(h) + " " + how
	if s := strings.TrimSpace(stderr); s != "" {
		reason += ": " + s
	}
	return Outcome{Verdict: permission.HookBlocks, Reason: reason}
}

func name(h Hook) string {
	if h.Source == "" {
		return fmt.Sprintf("%s hook %q", h.Event, h.Command)
	}
	return fmt.Sprintf("%s hook %q (%s)", h.Event, h.Command, h.Source)
}

// capture keeps the first maxOutput bytes and drops the rest, so that a hook is never stopped by a full pipe.
type capture struct{ buf bytes.Buffer }

func (c *capture) Write(p []byte) (int, error) {
	if room := maxOutput - c.buf.Len(); room > 0 {
		c.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (c *capture) text() string { return strings.ToValidUTF8(c.buf.String(), "�") }

func bound(s string) string {
	if len(s) <= maxOutput {
		return s
	}
	return strings.ToValidUTF8(s[:maxOutput], "")
}
