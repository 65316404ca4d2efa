//go:build !windows

package hook

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"reasonix/internal/permission"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func runner(t *testing.T, hooks ...Hook) *Runner {
	t.Helper()
	r, err := New(hooks, Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func before(command string) Hook {
	return Hook{Event: PreToolUse, Command: command, Source: "reasonix.toml:7"}
}

var bashInput = Input{Event: PreToolUse, Tool: "bash", Args: json.RawMessage(`{"command":"make"}`)}

func TestWhatAHookSays(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, c := range []struct {
		name, command string
		verdict       permission.HookVerdict
		reason        string // part of it
		context       string
	}{
		{"nothing to say", "exit 0", permission.HookNone, "", ""},
		{"text is context for the model", "echo hello", permission.HookNone, "", "hello\n"},
		{"exit 2 blocks with stderr", "echo 'not on fridays' >&2; exit 2", permission.HookBlocks, "not on fridays", ""},
		{"exit 2 without a word", "exit 2", permission.HookBlocks, "without a reason", ""},
		{"exit 1 fails closed and says so", "echo oops >&2; exit 1", permission.HookBlocks, "failed (exit status 1), so the call is blocked: oops", ""},
		{"a missing program fails closed", "no-such-program-here", permission.HookBlocks, "exit status 127", ""},
		{"a signal fails closed", "kill -9 $$", permission.HookBlocks, "signal: killed", ""},
		{"allow as JSON", `echo '{"decision":"allow","reason":"fine"}'`, permission.HookAllows, "fine", ""},
		{"block as JSON", `echo '{"decision":"block","reason":"no"}'`, permission.HookBlocks, "no", ""},
		{"context as JSON", `echo '{"context":"mind the gap"}'`, permission.HookNone, "", "mind the gap"},
		{"broken JSON fails closed", `echo '{"decision":'`, permission.HookBlocks, "broken JSON", ""},
		{"an unknown decision fails closed", `echo '{"decision":"perhaps"}'`, permission.HookBlocks, `unknown decision "perhaps"`, ""},
		{"stdin need not be read", "exec <&-; echo " + long, permission.HookNone, "", long + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := runner(t, before(c.command)).Run(t.Context(), bashInput)
			if got.Verdict != c.verdict || !strings.Contains(got.Reason, c.reason) || got.Context != c.context {
				t.Errorf("got %q, reason %q, context %q", got.Verdict, got.Reason, got.Context)
			}
			if c.reason == "" && got.Reason != "" {
				t.Errorf("unexpected reason %q", got.Reason)
			}
		})
	}
}

func TestAFailureNamesTheHookAndItsPlace(t *testing.T) {
	got := runner(t, before("exit 3")).Run(t.Context(), bashInput)
	if !strings.Contains(got.Reason, "reasonix.toml:7") || got.By.Command != "exit 3" {
		t.Errorf("reason %q by %+v", got.Reason, got.By)
	}
}

func TestAHookReadsTheCallOnStdin(t *testing.T) {
	got := runner(t, before("cat >&2; exit 2")).Run(t.Context(), bashInput)
	var in Input
	if err := json.Unmarshal([]byte(got.Reason), &in); err != nil {
		t.Fatalf("%v: %s", err, got.Reason)
	}
	if in.Event != PreToolUse || in.Tool != "bash" || string(in.Args) != `{"command":"make"}` {
		t.Errorf("stdin was %+v", in)
	}
}

func TestATimeoutBlocksAndKillsTheWholeGroup(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	h := before("sleep 300 & echo $! > '" + pidFile + "'; wait")
	h.Timeout = 300 * time.Millisecond
	started := time.Now()
	got := runner(t, h).Run(t.Context(), bashInput)
	if !got.Blocked() || !strings.Contains(got.Reason, "did not end within 300ms") {
		t.Errorf("got %q: %q", got.Verdict, got.Reason)
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	data, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); alive(pid); {
		if time.Now().After(deadline) {
			t.Fatalf("process %d of the hook is still alive", pid)
		}
	}
}

// alive is false for a process that is gone or only waits for its parent to notice.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestAnInterruptedHookBlocks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := runner(t, before("sleep 300")).Run(ctx, bashInput); !got.Blocked() {
		t.Errorf("got %q", got.Verdict)
	}
}

func TestEndlessOutputIsBounded(t *testing.T) {
	got := runner(t, before("head -c 1000000 /dev/zero | tr '\\0' x")).Run(t.Context(), bashInput)
	if got.Verdict != permission.HookNone || len(got.Context) != maxOutput {
		t.Errorf("%q with %d bytes", got.Verdict, len(got.Context))
	}
}

