package slackd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

type reply map[string]any

func fail(code string) reply { return reply{"ok": false, "error": code} }

func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	method := strings.TrimPrefix(r.URL.Path, "/api/")
	if err := r.ParseForm(); err != nil {
		http.Error(w, "bad form", http.StatusBadRequest)
		return
	}
	form := r.Form
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		form = jsonForm(r.Body)
	}
	s.mu.Lock()
	s.calls[method]++
	var fault Fault
	if list := s.faults[method]; len(list) > 0 {
		fault, s.faults[method] = list[0], list[1:]
	}
	s.mu.Unlock()
	if s.faulted(w, fault) {
		return
	}
	answer := s.call(method, r, form)
	if fault.DropAfter {
		drop(w)
		return
	}
	if s.Scopes != "" {
		w.Header().Set("X-OAuth-Scopes", s.Scopes)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *Server) faulted(w http.ResponseWriter, f Fault) bool {
	switch {
	case f.DropBefore:
		drop(w)
	case f.RetryAfter > 0:
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
		w.WriteHeader(http.StatusTooManyRequests)
	case f.Status > 0:
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, "<html>trouble</html>")
	case f.Error != "":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(fail(f.Error))
	default:
		return false
	}
	return true
}

func drop(w http.ResponseWriter) {
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = c.Close()
	}
}

// jsonForm reads a JSON body as the form it stands for; nested values stay JSON.
func jsonForm(r io.Reader) url.Values {
	var m map[string]json.RawMessage
	_ = json.NewDecoder(r).Decode(&m)
	form := url.Values{}
	for k, v := range m {
		var text string
		if json.Unmarshal(v, &text) != nil {
			text = string(v)
		}
		form.Set(k, text)
	}
	return form
}

