package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"reasonix/internal/chat"
)

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the reader may be gone
}

func apiError(w http.ResponseWriter, status int, code, text string) {
	writeJSON(w, status, map[string]any{"error": map[string]string{"code": code, "message": text}})
}

func (d *Door) apiNothing(w http.ResponseWriter, _ *http.Request, _ viewer) {
	apiError(w, http.StatusNotFound, "not_found", "There is no such address; docs/console-api.md lists them.")
}

// apiRead answers for something that could not be read.
func (d *Door) apiRead(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, chat.ErrNotFound) {
		apiError(w, http.StatusNotFound, "not_found", "Nothing has this id.")
		return
	}
	d.sees().Log.ErrorContext(r.Context(), "console read", "path", r.URL.Path, "err", err)
	apiError(w, http.StatusServiceUnavailable, "unavailable", "The host could not read its state: "+err.Error()+". Try again.")
}

// readJSON decodes a body strictly; it has answered already when ok is false.
func readJSON(w http.ResponseWriter, r *http.Request, into any) bool {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		if _, more := dec.Token(); more != io.EOF {
			err = errors.New("more than one JSON value")
		}
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		apiError(w, http.StatusRequestEntityTooLarge, "too_large", "The body is larger than "+strconv.Itoa(maxBody)+" bytes.")
		return false
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		err = fmt.Errorf("%s may not be a %s", strings.ToLower(wrong.Field), wrong.Value)
	}
	if err != nil {
		apiError(w, http.StatusBadRequest, "bad_json", "The body cannot be read: "+err.Error())
		return false
	}
	return true
}

// apiSession exchanges a login code or the access token for a session token.
func (d *Door) apiSession(w http.ResponseWriter, r *http.Request) {
	var in struct{ Code, Token string }
	if !readJSON(w, r, &in) {
		return
	}
	token, problem, status := d.enter(r, in.Code, in.Token)
	if problem != "" {
		if status == http.StatusTooManyRequests {
			tooMany(w, attemptEvery)
		}
		apiError(w, status, "refused", problem)
		return
	}
	v, _ := d.sessionViewer(token)
	writeJSON(w, http.StatusOK, map[string]any{"token": token, "person": v.person.Name, "expires": v.expires.UTC()})
}

// apiLoginLink makes a browser link for the caller, never for anybody else.
func (d *Door) apiLoginLink(w http.ResponseWriter, _ *http.Request, v viewer) {
	link, err := d.LoginLink(v.person.Identities[Kind])
	if err != nil {
		apiError(w, http.StatusConflict, "refused", err.Error())
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"url": link, "expires": d.now().Add(codeLife).UTC()})
}

func (d *Door) apiMe(w http.ResponseWriter, _ *http.Request, v viewer) {
	writeJSON(w, http.StatusOK, map[string]any{
		"person": v.person.Name, "id": v.person.Identities[Kind], "role": v.person.Role, "notice": d.sees().Notice,
	})
}

func (d *Door) apiTasks(w http.ResponseWriter, r *http.Request, _ viewer) {
	q := r.URL.Query()
	f := chat.TaskFilter{State: q.Get("state"), Limit: listLimit}
	if room := q.Get("room"); room != "" {
		f.Conversation = d.room(room).Key()
	}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 500 {
			apiError(w, http.StatusBadRequest, "bad_limit", "limit is a number from 1 to 500.")
			return
		}
		f.Limit = n
	}
	tasks, err := d.sees().Desk.Tasks(r.Context(), f)
	if err != nil {
		d.apiRead(w, r, err)
		return
	}
	out := make([]taskJSON, 0, len(tasks))
	for _, t := range tasks {
		out = append(out, taskOf(t))
	}
	writeJSON(w, http.StatusOK, map[string]any{"tasks": out})
}

