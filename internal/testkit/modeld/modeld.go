// Package modeld is a model server on loopback that speaks OpenAI's chat completions, refuses what a real vendor refuses, and
// fails on demand.
package modeld

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Request is one accepted call.
type Request struct {
	N           int // from 1, refused and failed calls included
	Model       string
	Messages    []Message
	Tools       []Tool
	Stream      bool
	WantUsage   bool
	Temperature *float64
	MaxTokens   int
	Body        []byte // as it came
	Header      http.Header
	At          time.Time // when it had arrived whole
}

// Message is one message as it came over the wire.
type Message struct {
	Role       string  `json:"role"`
	Content    *string `json:"content"`
	ToolCallID string  `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function Function `json:"function"`
	} `json:"tool_calls"`
}

// Text is the content, empty when there is none.
func (m Message) Text() string {
	if m.Content == nil {
		return ""
	}
	return *m.Content
}

// Function is the name and the raw arguments of a call.
type Function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Tool is one offered tool.
type Tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// Offers tells whether a tool of that name is offered.
func (r Request) Offers(name string) bool {
	for _, t := range r.Tools {
		if t.Function.Name == name {
			return true
		}
	}
	return false
}

// Results are the tool messages behind the last assistant message, in order.
func (r Request) Results() []string {
	var out []string
	for _, m := range r.Messages {
		switch m.Role {
		case "assistant":
			out = nil
		case "tool":
			out = append(out, m.Text())
		}
	}
	return out
}

// Turn is what the model answers.
type Turn struct {
	Text   string
	Calls  []Call
	Finish string // empty: tool_calls when there are calls, else stop
	Usage  *Usage // nil: estimated at four bytes per token
}

// Call is one tool call; an empty ID gets a fresh one. Raw replaces the encoded Args.
type Call struct {
	ID   string
	Name string
	Args any
	Raw  string
	NoID bool // send no id at all
}

// Usage counts tokens.
type Usage struct{ Prompt, Completion, Cached, CacheHit int64 }

// Brain decides what the model answers; calls come one at a time.
type Brain func(Request) Turn

// Fault is one way to fail; the zero value does nothing. Faults are used up in order, one per call, before the brain is asked.
type Fault struct {
	Status     int             // answer with this status instead
	RetryAfter string          // header beside Status
	Body       string          // body beside Status; empty: the vendor's usual error object
	CutAfter   int             // break the connection after so many events of the stream
	Malformed  bool            // send an event that is no JSON
	ErrorEvent string          // send an error object within the stream
	Hold       <-chan struct{} // after the first event, wait until it is closed or the client is gone
	NoDone     bool            // end the stream without [DONE]
	Plain      bool            // answer with a JSON document although a stream was asked for
}

// Server is the double. Close it.
type Server struct {
	URL string // base address, as base_url wants it
	Key string // not empty: another key is refused with 401

	brain Brain
	http  *http.Server
	done  chan struct{}

	mu       sync.Mutex
	n        int
	ids      int
	faults   []Fault
	requests []Request
	refusals []string
}

// Start listens on a free loopback port.
func Start(brain Brain) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the model double: %w", err)
	}
	s := &Server{URL: "http://" + l.Addr().String() + "/v1", brain: brain, done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.serve)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"double","object":"model","created":1,"owned_by":"loopback"}]}`)
	})
	s.http = &http.Server{Handler: mux}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // ends with ErrServerClosed
	}()
	return s, nil
}

// Close ends all connections and waits for the listener.
func (s *Server) Close() {
	_ = s.http.Close()
	<-s.done
}

// Fail queues faults for the next calls.
func (s *Server) Fail(f ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f...)
}

// Requests are the accepted calls so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Refusals are the reasons for which histories were refused so far.
func (s *Server) Refusals() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.refusals...)
}

// Calls counts every call, failed ones included.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

const maxBody = 64 << 20

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	arrived := time.Now()
	n, fault := s.next()
	if fault.Status != 0 {
		fail(w, fault)
		return
	}
	if s.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.Key {
		refuse(w, http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided: "+r.Header.Get("Authorization"))
		return
	}
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "too_large", err.Error())
		return
	}
	req, err := parse(raw)
	if err != nil {
		s.mu.Lock()
		s.refusals = append(s.refusals, err.Error())
		s.mu.Unlock()
		refuse(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	req.N, req.Body, req.Header, req.At = n, raw, r.Header, arrived
	turn := s.answer(req)
	if !req.Stream || fault.Plain {
		document(w, req, turn)
		return
	}
	stream(w, r, req, turn, fault)
}

func (s *Server) next() (int, Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	var f Fault
	if len(s.faults) > 0 {
		f, s.faults = s.faults[0], s.faults[1:]
	}
	return s.n, f
}

func (s *Server) answer(req Request) Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	turn := s.brain(req)
	for i := range turn.Calls {
		if turn.Calls[i].ID == "" && !turn.Calls[i].NoID {
			s.ids++
			turn.Calls[i].ID = fmt.Sprintf("call_%d", s.ids)
		}
	}
	return turn
}

func fail(w http.ResponseWriter, f Fault) {
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	if f.Body != "" {
		w.WriteHeader(f.Status)
		fmt.Fprint(w, f.Body)
		return
	}
	refuse(w, f.Status, "double_fault", http.StatusText(f.Status)+" on demand")
}

func refuse(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	writeJSON(w, map[string]any{"error": map[string]any{"message": text, "type": "invalid_request_error", "code": code, "param": nil}})
}

func writeJSON(w io.Writer, v any) {
	_ = json.NewEncoder(w).Encode(v) // a client that is gone needs no answer
}
