// Package slackd speaks Slack's Web API, and sends its signed deliveries, on loopback.
package slackd

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Post is a message as the workspace holds it.
type Post struct {
	Channel  string
	TS       string
	ThreadTS string
	User     string
	BotID    string
	Text     string
	Blocks   []map[string]any
	Metadata json.RawMessage
	Edits    int
	Files    []string // names of files that were shared with it
}

// Whisper is a message that one person alone sees.
type Whisper struct{ Channel, ThreadTS, User, Text string }

// File is an uploaded file after its upload was completed.
type File struct{ ID, Name, Channel, ThreadTS, Content string }

// View is a modal that was opened.
type View struct {
	ID, TriggerID, CallbackID, PrivateMetadata string
	Raw                                        json.RawMessage
}

// Fault is something that goes wrong with the next call of a method.
type Fault struct {
	RetryAfter int    // seconds: answer 429
	Status     int    // answer this status with a page of HTML
	Error      string // answer ok:false with this error
	DropBefore bool   // close the connection without doing anything
	DropAfter  bool   // do it, then close the connection without an answer
}

// Server is one workspace with one app.
type Server struct {
	URL           string // of the Web API, with a slash at the end
	Token         string
	SigningSecret string
	Team          string
	AppID         string
	BotUser       string
	BotID         string
	Now           func() time.Time // for timestamps and signatures
	Scopes        string           // what X-OAuth-Scopes says

	mu       sync.Mutex
	http     *httptest.Server
	clock    int64 // microseconds of the last timestamp
	posts    []*Post
	whispers []Whisper
	files    []File
	pending  map[string]*File
	views    []View
	shared   map[string]string // path → content of files that people shared
	triggers map[string]bool
	faults   map[string][]Fault
	calls    map[string]int
}

// New starts a workspace that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{Token: "xoxb-loopback", SigningSecret: "8f742231b10e8888abcd99yyyzzz85a5", Team: "T0LOOP", AppID: "A0LOOP", BotUser: "U0BOT",
		BotID: "B0BOT", Now: time.Now, pending: map[string]*File{}, shared: map[string]string{}, triggers: map[string]bool{},
		faults: map[string][]Fault{}, calls: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/", s.serveAPI)
	mux.HandleFunc("/upload/", s.serveUpload)
	mux.HandleFunc("/files/", s.serveFile)
	mux.HandleFunc("/response/", s.serveResponse)
	s.http = httptest.NewServer(mux)
	s.URL = s.http.URL + "/api/"
	t.Cleanup(s.http.Close)
	return s
}

// Fail makes the next calls of a method ("chat.postMessage") go wrong, in this order.
func (s *Server) Fail(method string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[method] = append(s.faults[method], faults...)
}

// Calls counts the calls of a method.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Posts returns what stands in the workspace, oldest first.
func (s *Server) Posts() []Post {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Post, len(s.posts))
	for i, p := range s.posts {
		out[i] = *p
	}
	return out
}

// BotPosts returns the bot's messages, files left out.
func (s *Server) BotPosts() []Post {
	var out []Post
	for _, p := range s.Posts() {
		if p.BotID == s.BotID && len(p.Files) == 0 {
			out = append(out, p)
		}
	}
	return out
}

// Whispers returns what single people were told.
func (s *Server) Whispers() []Whisper {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Whisper(nil), s.whispers...)
}

// Files returns the completed uploads.
func (s *Server) Files() []File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]File(nil), s.files...)
}

// Views returns the opened modals.
func (s *Server) Views() []View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]View(nil), s.views...)
}

// WaitPost waits until a post of the bot matches, for at most 10 s.
func (s *Server) WaitPost(t testing.TB, what string, match func(Post) bool) Post {
	t.Helper()
	return wait(t, "post in Slack that shows "+what, s.dump, s.BotPosts, match)
}

// WaitWhisper waits until a single person was told what matches, for at most 10 s.
func (s *Server) WaitWhisper(t testing.TB, what string, match func(Whisper) bool) Whisper {
	t.Helper()
	return wait(t, "private word that says "+what, func() string { return fmt.Sprint(s.Whispers()) }, s.Whispers, match)
}

func wait[T any](t testing.TB, what string, dump func() string, list func() []T, match func(T) bool) T {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, x := range list() {
			if match(x) {
				return x
			}
		}
		select {
		case <-deadline:
			t.Fatalf("no %s; there are: %s", what, dump())
		case <-tick.C:
		}
	}
}

func (s *Server) dump() string {
	var b strings.Builder
	for _, p := range s.BotPosts() {
		fmt.Fprintf(&b, "\n- %s %s: %s", p.Channel, p.TS, p.Shown())
	}
	return b.String()
}

// Shown is every text of a post that a person reads, blocks first.
func (p Post) Shown() string {
	var texts []string
	for _, b := range p.Blocks {
		collectTexts(b, &texts)
	}
	return strings.Join(texts, "\n")
}

func collectTexts(v any, out *[]string) {
	switch v := v.(type) {
	case map[string]any:
		if v["type"] == "user" {
			*out = append(*out, fmt.Sprintf("<@%v>", v["user_id"]))
		}
		if s, ok := v["text"].(string); ok {
			*out = append(*out, s)
		}
		for _, k := range []string{"text", "fields", "elements"} {
			if _, isText := v[k].(string); !isText {
				collectTexts(v[k], out)
			}
		}
	case []any:
		for _, x := range v {
			collectTexts(x, out)
		}
	}
}

// Button is a live button of a post.
type Button struct{ ActionID, BlockID, Label, Value string }

// Buttons returns the post's live buttons.
func (p Post) Buttons() []Button {
	var out []Button
	for _, b := range p.Blocks {
		if b["type"] != "actions" {
			continue
		}
		elements, _ := b["elements"].([]any)
		for _, e := range elements {
			m, _ := e.(map[string]any)
			text, _ := m["text"].(map[string]any)
			out = append(out, Button{ActionID: str(m["action_id"]), BlockID: str(b["block_id"]), Label: str(text["text"]), Value: str(m["value"])})
		}
	}
	return out
}

func str(v any) string { s, _ := v.(string); return s }

// stamp is the next message timestamp; the caller holds mu.
func (s *Server) stamp() string {
	now := s.Now().UnixMicro()
	s.clock = max(s.clock+1, now)
	return strconv.FormatInt(s.clock/1e6, 10) + "." + fmt.Sprintf("%06d", s.clock%1e6)
}
