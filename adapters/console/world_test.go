package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reasonix/internal/chat"
)

// world is a host in memory: it judges presses as the real one does, in few lines, and remembers every event.
type world struct {
	mu     sync.Mutex
	events []chat.Event
	done   map[string]chat.Outcome // by key
	tasks  []*chat.TaskView        // newest first
	feeds  map[string][]chat.FeedItem
	wake   chan struct{}
	votes  map[string][]string
	quorum int
	broken error // what Accept returns
	unread error // what the desk returns
	health []chat.HealthItem
	now    func() time.Time
	opened func(*chat.TaskView) // may fill a new task
}

func newWorld() *world {
	return &world{
		done: map[string]chat.Outcome{}, feeds: map[string][]chat.FeedItem{}, wake: make(chan struct{}),
		votes: map[string][]string{}, quorum: 1, now: time.Now, opened: func(*chat.TaskView) {},
	}
}

// change alters the world and wakes everybody who watches it.
func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.wake)
	w.wake = make(chan struct{})
}

func (w *world) say(id string, items ...chat.FeedItem) {
	w.change(func() {
		for _, it := range items {
			if it.Seq == 0 && it.Kind != "live" && it.ID != "live" {
				it.Seq = int64(len(w.feeds[id])) + 1
			}
			it.At = w.now()
			w.feeds[id] = append(w.feeds[id], it)
		}
	})
}

func (w *world) alter(id string, f func(*chat.TaskView)) {
	w.change(func() {
		t := w.find(id)
		f(t)
		t.Updated = w.now()
	})
}

func (w *world) find(id string) *chat.TaskView {
	for _, t := range w.tasks {
		if t.ID == id {
			return t
		}
	}
	return nil
}

func (w *world) Accept(_ context.Context, e chat.Event) (out chat.Outcome, err error) {
	w.change(func() {
		if w.broken != nil {
			err = w.broken
			return
		}
		w.events = append(w.events, e)
		if first, seen := w.done[e.Key]; seen {
			out = chat.Outcome{Kind: chat.OutcomeDuplicate, TaskID: first.TaskID}
			return
		}
		out = w.judge(e)
		w.done[e.Key] = out
	})
	return out, err
}

func (w *world) judge(e chat.Event) chat.Outcome {
	switch e.Verb {
	case chat.VerbPress:
		return w.press(e)
	case chat.VerbStop:
		for _, t := range w.tasks {
			if t.Place.Key() == e.Place.Key() && !ended(t.State) {
				t.State, t.Result = "cancelled", "Stopped by "+e.Actor.Name+"."
				return chat.Outcome{Kind: chat.OutcomeCancelled, TaskID: t.ID, Text: "Stopped."}
			}
		}
		return chat.Outcome{Kind: chat.OutcomeIgnored, Text: "Nothing runs here."}
	case chat.VerbPosture:
		return chat.Outcome{Kind: chat.OutcomeRefused, Text: "Only an administrator may change the posture. Ask one of them."}
	case chat.VerbWork:
		for _, t := range w.tasks {
			if t.Place.Key() == e.Place.Key() && !ended(t.State) {
				return chat.Outcome{Kind: chat.OutcomeSteered, TaskID: t.ID}
			}
		}
		return w.open(e)
	}
	return chat.Outcome{Kind: chat.OutcomeInfo, Text: "All is well."}
}

func (w *world) open(e chat.Event) chat.Outcome {
	if strings.HasPrefix(e.Text, "forbidden") {
		return chat.Outcome{Kind: chat.OutcomeRefused, Text: "No route takes this request. Add one with on = \"console\"."}
	}
	t := &chat.TaskView{
		ID: fmt.Sprintf("task_%d", len(w.tasks)+1), Title: line(e.Text, 80), Request: e.Text, State: "running", Requester: e.Actor.Name,
		Place: e.Place, Created: w.now(), Updated: w.now(), Posture: "ask", Mode: "goal",
	}
	w.opened(t)
	w.tasks = append([]*chat.TaskView{t}, w.tasks...)
	return chat.Outcome{Kind: chat.OutcomeOpened, TaskID: t.ID}
}

// approve is lead's consent by another door.
func (w *world) approve() {
	w.change(func() {
		w.press(chat.Event{Actor: chat.Actor{Name: "lead"}, Press: &chat.Press{AskID: askID, Choice: "allow"}})
	})
}

func (w *world) press(e chat.Event) chat.Outcome {
	for _, t := range w.tasks {
		for i := range t.Asks {
			a := &t.Asks[i]
			if a.ID != e.Press.AskID {
				continue
			}
			out := chat.Outcome{Kind: chat.OutcomeRefused, TaskID: t.ID}
			if a.State != "open" {
				out.Text = "This was already answered: " + a.Answer + "."
				return out
			}
			if !slices.Contains(a.Approvers, e.Actor.Name) {
				out.Text = "You may not answer this. It needs " + strings.Join(a.Approvers, " or ") + "."
				return out
			}
			w.votes[a.ID] = append(w.votes[a.ID], e.Actor.Name)
			out.Kind = chat.OutcomeAnswered
			if len(w.votes[a.ID]) < w.quorum && e.Press.Choice == "allow" {
				out.Text = fmt.Sprintf("Counted: %d of %d approvals.", len(w.votes[a.ID]), w.quorum)
				return out
			}
			a.State, a.Answer = "answered", e.Actor.Name+" chose "+e.Press.Choice
			if e.Press.Text != "" {
				a.Answer += ": " + e.Press.Text
			}
			t.State = "running"
			return out
		}
	}
	return chat.Outcome{Kind: chat.OutcomeRefused, Text: "There is no such ask."}
}

