package modeld

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, brain Brain) *Server {
	t.Helper()
	s, err := Start(brain)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// official is the vendor's own client: what it understands is the protocol.
func official(t *testing.T, s *Server) openai.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return openai.NewClient(option.WithBaseURL(s.URL), option.WithAPIKey("k"), option.WithMaxRetries(0), option.WithHTTPClient(&http.Client{Transport: transport}))
}

func TestTheOfficialClientUnderstandsTheDouble(t *testing.T) {
	turn := Turn{Text: "I look at two files: größe.", Usage: &Usage{Prompt: 50, Completion: 5, Cached: 40},
		Calls: []Call{{ID: "a", Name: "read_file", Args: map[string]any{"path": "x.go"}}, {ID: "b", Name: "read_file", Args: map[string]any{"path": "a long path/y.go"}}}}
	s := start(t, func(Request) Turn { return turn })
	c := official(t, s)
	params := openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}}
	stream := c.Chat.Completions.NewStreaming(t.Context(), params)
	acc := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			t.Fatal("the accumulator refuses a chunk")
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	checkOfficial(t, &acc.ChatCompletion, turn)
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
	whole, err := c.Chat.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	checkOfficial(t, whole, turn)
}

func checkOfficial(t *testing.T, got *openai.ChatCompletion, want Turn) {
	t.Helper()
	m := got.Choices[0].Message
	if m.Content != want.Text || got.Choices[0].FinishReason != "tool_calls" || len(m.ToolCalls) != 2 {
		t.Fatalf("got %+v", got.Choices[0])
	}
	if m.ToolCalls[1].ID != "b" || m.ToolCalls[1].Function.Arguments != `{"path":"a long path/y.go"}` {
		t.Fatalf("call: %+v", m.ToolCalls[1])
	}
	if got.Usage.PromptTokens != 50 || got.Usage.PromptTokensDetails.CachedTokens != 40 {
		t.Fatalf("usage: %+v", got.Usage)
	}
}

func TestTheOfficialClientSeesTheFaults(t *testing.T) {
	s := start(t, func(Request) Turn { return Turn{Text: "hello, this is a longer text"} })
	c := official(t, s)
	ask := func() error {
		stream := c.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{Model: "m",
			Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}})
		for stream.Next() {
		}
		return stream.Err()
	}
	for want, fault := range map[string]Fault{"429": {Status: 429, RetryAfter: "1"}, "EOF": {CutAfter: 2}, "invalid character": {Malformed: true}, "overloaded": {ErrorEvent: "overloaded"}} {
		s.Fail(fault)
		if err := ask(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := ask(); err != nil {
		t.Errorf("without a fault: %v", err)
	}
}

func TestInvalidHistoriesAreRefused(t *testing.T) {
	call := func(ids ...string) string {
		var parts []string
		for _, id := range ids {
			parts = append(parts, `{"id":"`+id+`","type":"function","function":{"name":"ls","arguments":"{}"}}`)
		}
		return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(parts, ",") + `]}`
	}
	tool := func(id string) string { return `{"role":"tool","tool_call_id":"` + id + `","content":"x"}` }
	const u, a, sys = `{"role":"user","content":"hi"}`, `{"role":"assistant","content":"yo"}`, `{"role":"system","content":"s"}`
	cases := []struct {
		name, want string
		messages   []string
	}{
		{"a plain request", "", []string{sys, u}},
		{"a call and its answer", "", []string{u, call("a", "b"), tool("b"), tool("a")}},
		{"an id used again later", "", []string{u, call("a"), tool("a"), call("a"), tool("a")}},
		{"steering behind results", "", []string{u, call("a"), tool("a"), u}},
		{"two user messages", "", []string{u, u}},
		{"nothing", "messages is empty", nil},
		{"an unanswered call", "no answer yet", []string{u, call("a", "b"), tool("a"), u}},
		{"an unanswered call at the end", "missing: [b]", []string{u, call("a", "b"), tool("a")}},
		{"a doubled answer", "answered twice", []string{u, call("a", "b"), tool("a"), tool("a")}},
		{"an answer without a call", "is unknown", []string{u, tool("a")}},
		{"an answer to an old call", "is unknown", []string{u, call("a"), tool("a"), u, tool("zz")}},
		{"a doubled id", "is there twice", []string{u, call("a", "a"), tool("a")}},
		{"an empty id", "1 to 40", []string{u, call("")}},
		{"two assistants", "two assistant", []string{u, a, a, u}},
		{"an empty assistant", "needs content", []string{u, `{"role":"assistant","content":""}`, u}},
		{"a late system message", "must come first", []string{u, sys}},
		{"ends with the assistant", "last message", []string{u, a}},
		{"begins with the assistant", "begin with a user", []string{a, u}},
		{"broken arguments", "JSON object", []string{u, strings.Replace(call("a"), `"{}"`, `"{"`, 1), tool("a")}},
		{"a bad name", "not allowed", []string{u, strings.Replace(call("a"), `"ls"`, `"l s"`, 1), tool("a")}},
		{"an empty user message", "content is empty", []string{`{"role":"user","content":""}`}},
		{"an unknown role", "unknown role", []string{`{"role":"robot","content":"x"}`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse([]byte(`{"model":"m","messages":[` + strings.Join(c.messages, ",") + `]}`))
			if (c.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestBrokenToolsAreRefused(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"string"}}}`: "",
		`{"type":"object","properties":{"a":{"type":"strin"}}}`:  "invalid schema",
		`{"type":"array"}`: "type object",
		`null`:             "type object",
	} {
		body, _ := json.Marshal(map[string]any{"model": "m", "messages": []any{map[string]any{"role": "user", "content": "x"}},
			"tools": []any{map[string]any{"type": "function", "function": map[string]any{"name": "t", "parameters": json.RawMessage(schema)}}}})
		_, err := parse(body)
		if (want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}
