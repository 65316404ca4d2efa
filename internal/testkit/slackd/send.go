package slackd

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
	"strconv"
	"testing"
	"time"
)

// Delivery is a request as Slack would send it; it can be sent again as it is.
type Delivery struct {
	ContentType string
	Body        []byte
	Retry       int       // number of the retry, 0 for the first try
	At          time.Time // of the signature; zero: now
	Secret      string    // signs with another secret than the app's
	Unsigned    bool
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
	client := &http.Client{Timeout: 10 * time.Second}
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
	req, err := http.NewRequest(http.MethodPost, hook, bytes.NewReader(d.Body))
	if err != nil {
		return nil, err
	}
	at := d.At
	if at.IsZero() {
		at = s.Now()
	}
	secret := d.Secret
	if secret == "" {
		secret = s.SigningSecret
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(mac, "v0:%s:%s", stamp, d.Body)
	req.Header.Set("Content-Type", d.ContentType)
	if !d.Unsigned {
		req.Header.Set("X-Slack-Request-Timestamp", stamp)
		req.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	}
	if d.Retry > 0 {
		req.Header.Set("X-Slack-Retry-Num", strconv.Itoa(d.Retry))
		req.Header.Set("X-Slack-Retry-Reason", "http_timeout")
	}
	return req, nil
}

// JSON is a delivery of the Events API with this body.
func JSON(body []byte) Delivery { return Delivery{ContentType: "application/json", Body: body} }

// Form is a delivery of a command or an interaction.
func Form(v url.Values) Delivery {
	return Delivery{ContentType: "application/x-www-form-urlencoded", Body: []byte(v.Encode())}
}

// Event wraps an inner event; every call gives an event id of its own.
func (s *Server) Event(inner map[string]any) Delivery {
	s.mu.Lock()
	id := s.stamp()
	s.mu.Unlock()
	body, _ := json.Marshal(map[string]any{"token": "x", "team_id": s.Team, "api_app_id": s.AppID, "type": "event_callback",
		"event_id": "Ev" + id, "event_time": s.Now().Unix(), "event": inner,
		"authorizations": []any{map[string]any{"team_id": s.Team, "user_id": s.BotUser, "is_bot": true}}})
	return JSON(body)
}

// Say records a message of a person and returns its inner event; thread is empty for a new one.
func (s *Server) Say(channel, thread, user, text string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Post{Channel: channel, TS: s.stamp(), ThreadTS: thread, User: user, Text: text}
	s.posts = append(s.posts, p)
	m := map[string]any{"type": "message", "channel": channel, "channel_type": "channel", "user": user, "text": text, "ts": p.TS, "event_ts": p.TS, "team": s.Team}
	if channel[0] == 'D' {
		m["channel_type"] = "im"
	}
	if thread != "" {
		m["thread_ts"] = thread
		for _, q := range s.posts {
			if q.Channel == channel && q.TS == thread {
				m["parent_user_id"] = q.User
			}
		}
	}
	return m
}

// Mention is a message that calls the bot; AsMention gives its second form.
func (s *Server) Mention(channel, thread, user, text string) map[string]any {
	return s.Say(channel, thread, user, "<@"+s.BotUser+"> "+text)
}

// AsMention is the same message as Slack shows it by the app_mention event.
func AsMention(m map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	out["type"] = "app_mention"
	delete(out, "channel_type")
	delete(out, "parent_user_id")
	return out
}

// Command is a slash command.
func (s *Server) Command(channel, user, command, text string) Delivery {
	return Form(url.Values{"token": {"x"}, "team_id": {s.Team}, "team_domain": {"loop"}, "channel_id": {channel}, "channel_name": {"general"},
		"user_id": {user}, "user_name": {user}, "command": {command}, "text": {text}, "api_app_id": {s.AppID},
		"response_url": {s.http.URL + "/response/" + user}, "trigger_id": {s.trigger()}})
}

func (s *Server) trigger() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := "trigger." + s.stamp()
	s.triggers[id] = true
	return id
}

// Click is a press of the button with this label on a post.
func (s *Server) Click(t testing.TB, p Post, label, user string) Delivery {
	t.Helper()
	for _, b := range p.Buttons() {
		if b.Label == label {
			return s.ClickButton(p, b, user)
		}
	}
	t.Fatalf("the post has no button %q: %v", label, p.Buttons())
	return Delivery{}
}

// ClickButton is a press of a button that once stood on a post.
func (s *Server) ClickButton(p Post, b Button, user string) Delivery {
	trigger := s.trigger()
	s.mu.Lock()
	at := s.stamp()
	s.mu.Unlock()
	message := map[string]any{"type": "message", "ts": p.TS, "user": s.BotUser, "bot_id": s.BotID, "text": p.Text}
	container := map[string]any{"type": "message", "message_ts": p.TS, "channel_id": p.Channel, "is_ephemeral": false}
	if p.ThreadTS != "" {
		message["thread_ts"], container["thread_ts"] = p.ThreadTS, p.ThreadTS
	}
	payload, _ := json.Marshal(map[string]any{"type": "block_actions", "team": map[string]any{"id": s.Team, "domain": "loop"},
		"user": map[string]any{"id": user, "username": user, "team_id": s.Team}, "api_app_id": s.AppID, "token": "x", "container": container,
		"trigger_id": trigger, "channel": map[string]any{"id": p.Channel, "name": "general"}, "message": message,
		"response_url": s.http.URL + "/response/" + user,
		"actions": []any{map[string]any{"action_id": b.ActionID, "block_id": b.BlockID, "type": "button", "value": b.Value, "action_ts": at,
			"text": map[string]any{"type": "plain_text", "text": b.Label}}}})
	return Form(url.Values{"payload": {string(payload)}})
}

// Submit sends an opened modal with this text in its first field.
func (s *Server) Submit(v View, user, text string) Delivery {
	block, action := v.field()
	payload, _ := json.Marshal(map[string]any{"type": "view_submission", "team": map[string]any{"id": s.Team, "domain": "loop"},
		"user": map[string]any{"id": user, "username": user}, "api_app_id": s.AppID, "token": "x", "trigger_id": s.trigger(),
		"view": map[string]any{"id": v.ID, "type": "modal", "callback_id": v.CallbackID, "private_metadata": v.PrivateMetadata, "hash": "h" + v.ID,
			"state": map[string]any{"values": map[string]any{block: map[string]any{action: map[string]any{"type": "plain_text_input", "value": text}}}}}})
	return Form(url.Values{"payload": {string(payload)}})
}

// field names the view's first input.
func (v View) field() (block, action string) {
	var raw struct {
		Blocks []struct {
			Type    string `json:"type"`
			BlockID string `json:"block_id"`
			Element struct {
				ActionID string `json:"action_id"`
			} `json:"element"`
		} `json:"blocks"`
	}
	_ = json.Unmarshal(v.Raw, &raw)
	for _, b := range raw.Blocks {
		if b.Type == "input" {
			return b.BlockID, b.Element.ActionID
		}
	}
	return "", ""
}

// Forge posts as another app, with this metadata.
func (s *Server) Forge(channel, user, bot, metadata string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posts = append(s.posts, &Post{Channel: channel, TS: s.stamp(), User: user, BotID: bot, Text: "forged", Metadata: json.RawMessage(metadata)})
}
