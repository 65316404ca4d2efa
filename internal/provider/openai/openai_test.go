package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"reasonix/internal/provider"
	"reasonix/internal/testkit/modeld"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeClock lets waits pass at once and remembers them.
type fakeClock struct{ waits []time.Duration }

func (c *fakeClock) Now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
func (c *fakeClock) Sleep(ctx context.Context, d time.Duration) error {
	c.waits = append(c.waits, d)
	return ctx.Err()
}

func double(t *testing.T, brain modeld.Brain) *modeld.Server {
	t.Helper()
	s, err := modeld.Start(brain)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func says(turn modeld.Turn) modeld.Brain { return func(modeld.Request) modeld.Turn { return turn } }

func client(t *testing.T, s *modeld.Server, extra map[string]any) (*Provider, *fakeClock) {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	p, err := New(provider.Config{Name: "double", BaseURL: s.URL, Model: "m1", APIKey: "sk-secret-key-123", Extra: extra, Client: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	clock := &fakeClock{}
	p.(*Provider).clock = clock
	return p.(*Provider), clock
}

func user(text string) provider.Message {
	return provider.Message{Role: provider.RoleUser, Content: text}
}

// heard is a drained stream.
type heard struct {
	Text   string
	Calls  []provider.ToolCall
	Usage  provider.Usage
	Finish string
	Err    error
}

func listen(t *testing.T, p provider.Provider, req provider.Request) heard {
	t.Helper()
	ch, err := p.Stream(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return drain(t, ch)
}

func drain(t *testing.T, ch <-chan provider.Chunk) heard {
	t.Helper()
	var h heard
	ends := 0
	for c := range ch {
		if ends > 0 {
			t.Error("a chunk came after the end")
		}
		switch c.Type {
		case provider.ChunkText:
			h.Text += c.Text
		case provider.ChunkToolCall:
			h.Calls = append(h.Calls, *c.ToolCall)
		case provider.ChunkDone:
			h.Usage, h.Finish = c.Usage, c.FinishReason
			ends++
		case provider.ChunkError:
			h.Err = c.Err
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("the stream ended %d times", ends)
	}
	return h
}

func TestATurnArrivesWithTextCallsAndUsage(t *testing.T) {
	s := double(t, says(modeld.Turn{Text: "Grüße, ich lese zwei Dateien.", Usage: &modeld.Usage{Prompt: 100, Completion: 20, Cached: 80},
		Calls: []modeld.Call{{ID: "a", Name: "read_file", Args: map[string]any{"path": "a/größe.go"}}, {ID: "b", Name: "ls", Raw: "{}"}}}))
	p, _ := client(t, s, map[string]any{"headers": map[string]any{"X-Team": "red"}})
	got := listen(t, p, provider.Request{Messages: []provider.Message{user("hi")}, MaxTokens: 9,
		Tools: []provider.ToolSchema{{Name: "ls", Description: "list", Parameters: []byte(`{"type":"object"}`)}}})
	want := heard{Text: "Grüße, ich lese zwei Dateien.", Finish: "tool_calls", Usage: provider.Usage{Input: 100, Output: 20, CacheRead: 80},
		Calls: []provider.ToolCall{{ID: "a", Name: "read_file", Arguments: `{"path":"a/größe.go"}`}, {ID: "b", Name: "ls", Arguments: "{}"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	r := s.Requests()[0]
	if r.Header.Get("Authorization") != "Bearer sk-secret-key-123" || r.Header.Get("X-Team") != "red" || r.MaxTokens != 9 || !r.Offers("ls") || !r.WantUsage {
		t.Fatalf("request: %+v", r)
	}
}

func TestDeepSeeksCacheCountIsRead(t *testing.T) {
	s := double(t, says(modeld.Turn{Text: "x", Usage: &modeld.Usage{Prompt: 10, Completion: 1, CacheHit: 7}}))
	p, _ := client(t, s, nil)
	if got := listen(t, p, provider.Request{Messages: []provider.Message{user("hi")}}); got.Usage.CacheRead != 7 {
		t.Fatalf("usage: %+v", got.Usage)
	}
}

func TestFailuresAreRetriedOnlyWhileNothingWasEmitted(t *testing.T) {
	cases := []struct {
		name   string
		faults []modeld.Fault
		text   string
		calls  int
		status int
		cut    bool
		waits  string
	}{
		{"two 500s pass", []modeld.Fault{{Status: 500}, {Status: 502}}, "hello world", 3, 0, false, ""},
		{"429 waits as told", []modeld.Fault{{Status: 429, RetryAfter: "7"}}, "hello world", 2, 0, false, "[7s]"},
		{"429 with a date", []modeld.Fault{{Status: 429, RetryAfter: "Fri, 02 Jan 2026 03:04:45 GMT"}}, "hello world", 2, 0, false, "[40s]"},
		{"a wait of hours is the caller's", []modeld.Fault{{Status: 429, RetryAfter: "7200"}}, "", 1, 429, false, "[]"},
		{"an empty purse is not retried", []modeld.Fault{{Status: 429, Body: `{"error":{"message":"quota","code":"insufficient_quota"}}`}}, "", 1, 429, false, "[]"},
		{"400 is not retried", []modeld.Fault{{Status: 400}}, "", 1, 400, false, "[]"},
		{"501 is not retried", []modeld.Fault{{Status: 501}}, "", 1, 501, false, "[]"},
		{"five failures are enough", []modeld.Fault{{Status: 503}, {Status: 503}, {Status: 503}, {Status: 503}, {Status: 503}}, "", 5, 503, false, ""},
		{"cut before any text", []modeld.Fault{{CutAfter: 1}}, "hello world", 2, 0, false, ""},
		{"cut after text", []modeld.Fault{{CutAfter: 2}}, "hello w", 1, 0, true, "[]"},
		{"malformed after text", []modeld.Fault{{Malformed: true}}, "hello world", 1, 0, true, "[]"},
		{"error event after text", []modeld.Fault{{ErrorEvent: "overloaded"}}, "hello world", 1, 0, true, "[]"},
		{"no [DONE]", []modeld.Fault{{NoDone: true}}, "hello world", 1, 0, false, "[]"},
		{"a document instead of a stream", []modeld.Fault{{Plain: true}}, "", 1, 0, false, "[]"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := double(t, says(modeld.Turn{Text: "hello world"}))
			s.Fail(c.faults...)
			p, clock := client(t, s, nil)
			got := listen(t, p, provider.Request{Messages: []provider.Message{user("hi")}})
			if got.Text != c.text || s.Calls() != c.calls {
				t.Errorf("text %q in %d calls, want %q in %d", got.Text, s.Calls(), c.text, c.calls)
			}
			if c.waits != "" && fmt.Sprint(clock.waits) != c.waits {
				t.Errorf("waits %v, want %s", clock.waits, c.waits)
			}
			var e *provider.Error
			wantErr := c.status != 0 || c.cut || c.text == ""
			if errors.As(got.Err, &e) != wantErr {
				t.Fatalf("error: %v", got.Err)
			}
			if wantErr && (e.Status != c.status || e.Cut != c.cut) {
				t.Errorf("error %+v, want status %d, cut %v", e, c.status, c.cut)
			}
		})
	}
}

func TestACallThatWasCutInTheMiddleIsRetriedBecauseNothingWasShown(t *testing.T) {
	s := double(t, says(modeld.Turn{Calls: []modeld.Call{{ID: "a", Name: "bash", Args: map[string]any{"command": strings.Repeat("x", 200)}}}}))
	s.Fail(modeld.Fault{CutAfter: 8})
	p, _ := client(t, s, nil)
	got := listen(t, p, provider.Request{Messages: []provider.Message{user("hi")}})
	if got.Err != nil || len(got.Calls) != 1 || s.Calls() != 2 {
		t.Fatalf("%+v in %d calls", got, s.Calls())
	}
}

func TestErrorTextsHoldNoKeyAndAreBounded(t *testing.T) {
	s := double(t, says(modeld.Turn{Text: "x"}))
	s.Key = "another"
	p, _ := client(t, s, nil)
	got := listen(t, p, provider.Request{Messages: []provider.Message{user("hi")}})
	if got.Err == nil || strings.Contains(got.Err.Error(), "sk-secret") || !strings.Contains(got.Err.Error(), "401") {
		t.Fatalf("error: %v", got.Err)
	}
	s.Key = ""
	s.Fail(modeld.Fault{Status: 400, Body: strings.Repeat("é", 100_000)})
	if got := listen(t, p, provider.Request{Messages: []provider.Message{user("hi")}}); len(got.Err.Error()) > 600 {
		t.Fatalf("the error text has %d bytes", len(got.Err.Error()))
	}
}

func TestCancellingEndsASilentStream(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	s := double(t, says(modeld.Turn{Text: "hello"}))
	s.Fail(modeld.Fault{Hold: hold})
	p, _ := client(t, s, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ch, err := p.Stream(ctx, provider.Request{Messages: []provider.Message{user("hi")}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for c := range ch {
		if c.Type == provider.ChunkError && !errors.Is(c.Err, context.Canceled) {
			t.Errorf("error: %v", c.Err)
		}
	}
}

func TestAStreamThatFallsSilentIsCut(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	s := double(t, says(modeld.Turn{Text: "hello"}))
	s.Fail(modeld.Fault{Hold: hold})
	p, _ := client(t, s, map[string]any{"idle_timeout": "50ms", "max_tries": int64(1)})
	got := listen(t, p, provider.Request{Messages: []provider.Message{user("hi")}})
	if got.Err == nil || !strings.Contains(got.Err.Error(), "silent") {
		t.Fatalf("error: %v", got.Err)
	}
}

func TestAnUnreachableModelSaysSo(t *testing.T) {
	s := double(t, says(modeld.Turn{}))
	p, _ := client(t, s, nil)
	s.Close()
	got := listen(t, p, provider.Request{Messages: []provider.Message{user("hi")}})
	var e *provider.Error
	if !errors.As(got.Err, &e) || !e.Temporary || !strings.Contains(e.Message, "cannot be reached") {
		t.Fatalf("error: %v", got.Err)
	}
}

func TestABadInstanceIsRefused(t *testing.T) {
	good := provider.Config{Name: "x", BaseURL: "https://h/v1", Model: "m"}
	cases := map[string]func(*provider.Config){
		"neither base_url":      func(c *provider.Config) { c.BaseURL = "" },
		"not an absolute":       func(c *provider.Config) { c.BaseURL = "ftp://h" },
		"holds credentials":     func(c *provider.Config) { c.BaseURL = "https://u:p@h/v1" },
		"no model":              func(c *provider.Config) { c.Model = "" },
		"unknown option":        func(c *provider.Config) { c.Extra = map[string]any{"max_retry": 1} },
		"option max_tries":      func(c *provider.Config) { c.Extra = map[string]any{"max_tries": 0} },
		"option headers":        func(c *provider.Config) { c.Extra = map[string]any{"headers": map[string]any{"a": 1}} },
		"option idle_timeout":   func(c *provider.Config) { c.Extra = map[string]any{"idle_timeout": "soon"} },
		"option max_tokens_fie": func(c *provider.Config) { c.Extra = map[string]any{"max_tokens_field": "x"} },
	}
	for want, change := range cases {
		cfg := good
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	for raw, want := range map[string]string{"https://h/v1/": "https://h/v1/chat/completions", "http://h:1": "http://h:1/chat/completions"} {
		if got, _ := endpoint(provider.Config{BaseURL: raw}); got != want {
			t.Errorf("%s: %s", raw, got)
		}
	}
	if got, _ := endpoint(provider.Config{BaseURL: "https://h/v1", RequestURL: "https://other/exact?x=1"}); got != "https://other/exact?x=1" {
		t.Errorf("request_url: %s", got)
	}
}

func sent(t testing.TB, p *Provider, req provider.Request) string {
	b, err := p.encode(req)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(b.reader())
	if err != nil || int64(len(raw)) != b.size() {
		t.Fatalf("%d bytes read of %d: %v", len(raw), b.size(), err)
	}
	return string(raw)
}

// What grows only at its end stays in the vendor's prompt cache.
func TestInvariant11_ARequestsBytesAreAPrefixOfTheNextOnes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := &Provider{model: "m"}
		tools := []provider.ToolSchema{{Name: "ls", Parameters: []byte(`{"type":"object"}`)}}
		conversations := make([][]provider.Message, 3)
		last := make([]string, 3)
		for range rapid.IntRange(1, 40).Draw(rt, "requests") {
			i := rapid.IntRange(0, 2).Draw(rt, "conversation")
			for range rapid.IntRange(1, 3).Draw(rt, "new") {
				conversations[i] = append(conversations[i], message(rt, i))
			}
			now := sent(t, p, provider.Request{Messages: conversations[i], Tools: tools})
			if before := strings.TrimSuffix(last[i], "]}"); !strings.HasPrefix(now, before) {
				rt.Fatalf("the request before is no prefix:\n%s\n%s", before, now)
			}
			last[i] = now
		}
		total := len(conversations[0]) + len(conversations[1]) + len(conversations[2])
		if p.wire.count > total {
			rt.Fatalf("%d messages were encoded %d times", total, p.wire.count)
		}
	})
}

func message(t *rapid.T, conversation int) provider.Message {
	text := fmt.Sprintf("%d %s", conversation, rapid.String().Draw(t, "text"))
	switch rapid.IntRange(0, 2).Draw(t, "role") {
	case 0:
		return user(text)
	case 1:
		return provider.Message{Role: provider.RoleAssistant, ToolCalls: []provider.ToolCall{{ID: text, Name: "ls", Arguments: "{}"}}}
	}
	return provider.Message{Role: provider.RoleTool, ToolCallID: "x", Content: text}
}

func TestAnotherBranchOfAConversationDoesNotDisturbTheFirst(t *testing.T) {
	p := &Provider{model: "m"}
	a, _ := p.encode(provider.Request{Messages: []provider.Message{user("1"), user("2")}})
	sent(t, p, provider.Request{Messages: []provider.Message{user("1"), user("three")}})
	sent(t, p, provider.Request{Messages: []provider.Message{user("1"), user("2"), user("4")}})
	if p.wire.count != 5 {
		t.Errorf("%d messages were encoded, want 5: the longest known beginning is taken", p.wire.count)
	}
	raw, _ := io.ReadAll(a.reader())
	if !strings.HasSuffix(string(raw), `{"role":"user","content":"2"}]}`) {
		t.Fatalf("%s", raw)
	}
}

func BenchmarkEncodeOneMoreTurn(b *testing.B) {
	for _, turns := range []int{10, 1000} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			p := &Provider{model: "m"}
			var all []provider.Message
			for i := range turns {
				all = append(all, user(fmt.Sprintf("%d %s", i, strings.Repeat("x", 500))), provider.Message{Role: provider.RoleAssistant, Content: strings.Repeat("y", 500)})
			}
			for b.Loop() {
				if _, err := p.encode(provider.Request{Messages: all}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
