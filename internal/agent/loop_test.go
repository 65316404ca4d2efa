package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"reasonix/internal/permission"
	"reasonix/internal/provider"
	"reasonix/internal/session"
	"reasonix/internal/tool"
)

func TestAdjacentReadsOverlapAndTheirResultsKeepTheOrderOfTheCalls(t *testing.T) {
	var calls []provider.ToolCall
	for i := range 12 {
		calls = append(calls, call(fmt.Sprintf("c%d", i), "wait", fmt.Sprint(i)))
	}
	h := newHouse(t, turn{calls: calls}, turn{text: "ok"})
	var running, most atomic.Int32
	full := make(chan struct{})
	open := sync.OnceFunc(func() { close(full) })
	h.config = func(c *Config) {
		must(t, c.Tools.Add(act{"wait", true, func(_ context.Context, v string) (string, error) {
			n := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			if n == maxReads {
				open()
			}
			<-full // the first eight wait for each other
			return v, nil
		}}))
	}
	h.mustRun(StopDone)
	if most.Load() != maxReads {
		t.Errorf("%d ran at once", most.Load())
	}
	if got := strings.Join(h.results(), " "); got != "0 1 2 3 4 5 6 7 8 9 10 11" {
		t.Errorf("results %s", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAWriterBetweenReadsKeepsTheOrder(t *testing.T) {
	h := newHouse(t, turn{calls: []provider.ToolCall{call("a", "see", ""), call("b", "write", "w"), call("c", "see", ""), call("d", "see", "")}}, turn{text: "ok"})
	h.config = func(c *Config) {
		must(t, c.Tools.Add(act{"see", true, func(context.Context, string) (string, error) { return fmt.Sprint(len(h.ran)), nil }}))
	}
	h.mustRun(StopDone)
	if got := strings.Join(h.results(), " "); got != "0 wrote w 1 1" {
		t.Fatalf("results %s", got)
	}
}

func TestALaterCallIsJudgedAgainAfterAnEffect(t *testing.T) {
	h := newHouse(t, turn{calls: []provider.ToolCall{call("a", "write", "link"), call("b", "write", "through the link")}}, turn{text: "ok"})
	h.config = func(c *Config) {
		c.Resolve = func(p string) string {
			if len(h.ran) > 0 {
				h.gate.rule("through the link", permission.Deny) // the link now leads elsewhere
			}
			return "/w/" + p
		}
	}
	h.mustRun(StopDone)
	if strings.Join(h.ran, " ") != "link" || h.gate.seen[0].Paths[0] != (permission.Path{Raw: "link", Resolved: "/w/link"}) || h.gate.seen[0].Root != "/w" {
		t.Fatalf("ran %v, judged %+v", h.ran, h.gate.seen[0])
	}
}

func TestSteeringIsToldOnceAtTheTurnBoundary(t *testing.T) {
	h := newHouse(t, turn{calls: []provider.ToolCall{call("a", "write", "x")}}, turn{text: "done"}, turn{text: "done with it"})
	waiting := []Steer{}
	h.config = func(c *Config) {
		c.Inbox = func(context.Context) ([]Steer, error) { // not consumed: the same item comes at every boundary
			if len(h.model.asked) == 2 && len(waiting) == 1 {
				waiting = append(waiting, Steer{Key: "s2", Text: "and mind the tests"}) // arrives during the last turn
			}
			if len(h.model.asked) == 1 && len(waiting) == 0 {
				waiting = append(waiting, Steer{Key: "s1", Text: "use tabs"})
			}
			return waiting, nil
		}
	}
	if out := h.mustRun(StopDone); out.Text != "done with it" {
		t.Fatalf("outcome %+v", out)
	}
	var told []string
	for _, m := range h.model.asked[2].Messages {
		if m.Role == provider.RoleUser {
			told = append(told, m.Content)
		}
	}
	if strings.Join(told, ", ") != "do it, use tabs, and mind the tests" {
		t.Fatalf("told %q", told)
	}
}

// meter refuses the third call.
type meter struct{ reserved, settled int }

func (m *meter) Reserve(context.Context) error {
	m.reserved++
	if m.reserved > 2 {
		return errors.New("2,000 tokens (tokens)")
	}
	return nil
}
func (m *meter) Settle(_ context.Context, u provider.Usage) { m.settled += int(u.Total()) }

func TestLimitsStopAtTheTurnBoundaryAndTheSessionCanGoOn(t *testing.T) {
	busy := func() *house {
		return newHouse(t, turn{calls: []provider.ToolCall{call("a", "write", "1")}}, turn{calls: []provider.ToolCall{call("b", "write", "2")}}, turn{text: "end"})
	}
	h := busy()
	h.config = func(c *Config) { c.MaxSteps = 1 }
	if out := h.mustRun(StopSteps); out.Steps != 1 || out.Limit != "1 steps (max_steps)" || len(h.ran) != 1 {
		t.Fatalf("%+v, ran %v", out, h.ran)
	}
	h.config = nil
	if out := h.mustRun(StopDone); out.Text != "end" || len(h.ran) != 2 {
		t.Fatalf("%+v", out)
	}
	h = busy()
	m := &meter{}
	h.config = func(c *Config) { c.Meter = m }
	if out := h.mustRun(StopBudget); out.Limit != "2,000 tokens (tokens)" || m.settled != 22 || out.Usage.Total() != 22 {
		t.Fatalf("%+v, settled %d", out, m.settled)
	}
	h = busy()
	h.config = func(c *Config) { c.Draining = func() bool { return len(h.ran) == 1 } }
	if out := h.mustRun(StopDrained); out.Steps != 1 {
		t.Fatalf("%+v", out)
	}
}

func TestAStoppedCallWithEffectsIsNotRepeated(t *testing.T) {
	h := newHouse(t, turn{calls: []provider.ToolCall{call("a", "slow", "x"), call("b", "write", "y")}}, turn{text: "end"})
	ctx, cancel := context.WithCancel(t.Context())
	runs := 0
	slow := act{"slow", false, func(ctx context.Context, _ string) (string, error) {
		runs++
		cancel()
		<-ctx.Done()
		return "half", ctx.Err()
	}}
	tools := h.tools()
	must(t, tools.Add(slow))
	l, err := Open(ctx, Config{Session: h.log, Provider: h.model, Tools: tools, Gate: h.gate})
	must(t, err)
	must(t, l.Say(ctx, "prompt", "go"))
	out, err := l.Run(ctx, nil)
	if err != nil || out.Stop != StopInterrupted {
		t.Fatalf("%+v, %v", out, err)
	}
	if r := h.results(); len(r) != 1 || !strings.Contains(r[0], "outcome unknown: check before repeating") || !strings.Contains(r[0], "half") || !h.facts()[0].Unknown {
		t.Fatalf("results %q", r)
	}
	h.config = func(c *Config) { must(t, c.Tools.Add(slow)) }
	h.mustRun(StopDone)
	if runs != 1 || strings.Join(h.ran, " ") != "y" {
		t.Fatalf("slow ran %d times, then %v", runs, h.ran)
	}
}

func TestResultsAreBoundedAndSecretsNeverReachTheTranscript(t *testing.T) {
	h := newHouse(t, turn{text: "my key is s3cret ok", calls: []provider.ToolCall{call("a", "big", "s3cret")}}, turn{text: "end"})
	big := strings.Repeat("x", 20<<10) + "s3cret" + strings.Repeat("y", 20<<10)
	got := ""
	h.config = func(c *Config) {
		c.Redact = func(s string) string { return strings.ReplaceAll(s, "s3cret", "***") }
		must(t, c.Tools.Add(act{"big", true, func(_ context.Context, v string) (string, error) { got = v; return big, errors.New("s3cret") }}))
	}
	h.mustRun(StopDone)
	r := h.results()[0]
	if len(r) > maxResult || !strings.HasPrefix(r, "error: ***\nxxx") || !strings.HasSuffix(r, "yyy") || got != "***" {
		t.Fatalf("%d bytes, argument %q", len(r), got)
	}
	for _, e := range h.entries() {
		if e.Message != nil && strings.Contains(e.Message.Content+fmt.Sprint(e.Message.ToolCalls), "s3cret") {
			t.Errorf("entry %d holds the secret", e.Seq)
		}
	}
	for _, o := range h.shown {
		if strings.Contains(o.Text, "s3cret") {
			t.Errorf("shown: %q", o.Text)
		}
	}
}

// halves masks nothing: it shows that streamed text passes through the filter, with its rest at the end.
type halves struct{ held string }

func (f *halves) Push(s string) string { out := f.held; f.held = s; return out }
func (f *halves) Flush() string        { return f.held }

func TestStreamedTextPassesThroughTheFilter(t *testing.T) {
	h := newHouse(t, turn{text: "one two three"})
	h.config = func(c *Config) { c.LiveRedact = func() TextFilter { return &halves{} } }
	h.mustRun(StopDone)
	var text []string
	for _, o := range h.shown {
		if o.Kind == "text" {
			text = append(text, o.Text)
		}
	}
	if strings.Join(text, "|") != "one |two |three" {
		t.Fatalf("shown %q", text)
	}
}

func TestNotesOfToolsStandBesideTheResults(t *testing.T) {
	h := newHouse(t, turn{calls: []provider.ToolCall{call("a", "todo", "x")}}, turn{text: "end"})
	book := &Notebook{}
	h.config = func(c *Config) {
		c.Notebook = book
		must(t, c.Tools.Add(act{"todo", true, func(ctx context.Context, _ string) (string, error) {
			book.Note("todos", []byte(`{"n":1}`))
			tool.ReportFrom(ctx).ExitCode = 3
			return "", nil
		}}))
	}
	h.mustRun(StopDone)
	var kinds []string
	for _, e := range h.entries() {
		kinds = append(kinds, string(e.Kind)+e.Name)
	}
	if got := strings.Join(kinds, " "); !strings.Contains(got, "notetodos result") {
		t.Fatalf("entries %s", got)
	}
	if f := h.facts()[0]; f.OK || f.ExitCode != 3 {
		t.Fatalf("fact %+v", f)
	}
}

func TestAbandonedCallsGetResults(t *testing.T) {
	h := newHouse(t, turn{calls: []provider.ToolCall{call("a", "write", "x"), call("b", "write", "y")}})
	h.gate.rule("x", permission.Ask)
	h.mustRun(StopPending)
	must(t, h.log.Append(t.Context(), session.Entry{Kind: session.KindIntent, CallID: "b"}))
	l, err := Open(t.Context(), Config{Session: h.log, Provider: h.model, Tools: h.tools(), Gate: h.gate})
	must(t, err)
	must(t, l.Abandon(t.Context(), "the task was cancelled"))
	r := h.results()
	if len(l.Open()) != 0 || !strings.HasPrefix(r[0], "not run: the task was cancelled") || !strings.HasPrefix(r[1], "outcome unknown") {
		t.Fatalf("results %q", r)
	}
}

func TestTheDigestCoversEverythingThatAnApprovalIsBoundTo(t *testing.T) {
	base := Action{Tool: "bash", Args: []byte(`{"b":1.0,"a":"<x>"}`), WorkDir: "/w", Tree: "t", Base: "b", Head: "h", Gate: "g", Box: "x"}
	first, err := Digest(base)
	must(t, err)
	reordered := base
	reordered.Args = []byte(`{ "a": "<x>", "b": 1.0 }`)
	if same, _ := Digest(reordered); same != first {
		t.Error("the order of keys must not matter")
	}
	seen := map[string]string{first: "base"}
	for name, change := range map[string]func(*Action){
		"tool": func(a *Action) { a.Tool = "ls" }, "args": func(a *Action) { a.Args = []byte(`{"b":1,"a":"<x>"}`) },
		"workdir": func(a *Action) { a.WorkDir = "/v" }, "tree": func(a *Action) { a.Tree = "u" }, "base": func(a *Action) { a.Base = "" },
		"head": func(a *Action) { a.Head = "" }, "gate": func(a *Action) { a.Gate = "" }, "box": func(a *Action) { a.Box = "" },
	} {
		a := base
		change(&a)
		d, err := Digest(a)
		must(t, err)
		if other, dup := seen[d]; dup {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[d] = name
	}
	// The canonical form is a promise to other programs.
	sum := sha256.Sum256([]byte(`{"args":{"a":"<x>","b":1.0},"base":"b","box":"x","gate":"g","head":"h","tool":"bash","tree":"t","workdir":"/w"}`))
	if want := hex.EncodeToString(sum[:]); first != want {
		t.Fatalf("digest %s, want %s", first, want)
	}
	if _, err := Digest(Action{Tool: "x", Args: []byte("{")}); err == nil {
		t.Error("broken arguments have no digest")
	}
}

func TestTheActionIsShownWhole(t *testing.T) {
	plain := act{name: "write"}
	cases := map[string]string{
		`{"command":"rm -rf x\necho y"}`:                  "rm -rf x\necho y",
		`{"command":"ls","timeout":5}`:                    "ls\n\ntimeout: 5",
		`{"path":"a","content":"x\npath: b","n":[1,"<"]}`: "content:\n    x\n    path: b\nn: [\n      1,\n      \"<\"\n    ]\npath: a",
	}
	for args, want := range cases {
		if _, got := describe(plain, []byte(args)); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", args, got, want)
		}
	}
}