func (d *Door) apiTask(w http.ResponseWriter, r *http.Request, _ viewer) {
	t, err := d.sees().Desk.Task(r.Context(), r.PathValue("id"))
	if err != nil {
		d.apiRead(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, taskOf(t))
}

func (d *Door) apiAsks(w http.ResponseWriter, r *http.Request, _ viewer) {
	asks, err := d.sees().Desk.Asks(r.Context(), r.URL.Query().Get("all") == "")
	if err != nil {
		d.apiRead(w, r, err)
		return
	}
	out := make([]askJSON, 0, len(asks))
	for _, a := range asks {
		out = append(out, askOf(a))
	}
	writeJSON(w, http.StatusOK, map[string]any{"asks": out})
}

func (d *Door) apiHealth(w http.ResponseWriter, r *http.Request, _ viewer) {
	type itemJSON struct {
		Name string `json:"name"`
		OK   bool   `json:"ok"`
		Text string `json:"text"`
		Mend string `json:"mend,omitempty"`
	}
	out := []itemJSON{}
	for _, i := range d.sees().Desk.Health(r.Context()) {
		out = append(out, itemJSON(i))
	}
	writeJSON(w, http.StatusOK, map[string]any{"health": out})
}

// jsonFeed streams a feed as JSON for another front end.
type jsonFeed struct{ e events }

func (j jsonFeed) durable(items []chat.FeedItem) error {
	for _, it := range items {
		if err := j.put("item", it); err != nil {
			return err
		}
	}
	return nil
}

func (j jsonFeed) put(name string, it chat.FeedItem) error {
	b, err := json.Marshal(it)
	if err != nil {
		return err
	}
	return j.e.send(name, it.Seq, string(b))
}

func (j jsonFeed) live(it chat.FeedItem) error { return j.put("live", it) }
func (j jsonFeed) flush() error                { return nil }
func (j jsonFeed) changed() error              { return j.e.send("changed", 0, "{}") }
func (j jsonFeed) end() error                  { return j.e.send("end", 0, "{}") }

func (d *Door) apiFeed(w http.ResponseWriter, r *http.Request, v viewer) {
	after, err := position(r)
	if err != nil {
		apiError(w, http.StatusBadRequest, "bad_position", "after and Last-Event-ID are positions of the feed: numbers from 0.")
		return
	}
	id := r.PathValue("id")
	if _, err := d.sees().Desk.Task(r.Context(), id); err != nil {
		d.apiRead(w, r, err)
		return
	}
	ctx, cancel := d.whileSignedIn(r.Context(), v)
	defer cancel()
	e := openEvents(w)
	if err := d.follow(ctx, id, after, e, jsonFeed{e}); err != nil && ctx.Err() == nil {
		d.sees().Log.DebugContext(ctx, "console feed ended", "task", id, "err", err)
	}
}

// eventJSON is the body of POST /api/events.
type eventJSON struct {
	Type    string `json:"type"` // request, reply, press, stop, posture
	Key     string `json:"key"`  // the caller's idempotency key
	TaskID  string `json:"task_id"`
	Room    string `json:"room"` // of a request: another one in the same room follows up on it
	AskID   string `json:"ask_id"`
	Choice  string `json:"choice"`
	Digest  string `json:"digest"` // of the ask that was shown
	Text    string `json:"text"`
	Posture string `json:"posture"`
}

func (d *Door) apiEvents(w http.ResponseWriter, r *http.Request, v viewer) {
	var in eventJSON
	if !readJSON(w, r, &in) {
		return
	}
	if !goodNonce(in.Key) {
		apiError(w, http.StatusBadRequest, "bad_key", "key is needed: 1 to 64 characters of A-Z a-z 0-9 - _ . that name this event, so that sending it again changes nothing.")
		return
	}
	e, problem, err := d.apiEvent(r, v, in)
	if err != nil {
		d.apiRead(w, r, err)
		return
	}
	if problem != "" {
		apiError(w, http.StatusBadRequest, "bad_event", problem)
		return
	}
	got, err := d.sees().Sink.Accept(r.Context(), e)
	if err != nil {
		d.sees().Log.ErrorContext(r.Context(), "console accept", "verb", string(e.Verb), "err", err)
		apiError(w, http.StatusServiceUnavailable, "unavailable", "Nothing happened: "+err.Error()+". Send it again with the same key.")
		return
	}
	status := http.StatusOK
	if got.Kind == chat.OutcomeRefused {
		status = http.StatusForbidden
	}
	writeJSON(w, status, map[string]any{"outcome": got.Kind, "task_id": got.TaskID, "text": told(got).Text})
}

// apiEvent translates the body. problem is the caller's mistake, err a read that failed.
func (d *Door) apiEvent(r *http.Request, v viewer, in eventJSON) (e chat.Event, problem string, err error) {
	switch in.Type {
	case "request":
		if problem = textProblem(in.Text); problem != "" {
			return e, problem, nil
		}
		room := in.Room
		if room == "" {
			room = "room-" + digestOf(v.actor().ID, in.Key)
		}
		if !goodNonce(room) {
			return e, "room takes 1 to 64 characters of A-Z a-z 0-9 - _ .", nil
		}
		e = d.event(v, chat.VerbWork, in.Key, d.room(room))
		e.Text = strings.TrimSpace(in.Text)
		return e, "", nil
	case "press":
		return d.apiPress(r, v, in)
	case "reply", "stop", "posture":
		return d.apiToTask(r, v, in)
	}
	return e, "type is request, reply, press, stop or posture.", nil
}

func (d *Door) apiPress(r *http.Request, v viewer, in eventJSON) (e chat.Event, problem string, err error) {
	a, err := d.findAsk(r, in.AskID, in.TaskID)
	if err != nil {
		return e, "", err
	}
	if in.Digest != "" && in.Digest != a.Digest {
		return e, "The action is another than the one with this digest: read the ask again.", nil
	}
	if in.Choice == "" {
		return e, "choice is needed: one of the ask's buttons.", nil
	}
	if in.Text != "" {
		if problem = textProblem(in.Text); problem != "" {
			return e, problem, nil
		}
	}
	e = d.event(v, chat.VerbPress, in.Key, d.place(r, a))
	e.Press = &chat.Press{AskID: a.ID, Choice: in.Choice, Text: strings.TrimSpace(in.Text)}
	return e, "", nil
}

func (d *Door) apiToTask(r *http.Request, v viewer, in eventJSON) (e chat.Event, problem string, err error) {
	t, err := d.sees().Desk.Task(r.Context(), in.TaskID)
	if err != nil {
		return e, "", err
	}
	switch in.Type {
	case "stop":
		return d.event(v, chat.VerbStop, in.Key, t.Place), "", nil
	case "posture":
		if !goodPosture(in.Posture) {
			return e, "posture is ask, auto or yolo.", nil
		}
		e = d.event(v, chat.VerbPosture, in.Key, t.Place)
		e.Text = in.Posture
		return e, "", nil
	}
	if problem = textProblem(in.Text); problem != "" {
		return e, problem, nil
	}
	return d.said(v, t.Place, in.Key, in.Text), "", nil
}
