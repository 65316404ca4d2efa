package modeld

import (
	"encoding/json"
	"fmt"
	"net/http"
	"unicode/utf8"
)

func document(w http.ResponseWriter, req Request, t Turn) {
	w.Header().Set("Content-Type", "application/json")
	message := map[string]any{"role": "assistant", "content": t.Text, "refusal": nil}
	if calls := wholeCalls(t); len(calls) > 0 {
		message["tool_calls"] = calls
	}
	writeJSON(w, map[string]any{"id": fmt.Sprintf("chatcmpl-%d", req.N), "object": "chat.completion", "created": 1, "model": req.Model,
		"choices": []any{map[string]any{"index": 0, "message": message, "logprobs": nil, "finish_reason": t.finish()}}, "usage": t.usage(req)})
}

func wholeCalls(t Turn) []any {
	var out []any
	for _, c := range t.Calls {
		out = append(out, map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.arguments()}})
	}
	return out
}

func (c Call) arguments() string {
	if c.Raw != "" || c.Args == nil {
		return c.Raw
	}
	b, err := json.Marshal(c.Args)
	if err != nil {
		panic("modeld: arguments of a brain do not encode: " + err.Error())
	}
	return string(b)
}

func (t Turn) finish() string {
	switch {
	case t.Finish != "":
		return t.Finish
	case len(t.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (t Turn) usage(req Request) map[string]any {
	u := t.Usage
	if u == nil {
		u = &Usage{Prompt: int64(len(req.Body)/4 + 1), Completion: int64(len(t.Text)/4 + 1)}
	}
	out := map[string]any{"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
		"prompt_tokens_details": map[string]any{"cached_tokens": u.Cached}}
	if u.CacheHit > 0 {
		out["prompt_cache_hit_tokens"] = u.CacheHit
	}
	return out
}

// stream sends the turn in small events: text by few runes, calls as a head and then argument pieces, interleaved by index.
func stream(w http.ResponseWriter, r *http.Request, req Request, t Turn, f Fault) {
	w.Header().Set("Content-Type", "text/event-stream")
	s := &sender{w: w, flush: http.NewResponseController(w), req: req, fault: f, gone: r.Context().Done()}
	fmt.Fprint(w, ": keep-alive\n\n")
	s.choice(map[string]any{"role": "assistant", "content": ""}, nil)
	for _, piece := range pieces(t.Text, 7) {
		s.choice(map[string]any{"content": piece}, nil)
	}
	s.calls(t)
	if f.Malformed {
		s.raw("{this is no JSON")
	}
	if f.ErrorEvent != "" {
		s.event(map[string]any{"error": map[string]any{"message": f.ErrorEvent, "type": "server_error"}})
		return
	}
	s.choice(map[string]any{}, t.finish())
	if req.WantUsage {
		s.event(s.frame([]any{}, t.usage(req)))
	}
	if !f.NoDone {
		s.raw("[DONE]")
	}
}

type sender struct {
	w     http.ResponseWriter
	flush *http.ResponseController
	req   Request
	fault Fault
	gone  <-chan struct{}
	sent  int
}

func (s *sender) calls(t Turn) {
	args := make([][]string, len(t.Calls))
	most := 0
	for i, c := range t.Calls {
		head := map[string]any{"index": i, "type": "function", "function": map[string]any{"name": c.Name, "arguments": ""}}
		if !c.NoID {
			head["id"] = c.ID
		}
		s.choice(map[string]any{"tool_calls": []any{head}}, nil)
		args[i] = pieces(c.arguments(), 11)
		most = max(most, len(args[i]))
	}
	for round := range most {
		for i := range args {
			if round < len(args[i]) {
				s.choice(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": args[i][round]}}}}, nil)
			}
		}
	}
}

func (s *sender) choice(delta map[string]any, finish any) {
	s.event(s.frame([]any{map[string]any{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}, nil))
}

func (s *sender) frame(choices []any, usage any) map[string]any {
	return map[string]any{"id": fmt.Sprintf("chatcmpl-%d", s.req.N), "object": "chat.completion.chunk", "created": 1, "model": s.req.Model,
		"choices": choices, "usage": usage}
}

func (s *sender) event(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("modeld: an event does not encode: " + err.Error())
	}
	s.raw(string(b))
}

func (s *sender) raw(data string) {
	if s.fault.CutAfter > 0 && s.sent >= s.fault.CutAfter {
		panic(http.ErrAbortHandler) // breaks the connection
	}
	fmt.Fprintf(s.w, "data: %s\n\n", data)
	_ = s.flush.Flush() // a client that is gone ends the handler by its context
	s.sent++
	if s.fault.Hold != nil && s.sent == 1 {
		select {
		case <-s.fault.Hold:
		case <-s.gone:
		}
	}
}

// pieces cuts text every n runes.
func pieces(text string, n int) []string {
	var out []string
	for len(text) > 0 {
		end := 0
		for i := 0; i < n && end < len(text); i++ {
			_, size := utf8.DecodeRuneInString(text[end:])
			end += size
		}
		out, text = append(out, text[:end]), text[end:]
	}
	return out
}
