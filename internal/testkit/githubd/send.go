package githubd

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Delivery is a webhook as GitHub would send it; it can be sent again as it is, as a redelivery is.
type Delivery struct {
	Event    string
	GUID     string
	Body     []byte
	Form     bool   // as a form instead of JSON
	Secret   string // signs with another secret than the webhook's
	Unsigned bool
	OldSign  bool // signed with SHA-1 alone
}

// Answer is what the host said.
type Answer struct {
	Status int
	Body   string
}

// Deliver signs and sends a delivery to the address of the door.
func (s *Server) Deliver(t testing.TB, hook string, d Delivery) Answer {
	t.Helper()
	a, err := s.TryDeliver(hook, d)
	if err != nil {
		t.Fatalf("deliver to %s: %v", hook, err)
	}
	return a
}

// TryDeliver is Deliver for other goroutines.
func (s *Server) TryDeliver(hook string, d Delivery) (Answer, error) {
	req, err := s.Request(hook, d)
	if err != nil {
		return Answer{}, err
	}
	client := &http.Client{Timeout: 15 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, string(body)}, err
}

// Request builds the signed request.
func (s *Server) Request(hook string, d Delivery) (*http.Request, error) {
	body, kind := d.Body, "application/json"
	if d.Form {
		body, kind = []byte(url.Values{"payload": {string(d.Body)}}.Encode()), "application/x-www-form-urlencoded"
	}
	req, err := http.NewRequest(http.MethodPost, hook, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	secret := d.Secret
	if secret == "" {
		secret = s.Secret
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	req.Header.Set("Content-Type", kind)
	req.Header.Set("User-Agent", "GitHub-Hookshot/loopback")
	req.Header.Set("X-GitHub-Event", d.Event)
	req.Header.Set("X-GitHub-Delivery", d.GUID)
	switch {
	case d.Unsigned:
	case d.OldSign:
		req.Header.Set("X-Hub-Signature", "sha1="+strings.Repeat("a", 40))
	default:
		req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	return req, nil
}

// Payload is a delivery of this event; every call gives a delivery id of its own.
func (s *Server) Payload(event string, payload any) Delivery {
	s.mu.Lock()
	s.nextID++
	id := s.nextID
	s.mu.Unlock()
	body, ok := payload.([]byte)
	if !ok {
		body, _ = json.Marshal(payload)
	}
	return Delivery{Event: event, GUID: fmt.Sprintf("72d3162e-cc78-11e3-81ab-%012d", id), Body: body}
}

func account(login string) object {
	kind := "User"
	if strings.HasSuffix(login, "[bot]") {
		kind = "Bot"
	}
	return object{"login": login, "id": len(login), "type": kind}
}

func (s *Server) issue(repo string, number int, author, title, body string) object {
	return object{"id": 100000 + number, "number": number, "title": title, "body": body, "state": "open", "user": account(author),
		"html_url": s.page(fmt.Sprintf("/%s/issues/%d", repo, number)), "updated_at": time.Now().UTC().Format(time.RFC3339)}
}

func repository(repo string) object {
	owner, name, _ := strings.Cut(repo, "/")
	return object{"id": 1, "name": name, "full_name": repo, "owner": account(owner), "default_branch": "main"}
}

// Comment writes a comment on an issue, or on a pull request that was added, and gives its delivery.
func (s *Server) Comment(repo string, number int, user, body string) Delivery {
	return s.CommentEvent("created", s.Write(repo, number, user, body))
}

// CommentEvent is a delivery about a comment: created, edited or deleted.
func (s *Server) CommentEvent(action string, c Comment) Delivery {
	issue := s.issue(c.Repo, c.Number, "reporter", "Login fails", "It says 500.")
	for _, p := range s.Pulls() {
		if p.Repo == c.Repo && p.Number == c.Number {
			issue["pull_request"] = object{"url": s.page(fmt.Sprintf("/repos/%s/pulls/%d", c.Repo, c.Number))}
		}
	}
	s.mu.Lock()
	comment := s.comment(&c)
	s.mu.Unlock()
	comment["author_association"] = "CONTRIBUTOR"
	return s.Payload("issue_comment", object{"action": action, "issue": issue, "comment": comment, "repository": repository(c.Repo), "sender": account(c.Author)})
}

// Opened is a delivery about a new issue.
func (s *Server) Opened(repo string, number int, user, title, body string) Delivery {
	return s.Payload("issues", object{"action": "opened", "issue": s.issue(repo, number, user, title, body), "repository": repository(repo), "sender": account(user)})
}

// Labeled is a delivery about a label put on an issue.
func (s *Server) Labeled(repo string, number int, user, label string) Delivery {
	return s.Payload("issues", object{"action": "labeled", "label": object{"name": label}, "repository": repository(repo), "sender": account(user),
		"issue": s.issue(repo, number, "reporter", "Login fails", "It says 500.")})
}

// ReviewComment is a delivery about a comment on a line of a pull request.
func (s *Server) ReviewComment(p Pull, user, body string) Delivery {
	s.mu.Lock()
	s.nextID++
	id := s.nextID
	pull := s.pull(&p)
	s.mu.Unlock()
	pull["user"] = account("reporter")
	return s.Payload("pull_request_review_comment", object{"action": "created", "pull_request": pull, "repository": repository(p.Repo), "sender": account(user),
		"comment": object{"id": id, "body": body, "user": account(user), "path": "login.go", "line": 7, "diff_hunk": "@@ -1 +1 @@\n-old\n+new"}})
}
