package flow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reasonix/internal/agent"
	"reasonix/internal/approval"
	"reasonix/internal/budget"
	"reasonix/internal/chat"
	"reasonix/internal/flow"
	"reasonix/internal/permission"
	"reasonix/internal/provider"
	"reasonix/internal/redact"
	"reasonix/internal/run"
	"reasonix/internal/store/sqlite"
	"reasonix/internal/task"
	"reasonix/internal/tool"
	"reasonix/internal/workspace"
)

// door is a platform in memory: it keeps what was posted and can be told to fail.
type door struct {
	chat.Door
	mu       sync.Mutex
	caps     chat.Capabilities
	posts    []chat.Post
	edits    []chat.Post
	failures []error          // the next Sends fail with these
	hidden   bool             // a failing Send makes the post all the same
	fragile  chat.MessageKind // only posts of this kind fail; empty: all
	news     chan struct{}
}

func newDoor() *door {
	return &door{caps: chat.Capabilities{Buttons: true, Edit: true, Lookup: true, Private: true}, news: make(chan struct{}, 1000)}
}

func (d *door) Capabilities() chat.Capabilities            { return d.caps }
func (d *door) Handler(chat.Host) http.Handler             { return nil }
func (d *door) Check(context.Context) []chat.HealthItem    { return nil }
func (d *door) Run(ctx context.Context, _ chat.Host) error { <-ctx.Done(); return nil }
func (d *door) Lookup(_ context.Context, p chat.Post) (chat.Ref, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, x := range d.posts {
		if x.Key == p.Key {
			return chat.Ref{ID: fmt.Sprint(i)}, true, nil
		}
	}
	return chat.Ref{}, false, nil
}

func (d *door) Send(_ context.Context, p chat.Post) (chat.Ref, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() { d.news <- struct{}{} }()
	if len(d.failures) > 0 && (d.fragile == "" || d.fragile == p.Message.Kind) {
		err := d.failures[0]
		d.failures = d.failures[1:]
		if d.hidden {
			d.posts = append(d.posts, p)
		}
		return chat.Ref{}, err
	}
	if p.Edits != nil {
		d.edits = append(d.edits, p)
		return *p.Edits, nil
	}
	d.posts = append(d.posts, p)
	return chat.Ref{ID: fmt.Sprint(len(d.posts) - 1)}, nil
}

// find waits until a post of that kind is there and returns the newest.
func (d *door) find(t *testing.T, kind chat.MessageKind, contains string) chat.Message {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		d.mu.Lock()
		for i := len(d.posts) - 1; i >= 0; i-- {
			if m := d.posts[i].Message; m.Kind == kind && strings.Contains(m.Title+"\n"+m.Text, contains) {
				d.mu.Unlock()
				return m
			}
		}
		d.mu.Unlock()
		select {
		case <-d.news:
		case <-limit:
			t.Fatalf("no %s post containing %q; posted: %s", kind, contains, d.all())
		}
	}
}

func (d *door) count(kind chat.MessageKind) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, p := range d.posts {
		if p.Message.Kind == kind {
			n++
		}
	}
	return n
}

func (d *door) all() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b strings.Builder
	for _, p := range d.posts {
		fmt.Fprintf(&b, "\n  %s %s: %s — %s", p.Key, p.Message.Kind, p.Message.Title, p.Message.Text)
	}
	return b.String()
}

// model answers from what the conversation holds.
type model struct {
	turn  func(ctx context.Context, msgs []provider.Message) (string, []provider.ToolCall, error)
	calls atomic.Int64
}

func (m *model) Name() string { return "double" }

func (m *model) Stream(ctx context.Context, req provider.Request) (<-chan provider.Chunk, error) {
	m.calls.Add(1)
	text, calls, err := m.turn(ctx, req.Messages)
	if err != nil {
		return nil, err
	}
	ch := make(chan provider.Chunk, len(calls)+2)
	if text != "" {
		ch <- provider.Chunk{Type: provider.ChunkText, Text: text}
	}
	for i := range calls {
		ch <- provider.Chunk{Type: provider.ChunkToolCall, ToolCall: &calls[i]}
	}
	ch <- provider.Chunk{Type: provider.ChunkDone, Usage: provider.Usage{Input: 100, Output: 10}, FinishReason: "stop"}
	close(ch)
	return ch, nil
}

