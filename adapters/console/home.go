package console

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"reasonix/internal/chat"
)

const (
	listLimit  = 50
	maxOpen    = 50 // cards on the page of asks
	maxSettled = 20
)

// homeView is the first page: what can be asked for and what is going on.
type homeView struct {
	Form requestForm
	List listView
}

// healthView is fetched by itself: looking may take a moment.
type healthView struct {
	Items []chat.HealthItem
	Ill   int
}

func (d *Door) health(w http.ResponseWriter, r *http.Request, _ viewer) {
	h := healthView{Items: d.sees().Desk.Health(r.Context())}
	for _, item := range h.Items {
		if !item.OK {
			h.Ill++
		}
	}
	d.renderPart(w, r, "health", h)
}

// requestForm keeps what was typed when a request was refused.
type requestForm struct {
	Text    string
	Suggest bool // Text is the configured suggestion
	Nonce   string
	Outcome *outcome
}

// listView is the list of tasks under the chosen filter.
type listView struct {
	State   string
	Filters []filter
	Tasks   []chat.TaskView
	Problem string
}

type filter struct{ State, Label string }

var filters = []filter{{"", "All"}, {"parked", "Needs an answer"}, {"running", "Running"}, {"completed", "Done"}, {"failed", "Failed"}}

func (d *Door) home(w http.ResponseWriter, r *http.Request, v viewer) {
	form := requestForm{Text: d.settings.Suggest, Suggest: d.settings.Suggest != "", Nonce: d.nonce()}
	d.renderHome(w, r, v, http.StatusOK, form)
}

func (d *Door) renderHome(w http.ResponseWriter, r *http.Request, v viewer, status int, form requestForm) {
	h := homeView{Form: form, List: d.listTasks(r)}
	d.render(w, r, status, "home", d.framed(r, v, "Tasks", "tasks", h))
}

func (d *Door) taskList(w http.ResponseWriter, r *http.Request, _ viewer) {
	d.renderPart(w, r, "tasklist", d.listTasks(r))
}

func (d *Door) listTasks(r *http.Request) listView {
	l := listView{State: r.URL.Query().Get("state"), Filters: filters}
	if !slices.ContainsFunc(filters, func(f filter) bool { return f.State == l.State }) {
		l.State = ""
	}
	var err error
	l.Tasks, err = d.sees().Desk.Tasks(r.Context(), chat.TaskFilter{State: l.State, Limit: listLimit})
	if err != nil {
		l.Problem = "The tasks could not be read: " + err.Error() + ". They are shown again as soon as the host can read its state."
	}
	return l
}

// asksView is the page of open questions, newest first as the desk lists them.
type asksView struct {
	Open    []askCard
	More    int // open asks beyond those shown
	Settled []askCard
	Problem string
}

func (d *Door) asks(w http.ResponseWriter, r *http.Request, v viewer) {
	d.render(w, r, http.StatusOK, "asks", d.framed(r, v, "Asks", "asks", d.listAsks(r.Context())))
}

func (d *Door) askList(w http.ResponseWriter, r *http.Request, _ viewer) {
	d.renderPart(w, r, "asklist", d.listAsks(r.Context()))
}

func (d *Door) listAsks(ctx context.Context) asksView {
	all, err := d.sees().Desk.Asks(ctx, false)
	if err != nil {
		return asksView{Problem: "The asks could not be read: " + err.Error() + ". They are shown again as soon as the host can read its state."}
	}
	var v asksView
	for _, a := range all {
		c := d.card(a)
		c.TaskLink = true
		switch {
		case c.Open && len(v.Open) >= maxOpen:
			v.More++
		case c.Open:
			v.Open = append(v.Open, c)
		case len(v.Settled) < maxSettled:
			v.Settled = append(v.Settled, c)
		}
	}
	return v
}

func (d *Door) askCount(w http.ResponseWriter, r *http.Request, _ viewer) {
	open, err := d.sees().Desk.Asks(r.Context(), true)
	if err != nil {
		w.WriteHeader(http.StatusNoContent) // keep what is shown
		return
	}
	d.renderPart(w, r, "askcount", len(open))
}

func (d *Door) nothing(w http.ResponseWriter, r *http.Request, _ viewer) {
	d.refuse(w, r, http.StatusNotFound, "There is no such page. The list of tasks has a link to every one.")
}

// lost answers for a task or ask that cannot be read.
func (d *Door) lost(w http.ResponseWriter, r *http.Request, what string, err error) {
	if errors.Is(err, chat.ErrNotFound) {
		d.refuse(w, r, http.StatusNotFound, "There is no "+what+" with this id. The list of tasks has a link to every one.")
		return
	}
	d.sees().Log.ErrorContext(r.Context(), "console read", "path", r.URL.Path, "err", err)
	d.refuse(w, r, http.StatusServiceUnavailable, "The host could not read its state: "+err.Error()+". Reload in a moment.")
}
