package slackd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

func (s *Server) uploadURL(form url.Values) reply {
	n, err := strconv.Atoi(form.Get("length"))
	if err != nil || n <= 0 || form.Get("filename") == "" {
		return fail("invalid_arguments")
	}
	id := fmt.Sprintf("F%04d", len(s.pending)+len(s.files)+1)
	s.pending[id] = &File{ID: id, Name: form.Get("filename")}
	return reply{"ok": true, "file_id": id, "upload_url": s.http.URL + "/upload/" + id}
}

func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, "/upload/")
	content, err := uploaded(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.pending[id]
	if err != nil || f == nil {
		http.Error(w, "no such upload", http.StatusBadRequest)
		return
	}
	f.Content = content
	_, _ = fmt.Fprintf(w, "OK - %d", len(content))
}

func uploaded(r *http.Request) (string, error) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		b, err := io.ReadAll(r.Body)
		return string(b), err
	}
	part, _, err := r.FormFile("file")
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(part)
	return string(b), err
}

func (s *Server) completeUpload(form url.Values) reply {
	var files []struct{ ID, Title string }
	if json.Unmarshal([]byte(form.Get("files")), &files) != nil || len(files) == 0 {
		return fail("invalid_arguments")
	}
	out := []reply{}
	for _, want := range files {
		f := s.pending[want.ID]
		if f == nil || f.Content == "" {
			return fail("file_not_found")
		}
		delete(s.pending, want.ID)
		f.Channel, f.ThreadTS = form.Get("channel_id"), form.Get("thread_ts")
		s.files = append(s.files, *f)
		if f.Channel != "" {
			s.posts = append(s.posts, &Post{Channel: f.Channel, TS: s.stamp(), ThreadTS: f.ThreadTS, User: s.BotUser, BotID: s.BotID, Files: []string{f.Name}})
		}
		out = append(out, reply{"id": f.ID, "title": want.Title})
	}
	return reply{"ok": true, "files": out}
}

// Share puts a file of a person at Slack and returns its private address.
func (s *Server) Share(name, content string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared[name] = content
	return s.http.URL + "/files/" + url.PathEscape(name)
}

// serveFile answers a missing token with the sign-in page, as Slack does.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok := s.shared[strings.TrimPrefix(r.URL.Path, "/files/")]
	if r.Header.Get("Authorization") != "Bearer "+s.Token || !ok {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!DOCTYPE html><title>Sign in</title>")
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, content)
}

// serveResponse is the response_url of a press.
func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ResponseType string `json:"response_type"`
		Text         string `json:"text"`
	}
	if json.NewDecoder(r.Body).Decode(&m) != nil || m.ResponseType != "ephemeral" {
		http.Error(w, "bad response", http.StatusBadRequest)
		return
	}
	user := strings.TrimPrefix(r.URL.Path, "/response/")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whispers = append(s.whispers, Whisper{User: user, Text: m.Text})
}
