// Package githubd speaks GitHub's REST API, and sends its signed webhooks, on loopback.
package githubd

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Comment is an issue or pull request comment.
type Comment struct {
	ID        int64
	Repo      string
	Number    int
	Author    string
	Body      string
	Edits     int
	Reactions []string
	Created   time.Time
}

// Pull is a pull request.
type Pull struct {
	Repo         string
	Number       int
	Title, Body  string
	Branch, Base string
	HeadSHA      string
	HeadRepo     string // empty: the fork was deleted
	State        string // open or closed
	Draft        bool
}

// Fault is something that goes wrong with the next matching request.
type Fault struct {
	Status     int    // answer this status
	Message    string // with this message
	RetryAfter int    // seconds: a secondary limit (403 with Retry-After), or with Status 429
	ResetIn    int    // seconds: the primary limit (403, nothing remaining)
	DropBefore bool   // close the connection without doing anything
	DropAfter  bool   // do it, then close the connection without an answer
}

// Server is one GitHub with an app and a token.
type Server struct {
	URL            string // of the API, with a slash at the end
	Token          string // a personal access token of Bot
	Secret         string // of the webhook
	Bot            string // login that comments
	AppID          int64
	InstallationID int64
	KeyFile        string // the app's private key, made by UseApp

	mu        sync.Mutex
	http      *httptest.Server
	key       *rsa.PublicKey
	nextID    int64
	comments  []*Comment
	pulls     []*Pull
	access    map[string]string // "repo user" → role
	closed    map[string]bool   // "repo#n" that cannot be commented on
	reactions map[string][]string
	faults    map[string][]Fault
	calls     map[string]int
	tokens    map[string]string // installation token → the repositories it is narrowed to
	drafts    bool
}

// New starts a GitHub that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{Token: "ghp_loopback", Secret: "webhook secret", Bot: "reasonix-bot", nextID: 1000, access: map[string]string{}, closed: map[string]bool{},
		reactions: map[string][]string{}, faults: map[string][]Fault{}, calls: map[string]int{}, tokens: map[string]string{}, drafts: true}
	s.http = httptest.NewServer(s.routes())
	s.URL = s.http.URL + "/"
	t.Cleanup(s.http.Close)
	return s
}

// UseApp makes the bot an app: its key is written to a file of the test.
func (s *Server) UseApp(t testing.TB) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s.KeyFile = filepath.Join(t.TempDir(), "app.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(s.KeyFile, block, 0o600); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.AppID, s.InstallationID, s.Bot = &key.PublicKey, 4711, 815, "reasonix-app[bot]"
}

// Grant sets the role of a person in a repository: admin, maintain, write, triage, read.
func (s *Server) Grant(repo, user, role string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.access[repo+" "+strings.ToLower(user)] = role
}

// Lock closes an issue to the bot.
func (s *Server) Lock(repo string, number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed[fmt.Sprintf("%s#%d", repo, number)] = true
}

// NoDrafts makes the repository one that knows no draft pull requests.
func (s *Server) NoDrafts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drafts = false
}

// AddPull puts a pull request there.
func (s *Server) AddPull(p Pull) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.State == "" {
		p.State = "open"
	}
	s.pulls = append(s.pulls, &p)
}

// ClosePull closes a pull request.
func (s *Server) ClosePull(repo string, number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pulls {
		if p.Repo == repo && p.Number == number {
			p.State = "closed"
		}
	}
}

// Fail makes the next requests of a route ("POST comments", "GET permission", "POST pulls") go wrong, in this order.
func (s *Server) Fail(route string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[route] = append(s.faults[route], faults...)
}

// Calls counts the requests of a route.
func (s *Server) Calls(route string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[route]
}

// Comments returns all comments, oldest first.
func (s *Server) Comments() []Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Comment, len(s.comments))
	for i, c := range s.comments {
		out[i] = *c
		out[i].Reactions = append([]string(nil), s.reactions[fmt.Sprintf("comment %d", c.ID)]...)
	}
	return out
}

// BotComments returns the comments of the bot.
func (s *Server) BotComments() []Comment {
	var out []Comment
	for _, c := range s.Comments() {
		if c.Author == s.Bot {
			out = append(out, c)
		}
	}
	return out
}

// Pulls returns all pull requests.
func (s *Server) Pulls() []Pull {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Pull, len(s.pulls))
	for i, p := range s.pulls {
		out[i] = *p
	}
	return out
}

// Reactions returns the reactions to "comment 12", "review 13" or "issue acme/api#14".
func (s *Server) Reactions(to string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.reactions[to]...)
}

// Narrowed tells which repositories an installation token was asked for.
func (s *Server) Narrowed(token string) (repos string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	repos, known = s.tokens[token]
	return repos, known
}

// Write adds a comment of a person, as the page would, and returns it.
func (s *Server) Write(repo string, number int, author, body string) Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.add(repo, number, author, body)
}

func (s *Server) add(repo string, number int, author, body string) *Comment {
	s.nextID++
	c := &Comment{ID: s.nextID, Repo: repo, Number: number, Author: author, Body: body, Created: time.Now()}
	s.comments = append(s.comments, c)
	return c
}

// WaitComment waits until a comment of the bot matches, for at most 10 s.
func (s *Server) WaitComment(t testing.TB, what string, match func(Comment) bool) Comment {
	t.Helper()
	return wait(t, "comment that shows "+what, s.BotComments, match)
}

// WaitReaction waits until there is this reaction, for at most 10 s.
func (s *Server) WaitReaction(t testing.TB, to, content string) {
	t.Helper()
	wait(t, content+" on "+to, func() []string { return s.Reactions(to) }, func(r string) bool { return r == content })
}

func wait[T any](t testing.TB, what string, list func() []T, match func(T) bool) T {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		all := list()
		for _, x := range all {
			if match(x) {
				return x
			}
		}
		select {
		case <-deadline:
			t.Fatalf("no %s; there are: %+v", what, all)
		case <-tick.C:
		}
	}
}

func (s *Server) page(path string) string { return strings.TrimSuffix(s.http.URL, "/") + path }