func (s *Server) call(method string, r *http.Request, form url.Values) reply {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token == "" {
		token = form.Get("token")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if token == "" {
		return fail("not_authed")
	}
	if token != s.Token {
		return fail("invalid_auth")
	}
	switch method {
	case "auth.test":
		return reply{"ok": true, "url": "https://loop.slack.com/", "team": "Loop", "user": "reasonix", "team_id": s.Team, "user_id": s.BotUser, "bot_id": s.BotID}
	case "users.info":
		return reply{"ok": true, "user": reply{"id": form.Get("user"), "name": strings.ToLower(form.Get("user")), "team_id": s.Team}}
	case "chat.postMessage":
		return s.postMessage(form)
	case "chat.update":
		return s.update(form)
	case "chat.postEphemeral":
		return s.postEphemeral(form)
	case "conversations.replies", "conversations.history":
		return s.read(method, form)
	case "files.getUploadURLExternal":
		return s.uploadURL(form)
	case "files.completeUploadExternal":
		return s.completeUpload(form)
	case "views.open":
		return s.openView(form)
	}
	return fail("unknown_method")
}

func (s *Server) postMessage(form url.Values) reply {
	if form.Get("channel") == "" || form.Get("channel") == "C_GONE" {
		return fail("channel_not_found")
	}
	blocks, problem := checkedBlocks(form)
	if problem != "" {
		return fail(problem)
	}
	if form.Get("text") == "" && len(blocks) == 0 {
		return fail("no_text")
	}
	p := &Post{Channel: form.Get("channel"), TS: s.stamp(), ThreadTS: form.Get("thread_ts"), User: s.BotUser, BotID: s.BotID, Text: form.Get("text"), Blocks: blocks}
	if m := form.Get("metadata"); m != "" {
		p.Metadata = json.RawMessage(m)
	}
	s.posts = append(s.posts, p)
	return reply{"ok": true, "channel": p.Channel, "ts": p.TS, "message": p.json(true)}
}

func (s *Server) update(form url.Values) reply {
	blocks, problem := checkedBlocks(form)
	if problem != "" {
		return fail(problem)
	}
	if utf8.RuneCountInString(form.Get("text")) > 4000 {
		return fail("msg_too_long")
	}
	for _, p := range s.posts {
		if p.Channel != form.Get("channel") || p.TS != form.Get("ts") {
			continue
		}
		if p.BotID != s.BotID {
			return fail("cant_update_message")
		}
		p.Text, p.Blocks, p.Metadata = form.Get("text"), blocks, nil
		if m := form.Get("metadata"); m != "" {
			p.Metadata = json.RawMessage(m)
		}
		p.Edits++
		return reply{"ok": true, "channel": p.Channel, "ts": p.TS, "text": p.Text}
	}
	return fail("message_not_found")
}

func (s *Server) postEphemeral(form url.Values) reply {
	if form.Get("user") == "" {
		return fail("no_user")
	}
	s.whispers = append(s.whispers, Whisper{form.Get("channel"), form.Get("thread_ts"), form.Get("user"), form.Get("text")})
	return reply{"ok": true, "message_ts": s.stamp()}
}

// read answers newest first for a channel and oldest first for a thread, as Slack does, in pages.
func (s *Server) read(method string, form url.Values) reply {
	thread := method == "conversations.replies"
	var hits []*Post
	for _, p := range s.posts {
		inPlace := p.Channel == form.Get("channel")
		if thread {
			inPlace = inPlace && (p.TS == form.Get("ts") || p.ThreadTS == form.Get("ts"))
		} else {
			inPlace = inPlace && (p.ThreadTS == "" || p.ThreadTS == p.TS)
		}
		root := thread && p.TS == form.Get("ts")
		early := form.Get("oldest") != "" && p.TS < form.Get("oldest") && !root
		late := form.Get("latest") != "" && p.TS > form.Get("latest") && !root
		if inPlace && !early && !late {
			hits = append(hits, p)
		}
	}
	if thread && len(hits) == 0 {
		return fail("thread_not_found")
	}
	sort.SliceStable(hits, func(i, j int) bool {
		if thread {
			return hits[i].TS < hits[j].TS
		}
		return hits[i].TS > hits[j].TS
	})
	limit, _ := strconv.Atoi(form.Get("limit"))
	if limit <= 0 {
		limit = 100
	}
	from, _ := strconv.Atoi(form.Get("cursor"))
	from = min(from, len(hits))
	to := min(from+limit, len(hits))
	msgs := []reply{}
	for _, p := range hits[from:to] {
		msgs = append(msgs, p.json(isTrue(form.Get("include_all_metadata"))))
	}
	out := reply{"ok": true, "messages": msgs, "has_more": to < len(hits)}
	if to < len(hits) {
		out["response_metadata"] = reply{"next_cursor": strconv.Itoa(to)}
	}
	return out
}

func isTrue(s string) bool { return s == "1" || s == "true" }

func (p *Post) json(metadata bool) reply {
	m := reply{"type": "message", "ts": p.TS, "text": p.Text, "user": p.User}
	if p.ThreadTS != "" {
		m["thread_ts"] = p.ThreadTS
	}
	if p.BotID != "" {
		m["bot_id"] = p.BotID
	}
	if metadata && len(p.Metadata) > 0 {
		m["metadata"] = p.Metadata
	}
	return m
}

func (s *Server) openView(form url.Values) reply {
	trigger := form.Get("trigger_id")
	if !s.triggers[trigger] {
		return fail("invalid_trigger_id")
	}
	delete(s.triggers, trigger)
	var v struct {
		CallbackID      string           `json:"callback_id"`
		PrivateMetadata string           `json:"private_metadata"`
		Blocks          []map[string]any `json:"blocks"`
		Title           struct{ Text string }
	}
	if json.Unmarshal([]byte(form.Get("view")), &v) != nil || utf8.RuneCountInString(v.PrivateMetadata) > 3000 || utf8.RuneCountInString(v.Title.Text) > 24 {
		return fail("invalid_arguments")
	}
	view := View{ID: fmt.Sprintf("V%04d", len(s.views)+1), TriggerID: trigger, CallbackID: v.CallbackID, PrivateMetadata: v.PrivateMetadata, Raw: json.RawMessage(form.Get("view"))}
	s.views = append(s.views, view)
	return reply{"ok": true, "view": reply{"id": view.ID, "type": "modal", "callback_id": view.CallbackID, "hash": "h" + view.ID}}
}
