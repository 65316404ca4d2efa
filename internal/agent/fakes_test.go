package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"reasonix/internal/permission"
	"reasonix/internal/provider"
	"reasonix/internal/session"
	"reasonix/internal/testkit/modeld"
	"reasonix/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model plays turns in order and refuses invalid histories as a strict vendor does.
type model struct {
	t     testing.TB
	turns []turn
	asked []provider.Request
}

type turn struct {
	text   string
	calls  []provider.ToolCall
	finish string
	err    error
	noEnd  bool
}

func (m *model) Name() string { return "scripted" }

func (m *model) Stream(ctx context.Context, req provider.Request) (<-chan provider.Chunk, error) {
	if err := modeld.CheckHistory(wire(req.Messages)); err != nil {
		m.t.Errorf("request %d has an invalid history: %v", len(m.asked)+1, err)
	}
	m.asked = append(m.asked, req)
	now := turn{text: "nothing left to say"}
	if len(m.turns) > 0 {
		now, m.turns = m.turns[0], m.turns[1:]
	}
	out := make(chan provider.Chunk)
	go func() {
		defer close(out)
		for _, c := range now.chunks() {
			select {
			case out <- c:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

func (n turn) chunks() (out []provider.Chunk) {
	for _, word := range strings.SplitAfter(n.text, " ") {
		if word != "" {
			out = append(out, provider.Chunk{Type: provider.ChunkText, Text: word})
		}
	}
	for _, c := range n.calls {
		out = append(out, provider.Chunk{Type: provider.ChunkToolCall, ToolCall: &c})
	}
	if n.err != nil {
		return append(out, provider.Chunk{Type: provider.ChunkError, Err: n.err})
	}
	if n.noEnd {
		return out
	}
	finish := n.finish
	if finish == "" {
		finish = "stop"
	}
	return append(out, provider.Chunk{Type: provider.ChunkDone, FinishReason: finish, Usage: provider.Usage{Input: 10, Output: 1}})
}

// wire gives messages the form that the double checks.
func wire(in []provider.Message) []modeld.Message {
	var out []modeld.Message
	for _, m := range in {
		w := modeld.Message{Role: string(m.Role), Content: &m.Content, ToolCallID: m.ToolCallID}
		for _, c := range m.ToolCalls {
			w.ToolCalls = append(w.ToolCalls, struct {
				ID       string          `json:"id"`
				Type     string          `json:"type"`
				Function modeld.Function `json:"function"`
			}{c.ID, "function", modeld.Function{Name: c.Name, Arguments: c.Arguments}})
		}
		out = append(out, w)
	}
	return out
}

// call is one tool call whose arguments are {"v": value}.
func call(id, name, value string) provider.ToolCall {
	args, _ := json.Marshal(map[string]string{"v": value})
	return provider.ToolCall{ID: id, Name: name, Arguments: string(args)}
}

// act is a tool that does what the test says.
type act struct {
	name string
	read bool
	do   func(ctx context.Context, v string) (string, error)
}

func (a act) Name() string        { return a.name }
func (a act) Description() string { return a.name }
func (a act) Schema() json.RawMessage {
	return json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"v":{"type":"string"}}}`)
}
func (a act) ReadOnly() bool { return a.read }
func (a act) Paths(args json.RawMessage) []string {
	return []string{value(args)}
}
func (a act) Execute(ctx context.Context, args json.RawMessage) (string, error) {
	return a.do(ctx, value(args))
}

func value(args json.RawMessage) string {
	var v struct{ V string }
	_ = json.Unmarshal(args, &v)
	return v.V
}

// question is a tool that asks a person.
type question struct{ act }

func (question) Question(args json.RawMessage) (tool.Question, error) {
	if value(args) == "" {
		return tool.Question{}, errors.New("nothing is asked")
	}
	return tool.Question{Kind: "question", Title: "A question", Text: value(args), Options: []string{"yes", "no"}}, nil
}

// gate answers by the value of the call.
type gate struct {
	mu     sync.Mutex
	rules  map[string]permission.Verdict
	digest string
	seen   []permission.Call
}

func (g *gate) Judge(_ context.Context, c permission.Call) permission.Decision {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = append(g.seen, c)
	if v, ok := g.rules[value(c.Args)]; ok {
		return permission.Decision{Verdict: v, Reason: "the rule says " + string(v), Rule: "Act(" + value(c.Args) + ")"}
	}
	return permission.Decision{Verdict: permission.Allow, Reason: "no rule"}
}
func (g *gate) Digest() string                      { return g.digest }
func (g *gate) Offers(permission.Call) []string     { return []string{"Act(x)"} }
func (g *gate) rule(v string, d permission.Verdict) { g.mu.Lock(); g.rules[v] = d; g.mu.Unlock() }

// tree is a workspace whose state is what the test and the writer say.
type tree struct {
	state  TreeState
	hashed int
}

func (t *tree) State(context.Context) (TreeState, error) { t.hashed++; return t.state, nil }
func (t *tree) Difference(_ context.Context, from string) (string, error) {
	return fmt.Sprintf("from %s to %s", from, t.state.Hash), nil
}

// crash is a log that dies at the n-th append (from 1), before or after it was written.
type crash struct {
	session.Log
	at    int
	after bool
	n     int
}

var errCrash = errors.New("the host was killed")

func (c *crash) Append(ctx context.Context, e ...session.Entry) error {
	c.n++
	if c.at > 0 && (c.n > c.at || (c.n == c.at && !c.after)) {
		return errCrash
	}
	err := c.Log.Append(ctx, e...)
	if err == nil && c.n == c.at {
		return errCrash
	}
	return err
}

// house is everything that a story needs.
type house struct {
	t      *testing.T
	log    *session.File
	model  *model
	gate   *gate
	tree   *tree
	ran    []string // effects, in order
	shown  []Observation
	config func(*Config)
	queue  []Steer
}

func newHouse(t *testing.T, turns ...turn) *house {
	t.Helper()
	log, err := session.OpenFile(filepath.Join(t.TempDir(), "s.jsonl"), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return &house{t: t, log: log, model: &model{t: t, turns: turns}, gate: &gate{rules: map[string]permission.Verdict{}}, tree: &tree{state: TreeState{Hash: "t0"}}}
}

func (h *house) tools() *tool.Registry {
	r := &tool.Registry{}
	for _, t := range []tool.Tool{
		act{"write", false, func(_ context.Context, v string) (string, error) {
			h.ran = append(h.ran, v)
			h.tree.state.Hash = "t-after-" + v
			return "wrote " + v, nil
		}},
		act{"read", true, func(_ context.Context, v string) (string, error) { return "read " + v, nil }},
		act{"fail", false, func(_ context.Context, v string) (string, error) { return "part", errors.New("it broke") }},
		act{"panic", false, func(context.Context, string) (string, error) { panic("oh no") }},
		question{act{name: "ask", read: true}},
	} {
		if err := r.Add(t); err != nil {
			h.t.Fatal(err)
		}
	}
	return r
}

// attempt is one attempt on a fresh Loop, as after a restart.
func (h *house) attempt(log session.Log, answers ...Answer) (Outcome, error) {
	h.t.Helper()
	cfg := Config{Session: log, Provider: h.model, Tools: h.tools(), Gate: h.gate, Tree: h.tree, WorkDir: "/w", BoxDigest: "box",
		Observe: func(o Observation) { h.shown = append(h.shown, o) }}
	if h.config != nil {
		h.config(&cfg)
	}
	l, err := Open(h.t.Context(), cfg)
	if err != nil {
		return Outcome{}, err
	}
	l.Queue(h.queue...)
	if err := l.Say(h.t.Context(), "prompt", "do it"); err != nil {
		return Outcome{}, err
	}
	return l.Run(h.t.Context(), answers)
}

func (h *house) mustRun(want Stop, answers ...Answer) Outcome {
	h.t.Helper()
	out, err := h.attempt(h.log, answers...)
	if err != nil {
		h.t.Fatal(err)
	}
	if out.Stop != want {
		h.t.Fatalf("stopped with %q (%+v), want %q", out.Stop, out, want)
	}
	return out
}

func (h *house) entries() []session.Entry {
	h.t.Helper()
	e, err := h.log.Entries(context.Background(), 0)
	if err != nil {
		h.t.Fatal(err)
	}
	return e
}

// results are the texts of all results, in transcript order.
func (h *house) results() []string {
	var out []string
	for _, e := range h.entries() {
		if e.Kind == session.KindResult {
			out = append(out, e.Message.Content)
		}
	}
	return out
}

func (h *house) facts() []session.Fact {
	var out []session.Fact
	for _, e := range h.entries() {
		if e.Kind == session.KindResult {
			out = append(out, *e.Fact)
		}
	}
	return out
}

func yes(p Pending) Answer {
	return Answer{CallID: p.CallID, AskID: "ask-1", Choice: "allow", By: "lead", Digest: p.Digest}
}

func no(p Pending, why string) Answer {
	return Answer{CallID: p.CallID, AskID: "ask-1", Choice: "deny", Text: why, By: "lead", Digest: p.Digest}
}