func (w *world) Tasks(_ context.Context, f chat.TaskFilter) ([]chat.TaskView, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []chat.TaskView
	for _, t := range w.tasks {
		if (f.State == "" || f.State == t.State) && (f.Conversation == "" || f.Conversation == t.Place.Key()) && len(out) < f.Limit {
			out = append(out, *t)
		}
	}
	return out, w.unread
}

func (w *world) Task(_ context.Context, id string) (chat.TaskView, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.find(id)
	if w.unread != nil {
		return chat.TaskView{}, w.unread
	}
	if t == nil {
		return chat.TaskView{}, fmt.Errorf("task %s: %w", id, chat.ErrNotFound)
	}
	c := *t
	c.Asks = slices.Clone(t.Asks)
	return c, nil
}

func (w *world) Asks(_ context.Context, openOnly bool) ([]chat.AskView, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []chat.AskView
	for _, t := range w.tasks {
		for _, a := range t.Asks {
			if !openOnly || a.State == "open" {
				out = append(out, a)
			}
		}
	}
	return out, w.unread
}

func (w *world) Watch(ctx context.Context, id string, after int64) (<-chan chat.FeedItem, error) {
	out := make(chan chat.FeedItem)
	go func() {
		defer close(out)
		for at := 0; ; {
			w.mu.Lock()
			items, over, wake := slices.Clone(w.feeds[id][at:]), ended(w.find(id).State), w.wake
			w.mu.Unlock()
			at += len(items)
			for _, it := range items {
				if it.Seq != 0 && it.Seq <= after {
					continue
				}
				select {
				case out <- it:
				case <-ctx.Done():
					return
				}
			}
			if over && len(items) == 0 {
				return
			}
			if len(items) > 0 {
				continue
			}
			select {
			case <-wake:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

func (w *world) Health(context.Context) []chat.HealthItem { return w.health }

// seen lists what arrived with a verb.
func (w *world) seen(verb chat.Verb) []chat.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []chat.Event
	for _, e := range w.events {
		if e.Verb == verb {
			out = append(out, e)
		}
	}
	return out
}

var people = []chat.Person{
	{Name: "lead", Role: "approver", Identities: map[string]string{Kind: "lead-1"}},
	{Name: "second", Role: "approver", Identities: map[string]string{Kind: "second-1"}},
	{Name: "visitor", Role: "user", Identities: map[string]string{Kind: "visitor-1"}},
	{Name: "slacker", Role: "user", Identities: map[string]string{"slack": "U1"}},
}

const accessToken = "an-access-token-of-good-length"

func configured(c Config, env map[string]string) (*Door, error) {
	return New(chat.DoorConfig{
		Name:   "web",
		Decode: func(into any) error { *into.(*Config) = c; return nil },
		Getenv: func(k string) string { return env[k] },
	})
}

// running is a console that listens on loopback for one test.
type running struct {
	*Door
	t    *testing.T
	stop func()
}

// run starts a console; it is stopped at the end of the test, or earlier by stop.
func run(t *testing.T, w *world, c Config, prepare ...func(*Door)) running {
	t.Helper()
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	d, err := configured(c, map[string]string{"TOKEN": accessToken})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range prepare {
		p(d)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() {
		over <- d.Run(ctx, chat.Host{Sink: w, Desk: w, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), People: people, Notice: "The model is scripted: it plays a written scenario."})
	}()
	select {
	case <-d.Ready():
	case err := <-over:
		t.Fatal(err)
	}
	once := sync.OnceFunc(func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(once)
	return running{d, t, once}
}

// browser is a client that behaves as a browser does: cookies, Origin, fetch metadata.
type browser struct {
	*http.Client
	t    *testing.T
	base string
	hx   bool
}

func (r running) browser() *browser {
	jar, _ := cookiejar.New(nil)
	tr := &http.Transport{}
	r.t.Cleanup(tr.CloseIdleConnections)
	return &browser{&http.Client{Jar: jar, Transport: tr}, r.t, "http://" + r.Addr(), false}
}

// as signs somebody in through a login link.
func (r running) as(person string) *browser {
	r.t.Helper()
	link, err := r.LoginLink(person)
	if err != nil {
		r.t.Fatal(err)
	}
	u, _ := url.Parse(link)
	b := r.browser()
	if status, body := b.post("/login", url.Values{"code": {u.Query().Get("code")}}); status != 200 {
		r.t.Fatalf("login: %d\n%s", status, body)
	}
	return b
}

// script makes the browser one with htmx.
func (b browser) script() *browser { b.hx = true; return &b }

func (b *browser) get(path string) (int, string) {
	b.t.Helper()
	req, _ := http.NewRequest("GET", b.base+path, nil)
	return b.do(req)
}

func (b *browser) post(path string, form url.Values) (int, string) {
	b.t.Helper()
	req, _ := http.NewRequest("POST", b.base+path, strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(req)
}

func (b *browser) do(req *http.Request) (int, string) {
	b.t.Helper()
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Origin", b.base)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if b.hx {
		req.Header.Set("HX-Request", "true")
	}
	resp, err := b.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if to := resp.Header.Get("HX-Redirect"); to != "" {
		return resp.StatusCode, "goes to " + to
	}
	return resp.StatusCode, string(body)
}

var errDisk = errors.New("store event: no space left on device")