func TestTheFirstBlockEndsTheRound(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	allow, block := before(`echo '{"decision":"allow"}'`), before("echo no >&2; exit 2")
	got := runner(t, allow, block, before("touch '"+mark+"'")).Run(t.Context(), bashInput)
	if !got.Blocked() || got.Reason != "no" {
		t.Errorf("got %q: %q", got.Verdict, got.Reason)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a hook ran after the block")
	}
	if got := runner(t, allow, before("exit 0")).Run(t.Context(), bashInput); got.Verdict != permission.HookAllows {
		t.Errorf("one allow and no block is %q", got.Verdict)
	}
}

func TestMatchersPickToolsByName(t *testing.T) {
	for _, c := range []struct {
		matcher, tool string
		want          bool
	}{
		{"", "bash", true}, {"*", "anything", true}, {"Bash", "bash", true}, {"bash", "bash", true}, {"Edit", "write_file", true}, {"Edit", "bash", false},
		{"Read", "grep", true}, {"write_file", "edit_file", false}, {"Bash|Edit", "move_file", true}, {"Bash | Edit", "bash", true}, {"mcp__tracker", "mcp__tracker__list", true},
		{"mcp__tracker", "mcp__trackers__list", false}, {"mcp__*__list", "mcp__x__list", true}, {"mcp__*__list", "mcp__x__get", false},
	} {
		h := before("exit 2")
		h.Matcher = c.matcher
		r := runner(t, h)
		if got := r.Any(PreToolUse, c.tool); got != c.want {
			t.Errorf("matcher %q, tool %s: %t", c.matcher, c.tool, got)
		}
		if got := r.Run(t.Context(), Input{Event: PreToolUse, Tool: c.tool}).Blocked(); got != c.want {
			t.Errorf("matcher %q ran for %s: %t", c.matcher, c.tool, got)
		}
		if r.Any(PostToolUse, c.tool) {
			t.Error("a hook of another event runs")
		}
	}
}

func TestHooksThatCouldNeverGuardAreRefused(t *testing.T) {
	for want, h := range map[string]Hook{
		"unknown hook event":   {Event: "PreTool", Command: "x"},
		"no command":           {Event: Stop, Command: " "},
		"takes no matcher":     {Event: Stop, Matcher: "Bash", Command: "x"},
		"not between 0 and":    {Event: Stop, Command: "x", Timeout: time.Hour},
		"no specifier":         {Event: PreToolUse, Matcher: "Bash(rm:*)", Command: "x"},
		"incomplete MCP name":  {Event: PreToolUse, Matcher: "mcp__", Command: "x"},
		"empty rule":           {Event: PreToolUse, Matcher: "Bash|", Command: "x"},
		"config.toml:3: hook ": {Event: PreToolUse, Command: "", Source: "config.toml:3"},
	} {
		if _, err := New([]Hook{h}, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", h, err, want)
		}
	}
}

func TestNoHostCredentialReachesAHook(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-secret")
	if got := runner(t, before("env")).Run(t.Context(), bashInput); strings.Contains(got.Context, "sk-secret") || !strings.Contains(got.Context, "PATH=") {
		t.Errorf("environment of the hook:\n%s", got.Context)
	}
}

func TestAnAllowingHookNeverAnswersForAPerson(t *testing.T) {
	allows := runner(t, Hook{Event: PermissionRequest, Command: `echo '{"decision":"allow"}'`}).Run(t.Context(), Input{Event: PermissionRequest, Tool: "bash"})
	if allows.Verdict != permission.HookAllows {
		t.Fatalf("the hook said %q: %s", allows.Verdict, allows.Reason)
	}
	p := permission.NewPolicy(permission.Config{Ask: []permission.Rule{{Text: "Bash(git push:*)"}}})
	for _, c := range []struct {
		tool, args string
		want       bool
	}{
		{"bash", `{"command":"make"}`, true},
		{"bash", `{"command":"go test $PKG"}`, true},
		{"bash", `{"command":"make $(date)"}`, false},
		{"bash", `{"command":"bash -c make"}`, false},
		{"bash", `{"command":"git push"}`, false},
		{"bash", `{"command":"make","additional_write_dirs":["/out"]}`, false},
		{"exit_plan_mode", `{"plan":"x"}`, false},
		{"write_file", `{"path":"/etc/passwd"}`, false},
		{"write_file", `{"path":"reasonix.toml"}`, false},
	} {
		call := permission.Call{Tool: c.tool, Args: json.RawMessage(c.args), Root: "/work"}
		d := p.Decide(call, permission.Situation{Posture: permission.PostureAsk, Surface: permission.Attended})
		if got := Answers(d, allows); got != c.want {
			t.Errorf("%s %s: a hook answers %s: %t", c.tool, c.args, d.Verdict, got)
		}
		pre := p.Decide(call, permission.Situation{Posture: permission.PostureAsk, Surface: permission.Attended, Hook: allows.Verdict})
		if got := pre.Verdict == permission.Allow; got != c.want {
			t.Errorf("%s %s: with an allowing PreToolUse hook it is %s", c.tool, c.args, pre.Verdict)
		}
	}
}
