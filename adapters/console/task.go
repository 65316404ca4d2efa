package console

import (
	"context"
	"net/http"
	"strings"
	"time"

	"reasonix/internal/chat"
)

// taskPage is everything on a task's page.
type taskPage struct {
	T       chat.TaskView
	Open    []askCard
	Settled []askCard
	Diff    diffView
	Ended   bool
	Rows    []feedRow // of an ended task; a live one streams them
	Room    []chat.TaskView
	Notices []notice
	Actions map[string]action
	Refresh bool // the part is fetched again, not drawn with its page
}

// taskExtras is what a form without script adds to the page that it returns.
type taskExtras struct {
	Actions map[string]action
	Pressed *askCard
}

func (d *Door) task(w http.ResponseWriter, r *http.Request, v viewer) {
	d.renderTask(w, r, v, r.PathValue("id"), http.StatusOK, taskExtras{})
}

func (d *Door) renderTask(w http.ResponseWriter, r *http.Request, v viewer, id string, status int, x taskExtras) {
	p, err := d.readTask(r.Context(), id)
	if err != nil {
		d.lost(w, r, "task", err)
		return
	}
	p.Actions = map[string]action{}
	for _, part := range []string{"reply", "stop", "posture"} {
		a, given := x.Actions[part]
		if !given {
			a = action{Part: part, Nonce: d.nonce()}
		}
		a.Task = p.T
		p.Actions[part] = a
	}
	if x.Pressed != nil {
		p.place(*x.Pressed)
	}
	if p.Ended {
		p.Rows = d.replay(r.Context(), id)
	}
	d.render(w, r, status, "task", d.framed(r, v, line(p.T.Title, 60), "tasks", p))
}

// place puts a pressed card where its unpressed self stands.
func (p *taskPage) place(c askCard) {
	for _, list := range [][]askCard{p.Open, p.Settled} {
		for i := range list {
			if list[i].ID == c.ID {
				list[i] = c
			}
		}
	}
}

func (d *Door) readTask(ctx context.Context, id string) (taskPage, error) {
	desk := d.sees().Desk
	t, err := desk.Task(ctx, id)
	if err != nil {
		return taskPage{}, err
	}
	p := taskPage{T: t, Ended: ended(t.State), Diff: readDiff(t.Diff), Notices: d.notices.of(t.Place.Key())}
	for _, a := range t.Asks {
		if c := d.card(a); c.Open {
			p.Open = append(p.Open, c)
		} else {
			p.Settled = append(p.Settled, c)
		}
	}
	room, err := desk.Tasks(ctx, chat.TaskFilter{Conversation: t.Place.Key(), Limit: 10})
	if err != nil {
		return p, nil // the neighbours are a convenience
	}
	for _, other := range room {
		if other.ID != t.ID {
			p.Room = append(p.Room, other)
		}
	}
	return p, nil
}

// panel is the part of the page that follows the task's state.
func (d *Door) panel(w http.ResponseWriter, r *http.Request, _ viewer) {
	p, err := d.readTask(r.Context(), r.PathValue("id"))
	if err != nil {
		d.lost(w, r, "task", err)
		return
	}
	p.Refresh = true
	p.Actions = map[string]action{}
	for _, part := range []string{"reply", "stop", "posture"} {
		p.Actions[part] = action{Part: part, Nonce: d.nonce(), Task: p.T}
	}
	d.renderPart(w, r, "panel", p)
}

func (d *Door) diffFile(w http.ResponseWriter, r *http.Request, _ viewer) {
	t, err := d.sees().Desk.Task(r.Context(), r.PathValue("id"))
	if err != nil {
		d.lost(w, r, "task", err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="changes.diff"`)
	_, _ = w.Write([]byte(t.Diff)) // the reader may be gone
}

const (
	replayWait = 3 * time.Second
	maxReplay  = 2000
)

// replay reads the whole feed of an ended task; it is bounded in time and length, and says so when it was cut.
func (d *Door) replay(ctx context.Context, id string) []feedRow {
	ctx, cancel := context.WithTimeout(ctx, replayWait)
	defer cancel()
	items, err := d.sees().Desk.Watch(ctx, id, 0)
	if err != nil {
		return []feedRow{row(chat.FeedItem{Kind: "note", Text: "The activity could not be read: " + err.Error()})}
	}
	var rows []feedRow
	for it := range items {
		if it.Seq == 0 {
			continue
		}
		if len(rows) == maxReplay {
			cancel()
			rows = append(rows, row(chat.FeedItem{Kind: "note", Text: "The rest is left out here; the JSON feed has all of it."}))
			break
		}
		rows = append(rows, row(it))
	}
	if ctx.Err() != nil && len(rows) < maxReplay {
		rows = append(rows, row(chat.FeedItem{Kind: "note", Text: "Reading took too long: reload for the rest."}))
	}
	return rows
}

// stamp is what a live page compares to know that its panel is out of date.
func stamp(t chat.TaskView) string {
	parts := []string{t.State, t.Updated.String(), t.Posture, t.Result, t.PullRequest}
	parts = append(parts, t.Trouble...)
	for _, a := range t.Asks {
		parts = append(parts, mark(a))
	}
	for _, f := range t.Controls {
		parts = append(parts, f.Label, f.Value)
	}
	return strings.Join(parts, "\x1f")
}
