package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"reasonix/internal/provider"
)

// Whatever the model sends, the next request's history is valid: the scripted model of these tests checks every history as a
// strict vendor does.
func TestMalformedModelsCannotBreakTheHistory(t *testing.T) {
	many := make([]provider.ToolCall, 200)
	for i := range many {
		many[i] = call(fmt.Sprintf("m%d", i), "write", fmt.Sprint(i))
	}
	raw := func(id, name, args string) provider.ToolCall {
		return provider.ToolCall{ID: id, Name: name, Arguments: args}
	}
	cases := []struct {
		name    string
		turns   []turn
		results string // joined with |, prefixes
		asked   int
		told    string // a user message that the host added
	}{
		{"an empty turn", []turn{{}, {text: "ok"}}, "", 2, tellEmpty},
		{"a turn of white space", []turn{{text: " \n "}, {text: "ok"}}, "", 2, tellEmpty},
		{"calls announced that never came", []turn{{text: "Let me look.", finish: "tool_calls"}, {text: "ok"}}, "", 2, tellLost},
		{"a text cut by the output limit", []turn{{text: "It is lo", finish: "length"}, {text: "ok"}}, "", 2, tellLong},
		{"a stream cut after text", []turn{{text: "I will", err: &provider.Error{Cut: true}}, {text: "ok"}}, "", 2, tellCut},
		{"a stream cut after a call", []turn{{text: "I will", calls: []provider.ToolCall{call("a", "write", "x")}, err: &provider.Error{Cut: true}}, {text: "ok"}}, "", 2, tellCut},
		{"a stream without an end", []turn{{text: "I will", noEnd: true}, {text: "ok"}}, "", 2, tellCut},
		{"an unknown tool", []turn{{calls: []provider.ToolCall{call("a", "fly", "x")}}, {text: "ok"}}, `error: unknown tool "fly"`, 2, ""},
		{"a nameless tool", []turn{{calls: []provider.ToolCall{call("a", "", "x")}}, {text: "ok"}}, `error: unknown tool`, 2, ""},
		{"a tool name with signs", []turn{{calls: []provider.ToolCall{call("a", "re ad!", "x")}}, {text: "ok"}}, `error: unknown tool "re_ad_"`, 2, ""},
		{"duplicate ids", []turn{{calls: []provider.ToolCall{call("a", "read", "1"), call("a", "read", "2")}}, {text: "ok"}}, "read 1|read 2", 2, ""},
		{"missing ids", []turn{{calls: []provider.ToolCall{call("", "read", "1"), call("", "write", "2")}}, {text: "ok"}}, "read 1|wrote 2", 2, ""},
		{"ids used again in the next message", []turn{{calls: []provider.ToolCall{call("a", "read", "1")}}, {calls: []provider.ToolCall{call("a", "read", "2")}}, {text: "ok"}}, "read 1|read 2", 3, ""},
		{"arguments cut in the middle", []turn{{calls: []provider.ToolCall{raw("a", "write", `{"v":"x`)}}, {text: "ok"}}, "error: the arguments of write were not a JSON object", 2, ""},
		{"arguments that are a list", []turn{{calls: []provider.ToolCall{raw("a", "write", `["x"]`)}}, {text: "ok"}}, "error: the arguments", 2, ""},
		{"no arguments at all", []turn{{calls: []provider.ToolCall{raw("a", "read", "")}}, {text: "ok"}}, "read ", 2, ""},
		{"an id that is too long", []turn{{calls: []provider.ToolCall{call(strings.Repeat("x", 90), "read", "1")}}, {text: "ok"}}, "read 1", 2, ""},
		{"a tool that fails", []turn{{calls: []provider.ToolCall{call("a", "fail", "x")}}, {text: "ok"}}, "error: it broke\npart", 2, ""},
		{"a tool that crashes", []turn{{calls: []provider.ToolCall{call("a", "panic", "x")}}, {text: "ok"}}, "error: the tool panic crashed: oh no", 2, ""},
		{"200 calls", []turn{{calls: many}, {text: "ok"}}, "wrote 0|wrote 1", 2, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t, c.turns...)
			h.tree = &tree{}
			if out := h.mustRun(StopDone); out.Text != "ok" {
				t.Errorf("last text %q", out.Text)
			}
			got := h.results()
			for i, want := range strings.Split(c.results, "|") {
				if want != "" && (i >= len(got) || !strings.HasPrefix(got[i], want)) {
					t.Errorf("results %q, want %q at %d", got, want, i)
				}
			}
			ids := map[string]bool{}
			for _, m := range h.model.asked[len(h.model.asked)-1].Messages {
				for _, k := range m.ToolCalls {
					if ids[k.ID] {
						t.Errorf("the id %s stands for two calls of the session", k.ID)
					}
					ids[k.ID] = true
				}
			}
			if len(h.model.asked) != c.asked {
				t.Errorf("%d model calls, want %d", len(h.model.asked), c.asked)
			}
			last := h.model.asked[len(h.model.asked)-1].Messages
			if c.told != "" && last[len(last)-1].Content != c.told {
				t.Errorf("the model was told %q", last[len(last)-1].Content)
			}
		})
	}
}

func TestOfTooManyCallsTheRestIsNotRunAndSaysSo(t *testing.T) {
	many := make([]provider.ToolCall, 200)
	for i := range many {
		many[i] = call(fmt.Sprintf("m%d", i), "write", fmt.Sprint(i))
	}
	h := newHouse(t, turn{calls: many}, turn{text: "ok"})
	h.mustRun(StopDone)
	if r := h.results(); len(h.ran) != maxCalls || len(r) != 200 || !strings.Contains(r[199], "at most 128 calls") {
		t.Fatalf("%d ran, %d results", len(h.ran), len(r))
	}
}

func TestAModelThatNeverSaysAnythingEndsWithAnError(t *testing.T) {
	h := newHouse(t, turn{}, turn{}, turn{}, turn{}, turn{}, turn{}, turn{}, turn{})
	_, err := h.attempt(h.log)
	var e *provider.Error
	if !errors.As(err, &e) || len(h.model.asked) != maxStumbles+1 {
		t.Fatalf("%v after %d calls", err, len(h.model.asked))
	}
}

func TestAFailureOfTheModelIsReturnedAndTheSessionStaysWhereItWas(t *testing.T) {
	h := newHouse(t, turn{text: "", err: &provider.Error{Provider: "x", Status: 401, Message: "bad key"}})
	_, err := h.attempt(h.log)
	var e *provider.Error
	if !errors.As(err, &e) || e.Status != 401 {
		t.Fatalf("error %v", err)
	}
	h.model.turns = []turn{{text: "better now"}}
	if out := h.mustRun(StopDone); out.Text != "better now" {
		t.Fatalf("outcome %+v", out)
	}
}
