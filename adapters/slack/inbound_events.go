package slack

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"reasonix/internal/chat"
)

// envelope is the outer part of an Events API delivery.
type envelope struct {
	Type           string `json:"type"`
	Challenge      string `json:"challenge"`
	TeamID         string `json:"team_id"`
	APIAppID       string `json:"api_app_id"`
	EventID        string `json:"event_id"`
	Authorizations []struct {
		UserID string `json:"user_id"`
		IsBot  bool   `json:"is_bot"`
	} `json:"authorizations"`
	Event json.RawMessage `json:"event"`
}

// message is the inner part of app_mention and of every message event that can matter.
type message struct {
	Type         string `json:"type"`
	Subtype      string `json:"subtype"`
	Hidden       bool   `json:"hidden"`
	User         string `json:"user"`
	UserTeam     string `json:"user_team"`
	SourceTeam   string `json:"source_team"`
	BotID        string `json:"bot_id"`
	AppID        string `json:"app_id"`
	Username     string `json:"username"`
	Text         string `json:"text"`
	TS           string `json:"ts"`
	ThreadTS     string `json:"thread_ts"`
	ParentUserID string `json:"parent_user_id"`
	Channel      string `json:"channel"`
	ChannelType  string `json:"channel_type"`
	Files        []file `json:"files"`
}

func (in *inbound) events(w http.ResponseWriter, r *http.Request, body []byte) error {
	var env envelope
	if err := json.Unmarshal(body, &env); err != nil {
		return &refusal{http.StatusBadRequest, "body is no JSON object"}
	}
	switch env.Type {
	case "url_verification":
		return respondJSON(w, map[string]string{"challenge": env.Challenge})
	case "app_rate_limited":
		in.host.Log.Warn("slack limits the events of this app; some are lost", "connection", in.name)
		return in.ignore(w, "app_rate_limited")
	case "event_callback":
	default:
		return in.ignore(w, "unknown delivery type")
	}
	var m message
	if err := json.Unmarshal(env.Event, &m); err != nil {
		return &refusal{http.StatusBadRequest, "event is no JSON object"}
	}
	if in.cfg.Team != "" && env.TeamID != in.cfg.Team {
		return in.ignore(w, "another workspace")
	}
	if m.Type != "app_mention" && m.Type != "message" {
		return in.ignore(w, "event type without meaning here")
	}
	self, err := in.whoAmI(r.Context(), env)
	if err != nil {
		return err
	}
	if reason := in.unheard(env, m, self); reason != "" {
		return in.ignore(w, reason)
	}
	return in.takeMessage(w, r, env, m, self)
}

// whoAmI prefers Slack's own answer and falls back to what the envelope says, so that a slow API does not stop events.
func (in *inbound) whoAmI(ctx context.Context, env envelope) (identity, error) {
	ctx, cancel := context.WithTimeout(ctx, acceptLimit/2)
	defer cancel()
	self, err := in.identity(ctx)
	if err == nil {
		return self, nil
	}
	for _, a := range env.Authorizations {
		if a.IsBot {
			return identity{Team: env.TeamID, UserID: a.UserID}, nil
		}
	}
	return identity{}, err
}

// unheard tells why a message has no effect, or returns nothing.
func (in *inbound) unheard(env envelope, m message, self identity) string {
	switch {
	case m.Hidden, m.Subtype == "message_changed":
		return "changed or hidden message"
	case m.Channel == "" || m.TS == "":
		return "message without place"
	case m.User != "" && m.User == self.UserID, m.BotID != "" && m.BotID == self.BotID, m.AppID != "" && m.AppID == env.APIAppID:
		return "own message"
	}
	switch m.Subtype {
	case "", "file_share", "thread_broadcast", "bot_message", "me_message":
	default:
		return "message subtype " + clip(m.Subtype, 40)
	}
	thread := m.Channel + "\x1f" + rootOf(m)
	if m.BotID == "" {
		if m.User == "" {
			return "message without author"
		}
		in.loops.person(thread)
		return ""
	}
	if !in.loops.bot(thread, m.TS, in.cfg.BotMessageLimit) {
		return "message of another bot"
	}
	return ""
}

func rootOf(m message) string {
	if m.ThreadTS != "" {
		return m.ThreadTS
	}
	return m.TS
}

func (in *inbound) takeMessage(w http.ResponseWriter, r *http.Request, env envelope, m message, self identity) error {
	thread, err := in.conversation(r.Context(), m, self)
	if err != nil {
		return err
	}
	text, mentioned := plainText(m.Text, self.UserID)
	mentioned = mentioned || m.Type == "app_mention"
	e := chat.Event{
		Key:   strings.Join([]string{"slack", in.name, env.TeamID, m.Channel, m.TS}, ":"),
		On:    "slack.message",
		Actor: actorOf(env, m),
		Place: chat.Place{Connection: in.name, Kind: "slack", Channel: m.Channel, Thread: thread},
		Text:  text,
	}
	if mentioned {
		e.On = "slack.mention"
	}
	readVerb(&e, m, mentioned)
	e.Context = in.sources(r.Context(), m)
	out, err := in.accept(r.Context(), e)
	if err != nil {
		return err
	}
	acknowledge(w)
	in.tell(r.Context(), telling{channel: m.Channel, thread: m.ThreadTS, user: m.User, text: out.Text, bot: e.Actor.Bot})
	return nil
}

func actorOf(env envelope, m message) chat.Actor {
	a := chat.Actor{Kind: "slack", ID: m.User, Team: env.TeamID, Bot: m.BotID != "", Name: m.Username}
	if m.UserTeam != "" {
		a.Team = m.UserTeam
	}
	if a.ID == "" {
		a.ID = m.BotID
	}
	return a
}

// readVerb reads command words where they are meant: in a mention or a direct message all of them; in a thread only those
// that act on something there; a channel's ordinary talk holds none.
func readVerb(e *chat.Event, m message, mentioned bool) {
	verb, text, press := chat.ParseVerb(e.Text)
	addressed := mentioned || m.ChannelType == "im"
	inThread := m.ThreadTS != "" && (verb == chat.VerbStop || verb == chat.VerbPress || verb == chat.VerbPosture)
	if addressed || inThread {
		e.Verb, e.Text, e.Press = verb, text, press
	}
}

func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