// deployer asks for one call of deploy and then reports what came back.
func deployer() *model {
	return &model{turn: func(_ context.Context, msgs []provider.Message) (string, []provider.ToolCall, error) {
		last := msgs[len(msgs)-1]
		if last.Role == provider.RoleTool {
			return "Done: " + last.Content, nil, nil
		}
		return "I deploy.", []provider.ToolCall{{ID: fmt.Sprintf("call-%d", len(msgs)), Name: "deploy", Arguments: `{"to":"prod"}`}}, nil
	}}
}

// deploy is the tool with an effect that must happen once.
type deploy struct {
	effects atomic.Int64
	started chan struct{} // signalled when a call starts
	hold    chan struct{} // a call waits for it, when set
}

func (*deploy) Name() string        { return "deploy" }
func (*deploy) Description() string { return "deploys" }
func (*deploy) ReadOnly() bool      { return false }
func (*deploy) Schema() json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"}},"required":["to"],"additionalProperties":false}`)
}

func (d *deploy) Execute(ctx context.Context, _ json.RawMessage) (string, error) {
	d.effects.Add(1)
	select {
	case d.started <- struct{}{}:
	default:
	}
	if d.hold != nil {
		select {
		case <-d.hold:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return "deployed", nil
}

// gate asks a person for deploy in the posture ask and allows everything else.
type gate struct {
	standing *run.Standing
	surface  permission.Surface
	grants   []flow.Grant
}

func (g gate) Judge(_ context.Context, c permission.Call) permission.Decision {
	switch {
	case c.Tool != "deploy" || g.standing.Posture() != "ask" || len(g.grants) > 0 || g.standing.Window():
		return permission.Decision{Verdict: permission.Allow, Reason: "allowed"}
	case g.surface == permission.Headless:
		return permission.Decision{Verdict: permission.Refuse, Reason: "nobody can be asked"}
	}
	return permission.Decision{Verdict: permission.Ask, Reason: "the fallback asks"}
}
func (gate) Digest() string                  { return "rules" }
func (gate) Offers(permission.Call) []string { return []string{"deploy"} }

// shop is a workshop without a disk.
type shop struct {
	model  *model
	deploy *deploy
	extra  tool.Tool // may be nil
	tree   atomic.Pointer[string]
	broken atomic.Pointer[error]
	slow   atomic.Pointer[chan struct{}] // the next harvest closes it and lasts until it is ended
}

func (s *shop) Prepare(_ context.Context, t task.Task, grants []flow.Grant) (flow.Bench, error) {
	if err := s.broken.Load(); err != nil {
		return nil, *err
	}
	return &bench{shop: s, t: t, grants: grants}, nil
}

func (s *shop) Price(string) budget.Price {
	return budget.Price{Input: 1_000_000, Output: 2_000_000, Currency: "USD"}
}

type bench struct {
	shop   *shop
	t      task.Task
	grants []flow.Grant
}

func (b *bench) Equip(_ context.Context, s *run.Spec) error {
	reg, err := tool.NewRegistry(b.shop.deploy)
	if err != nil {
		return err
	}
	if b.shop.extra != nil {
		if err := reg.Add(b.shop.extra); err != nil {
			return err
		}
	}
	s.Provider, s.Tools, s.System = b.shop.model, reg, "You are a double."
	s.Gate = gate{standing: s.Standing, surface: flow.SurfaceOf(b.t), grants: b.grants}
	s.Tree = b
	return nil
}

func (b *bench) State(context.Context) (agent.TreeState, error) {
	return agent.TreeState{Hash: *b.shop.tree.Load(), Base: "base", Head: "head"}, nil
}

func (b *bench) Difference(context.Context, string) (string, error)    { return "-old\n+new", nil }
func (b *bench) Snapshot(context.Context) error                        { return nil }
func (b *bench) Push(context.Context, workspace.Harvest, string) error { return nil }
func (b *bench) Close() []string                                       { return nil }
func (b *bench) Harvest(ctx context.Context, _ string) (workspace.Harvest, error) {
	if slow := b.shop.slow.Swap(nil); slow != nil { // the first harvest of a large repository
		close(*slow)
		<-ctx.Done()
		return workspace.Harvest{}, ctx.Err()
	}
	return workspace.Harvest{Base: "base", Head: "head2", Diff: "+fixed", Files: []string{"a.go"}}, nil
}

// house is a whole host over a real store, with doubles for what lies outside.
type house struct {
	t      *testing.T
	path   string
	door   *door
	shop   *shop
	host   *flow.Host
	route  task.Route
	people task.People
	day    budget.Limits
	lease  time.Duration
	stop   func()
	keys   atomic.Int64
}

func newHouse(t *testing.T, change ...func(*house)) *house {
	t.Helper()
	h := &house{t: t, path: filepath.Join(t.TempDir(), "state.db"), door: newDoor(), lease: 3 * time.Second}
	tree := "tree-1"
	h.shop = &shop{model: deployer(), deploy: &deploy{started: make(chan struct{}, 10)}}
	h.shop.tree.Store(&tree)
	h.route = task.Route{Name: "fix", On: "slack.command", Match: task.Match{Command: "/fix"}, Mode: task.ModeRun, Posture: "ask", Model: "double", Asks: task.Asks{Approvers: []string{"lead", "mate"}, Then: "deny"}}
	h.people = crew
	for _, c := range change {
		c(h)
	}
	h.start()
	t.Cleanup(func() { h.stop() })
	return h
}

var crew = task.People{
	{Name: "lead", Role: task.RoleApprover, Identities: map[string]string{"slack": "LEAD"}},
	{Name: "mate", Role: task.RoleApprover, Identities: map[string]string{"slack": "MATE"}},
	{Name: "boss", Role: task.RoleAdmin, Identities: map[string]string{"slack": "BOSS"}},
	{Name: "dev", Role: task.RoleUser, Identities: map[string]string{"slack": "DEV"}},
}

// start opens the state and runs a host on it, as after a (re)start of the process.
func (h *house) start() {
	h.t.Helper()
	ledger, err := sqlite.Open(h.t.Context(), h.path, sqlite.Options{Log: slog.New(slog.DiscardHandler), Host: "host"})
	if err != nil {
		h.t.Fatal(err)
	}
	h.host = flow.New(flow.Options{
		ID: "host", Ledger: ledger, Workshop: h.shop, Doors: map[string]chat.Door{"chat": h.door}, Routes: []task.Route{h.route}, People: h.people, DayLimits: h.day,
		Redactor: redact.New(map[string]string{"TOKEN": "hunter2-secret"}), Log: slog.New(slog.DiscardHandler), LeaseTTL: h.lease, Sweep: 100 * time.Millisecond,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.host.Run(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Errorf("host: %v", err)
		}
		if err := ledger.Close(); err != nil {
			h.t.Errorf("close: %v", err)
		}
	})
}

func (h *house) restart() {
	h.stop()
	h.start()
}

func (h *house) place() chat.Place {
	return chat.Place{Connection: "chat", Kind: "slack", Channel: "C1", Thread: "1.0"}
}

// say sends an event as that person and returns what the person is told.
func (h *house) say(who string, change func(*chat.Event)) chat.Outcome {
	h.t.Helper()
	e := chat.Event{Key: fmt.Sprint("event-", h.keys.Add(1)), On: "slack.message", Actor: chat.Actor{Kind: "slack", ID: who}, Place: h.place(), Received: time.Now()}
	change(&e)
	out, err := h.host.Accept(h.t.Context(), e)
	if err != nil {
		h.t.Fatalf("%s: %v", who, err)
	}
	return out
}

func (h *house) ask(who, text string) chat.Outcome {
	h.t.Helper()
	return h.say(who, func(e *chat.Event) { e.On, e.Command, e.Text = "slack.command", "/fix", text })
}

func (h *house) press(who, askID, choice string) chat.Outcome {
	h.t.Helper()
	return h.pressWith(who, askID, choice, "")
}

func (h *house) pressWith(who, askID, choice, text string) chat.Outcome {
	h.t.Helper()
	return h.say(who, func(e *chat.Event) {
		e.Verb, e.Press = chat.VerbPress, &chat.Press{AskID: askID, Choice: choice, Text: text}
	})
}

// state waits until the task reaches the state.
func (h *house) state(id string, want task.State) task.Task {
	h.t.Helper()
	limit := time.After(20 * time.Second)
	for {
		changed := h.host.Ledger.Changed(id)
		got, err := h.host.Ledger.Task(h.t.Context(), id)
		if err != nil {
			h.t.Fatal(err)
		}
		if got.State == want {
			return got
		}
		select {
		case <-changed:
		case <-limit:
			h.t.Fatalf("task is %s (%s) %s%s, want %s; posted: %s", got.State, got.Reason, got.Result, got.Failure, want, h.door.all())
		}
	}
}

func (h *house) openAsk(id string) approval.Ask {
	h.t.Helper()
	h.state(id, task.Parked)
	asks, err := h.host.Ledger.Asks(h.t.Context(), id, true)
	if err != nil || len(asks) != 1 {
		h.t.Fatalf("open asks: %v, %v", asks, err)
	}
	return asks[0]
}
