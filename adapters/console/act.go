package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"reasonix/internal/chat"
)

const (
	maxText  = 32000 // characters of a request, reply or answer
	maxNonce = 64
)

// key names what a form means. It holds the person, so that nobody can use up another's key.
func (d *Door) key(v viewer, verb, nonce string) string {
	return strings.Join([]string{Kind, d.name, v.actor().ID, verb, nonce}, ":")
}

func goodNonce(s string) bool {
	if s == "" || len(s) > maxNonce {
		return false
	}
	return strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

// room is a new conversation on this console.
func (d *Door) room(id string) chat.Place {
	return chat.Place{Connection: d.name, Kind: Kind, Channel: id}
}

func (d *Door) event(v viewer, verb chat.Verb, nonce string, at chat.Place) chat.Event {
	word := string(verb)
	if verb == chat.VerbWork {
		word = "work"
	}
	return chat.Event{Key: d.key(v, word, nonce), On: Kind, Actor: v.actor(), Place: at, Verb: verb, Received: d.now()}
}

// form reads the posted form and its nonce; it has answered already when ok is false.
func (d *Door) form(w http.ResponseWriter, r *http.Request) (f url.Values, nonce string, ok bool) {
	var tooLarge *http.MaxBytesError
	if err := r.ParseForm(); errors.As(err, &tooLarge) {
		d.refuse(w, r, http.StatusRequestEntityTooLarge, "This is too large: at most 32,000 characters. Nothing was sent; shorten it and send it again.")
		return nil, "", false
	} else if err != nil {
		d.refuse(w, r, http.StatusBadRequest, "The form could not be read. Nothing was sent; reload the page and send it again.")
		return nil, "", false
	}
	nonce = r.PostForm.Get("nonce")
	if !goodNonce(nonce) {
		d.refuse(w, r, http.StatusBadRequest, "The form is incomplete. Nothing was sent; reload the page and send it again.")
		return nil, "", false
	}
	return r.PostForm, nonce, true
}

func textProblem(text string) string {
	switch {
	case strings.TrimSpace(text) == "":
		return "Write something first."
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "The text holds bytes that are no text. Paste it as plain text."
	case utf8.RuneCountInString(text) > maxText:
		return "The text is too long: at most 32,000 characters. Put the rest into the repository and name the file."
	}
	return ""
}

// accept hands an event to the host and says what came of it. An error means that nothing happened.
func (d *Door) accept(r *http.Request, e chat.Event) (chat.Outcome, *outcome, bool) {
	got, err := d.sees().Sink.Accept(r.Context(), e)
	if err != nil {
		d.sees().Log.ErrorContext(r.Context(), "console accept", "verb", string(e.Verb), "err", err)
		return got, &outcome{"bad", "Nothing happened: " + strings.TrimRight(err.Error(), ".") + ". Press again in a moment; it counts once."}, false
	}
	return got, told(got), true
}

var tones = map[chat.OutcomeKind]outcome{
	chat.OutcomeOpened:    {"good", "The task is queued."},
	chat.OutcomeSteered:   {"good", "Sent. The model reads it at its next turn."},
	chat.OutcomeCancelled: {"good", "Stopping."},
	chat.OutcomeAnswered:  {"good", "Your answer counts. The task goes on."},
	chat.OutcomeRefused:   {"bad", "This was refused."},
	chat.OutcomeDuplicate: {"note", "This was sent before and counted once."},
	chat.OutcomeIgnored:   {"note", "This had no effect."},
	chat.OutcomeInfo:      {"note", "Noted."},
}

func told(o chat.Outcome) *outcome {
	t, ok := tones[o.Kind]
	if !ok {
		t = outcome{"note", string(o.Kind)}
	}
	if o.Text != "" {
		t.Text = o.Text
	}
	return &t
}

// request opens a task in a room of its own. The room follows from the nonce, so that a second submit is the same request.
func (d *Door) request(w http.ResponseWriter, r *http.Request, v viewer) {
	f, nonce, ok := d.form(w, r)
	if !ok {
		return
	}
	form := requestForm{Text: f.Get("text"), Nonce: nonce}
	if form.Text == d.settings.Suggest {
		form.Suggest = form.Text != ""
	}
	if p := textProblem(form.Text); p != "" {
		form.Outcome = &outcome{"bad", p}
		d.requestAnswer(w, r, v, form, "")
		return
	}
	e := d.event(v, chat.VerbWork, nonce, d.room("room-"+digestOf(v.actor().ID, nonce)))
	e.Text = strings.TrimSpace(form.Text)
	got, out, done := d.accept(r, e)
	form.Outcome = out
	if done {
		form.Nonce = d.nonce() // after an error the same nonce is tried again
	}
	d.requestAnswer(w, r, v, form, got.TaskID)
}

func (d *Door) requestAnswer(w http.ResponseWriter, r *http.Request, v viewer, form requestForm, taskID string) {
	hx := r.Header.Get("HX-Request") != ""
	to := "/tasks/" + url.PathEscape(taskID)
	switch {
	case taskID != "" && hx:
		w.Header().Set("HX-Redirect", to)
		w.WriteHeader(http.StatusOK)
	case taskID != "":
		http.Redirect(w, r, to, http.StatusSeeOther)
	case hx:
		d.renderPart(w, r, "requestform", form)
	default:
		d.renderHome(w, r, v, http.StatusOK, form)
	}
}

// act does one thing to a task and shows the outcome in the named slot of its page.
func (d *Door) act(w http.ResponseWriter, r *http.Request, v viewer, fill func(url.Values, chat.TaskView, string) (chat.Event, string)) {
	f, nonce, ok := d.form(w, r)
	if !ok {
		return
	}
	t, err := d.sees().Desk.Task(r.Context(), r.PathValue("id"))
	if err != nil {
		d.lost(w, r, "task", err)
		return
	}
	a := action{Nonce: nonce}
	e, problem := fill(f, t, nonce)
	if problem != "" {
		a.Outcome = &outcome{"bad", problem}
		a.Text = f.Get("text")
		d.actAnswer(w, r, v, t, a)
		return
	}
	got, out, done := d.accept(r, e)
	a.Outcome = out
	if got.TaskID != "" && got.TaskID != t.ID {
		a.Next = got.TaskID
	}
	if done {
		a.Nonce = d.nonce()
	} else {
		a.Text = f.Get("text")
	}
	d.actAnswer(w, r, v, t, a)
}

func (d *Door) actAnswer(w http.ResponseWriter, r *http.Request, v viewer, t chat.TaskView, a action) {
	part := r.PathValue("id")
	a.Part, _ = strings.CutPrefix(r.URL.Path, "/tasks/"+part+"/")
	a.Task = t
	if r.Header.Get("HX-Request") != "" {
		d.renderPart(w, r, a.Part+"form", a)
		return
	}
	d.renderTask(w, r, v, t.ID, http.StatusOK, taskExtras{Actions: map[string]action{a.Part: a}})
}

// action is the state of one form on a task's page.
type action struct {
	Part    string // reply, stop, posture
	Task    chat.TaskView
	Nonce   string
	Text    string
	Next    string // a task that this opened
	Outcome *outcome
}

// Ended tells the reply form what a reply means now.
func (a action) Ended() bool { return ended(a.Task.State) }

func (d *Door) reply(w http.ResponseWriter, r *http.Request, v viewer) {
	d.act(w, r, v, func(f url.Values, t chat.TaskView, nonce string) (chat.Event, string) {
		if p := textProblem(f.Get("text")); p != "" {
			return chat.Event{}, p
		}
		return d.said(v, t.Place, nonce, f.Get("text")), ""
	})
}

// said is text in a conversation; the explicit command words mean here what they mean at every door.
func (d *Door) said(v viewer, at chat.Place, nonce, text string) chat.Event {
	verb, rest, press := chat.ParseVerb(text)
	e := d.event(v, verb, nonce, at)
	e.Text, e.Press = rest, press
	return e
}

func (d *Door) stop(w http.ResponseWriter, r *http.Request, v viewer) {
	d.act(w, r, v, func(_ url.Values, t chat.TaskView, nonce string) (chat.Event, string) {
		return d.event(v, chat.VerbStop, nonce, t.Place), ""
	})
}

func (d *Door) posture(w http.ResponseWriter, r *http.Request, v viewer) {
	d.act(w, r, v, func(f url.Values, t chat.TaskView, nonce string) (chat.Event, string) {
		p := f.Get("posture")
		if !goodPosture(p) {
			return chat.Event{}, "Choose ask, auto or yolo."
		}
		e := d.event(v, chat.VerbPosture, nonce, t.Place)
		e.Text = p
		return e, ""
	})
}

func goodPosture(p string) bool { return p == "ask" || p == "auto" || p == "yolo" }

// press answers an ask. A refused press changes nothing: the card comes back with the reason and live buttons.
func (d *Door) press(w http.ResponseWriter, r *http.Request, v viewer) {
	f, nonce, ok := d.form(w, r)
	if !ok {
		return
	}
	a, err := d.findAsk(r, r.PathValue("id"), f.Get("task"))
	if err != nil {
		d.lost(w, r, "ask", err)
		return
	}
	out, next := d.judgePress(r, v, a, f, nonce)
	if fresh, err := d.findAsk(r, a.ID, a.TaskID); err == nil {
		a = fresh
	}
	c := d.card(a)
	c.Outcome, c.Keep = out, false
	c.TaskLink = f.Get("from") == "asks"
	if next != "" {
		c.Nonce = next
	}
	if r.Header.Get("HX-Request") != "" {
		d.renderPart(w, r, "askcard", c)
		return
	}
	d.renderTask(w, r, v, a.TaskID, http.StatusOK, taskExtras{Pressed: &c})
}

// judgePress sends the press on when it can mean what it says; next is the nonce to use again after an error.
func (d *Door) judgePress(r *http.Request, v viewer, a chat.AskView, f url.Values, nonce string) (out *outcome, next string) {
	choice := f.Get("choice")
	b, known := offers(a, choice)
	if !known && a.State == "open" {
		return &outcome{"bad", "This ask has no such answer. Use one of its buttons."}, ""
	}
	if f.Get("digest") != a.Digest {
		return &outcome{"bad", "The action changed since this page was drawn. Nothing was answered: read it again."}, ""
	}
	c := d.card(a)
	if c.MustRead && c.Consents(choice) && f.Get("read") == "" && c.Open {
		return &outcome{"bad", "Read to the end first: the text is longer than the box. Nothing was answered."}, ""
	}
	e := d.event(v, chat.VerbPress, nonce, d.place(r, a))
	e.Press = &chat.Press{AskID: a.ID, Choice: choice}
	if b.Input {
		e.Press.Text = strings.TrimSpace(f.Get("text"))
		if p := textProblem(f.Get("text")); p != "" && choice == "answer" {
			return &outcome{"bad", p}, nonce
		}
	}
	_, out, done := d.accept(r, e)
	if !done {
		return out, nonce
	}
	return out, ""
}

// place is where the ask's task lives; a press counts the same without it.
func (d *Door) place(r *http.Request, a chat.AskView) chat.Place {
	t, err := d.sees().Desk.Task(r.Context(), a.TaskID)
	if err != nil {
		return d.room("asks")
	}
	return t.Place
}

// findAsk looks in the given task first; without one it has to look through all asks.
func (d *Door) findAsk(r *http.Request, id, taskID string) (chat.AskView, error) {
	var all []chat.AskView
	if t, err := d.sees().Desk.Task(r.Context(), taskID); taskID != "" && err == nil {
		all = t.Asks
	} else if all, err = d.sees().Desk.Asks(r.Context(), false); err != nil {
		return chat.AskView{}, err
	}
	for _, a := range all {
		if a.ID == id {
			return a, nil
		}
	}
	return chat.AskView{}, chat.ErrNotFound
}
