package console

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"reasonix/internal/chat"
)

const (
	gather    = 30 * time.Millisecond // items that come this close together are sent as one message
	maxGather = 200
	beat      = 15 * time.Second // a comment keeps proxies from closing a quiet stream
	lookEvery = 2 * time.Second  // how often a change without a feed item is noticed
	liveTail  = 6000             // bytes of streamed text that are shown
	writeWait = 20 * time.Second
)

// events writes server-sent events.
type events struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

func openEvents(w http.ResponseWriter) events {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return events{w, http.NewResponseController(w)}
}

// send writes one event; seq 0 leaves the browser's position as it is.
func (e events) send(name string, seq int64, data string) error {
	var b strings.Builder
	if seq > 0 {
		fmt.Fprintf(&b, "id: %d\n", seq)
	}
	b.WriteString("event: " + name + "\n")
	for l := range strings.SplitSeq(strings.ReplaceAll(data, "\r", ""), "\n") {
		b.WriteString("data: " + l + "\n")
	}
	b.WriteString("\n")
	return e.raw(b.String())
}

func (e events) raw(s string) error {
	_ = e.rc.SetWriteDeadline(time.Now().Add(writeWait)) // a writer without deadlines writes without
	if _, err := e.w.Write([]byte(s)); err != nil {
		return err
	}
	return e.rc.Flush()
}

// position is where a reader continues: what its browser saw last wins over the address.
func position(r *http.Request) (int64, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("position %q is no number", line(text, 20))
	}
	return n, nil
}

// follower is what a stream does with what happens.
type follower interface {
	durable(items []chat.FeedItem) error
	live(it chat.FeedItem) error
	flush() error   // after a batch
	changed() error // the task's view is another than before
	end() error     // the task has ended and all was sent
}

// follow runs a stream until the task has ended, the session has run out, or the reader is gone. The desk replays from the
// position given, so a reader that comes back misses nothing and sees nothing twice.
func (d *Door) follow(ctx context.Context, id string, after int64, e events, f follower) error {
	items, err := d.sees().Desk.Watch(ctx, id, after)
	if err != nil {
		return err
	}
	look, pulse := time.NewTicker(lookEvery), time.NewTicker(beat)
	defer look.Stop()
	defer pulse.Stop()
	last := after
	seen := ""
	check := func() error {
		t, err := d.sees().Desk.Task(ctx, id)
		if err != nil || stamp(t) == seen {
			return nil // a state that cannot be read now is looked at again
		}
		seen = stamp(t)
		return f.changed()
	}
	if err := check(); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case it, open := <-items:
			if !open {
				return d.finish(ctx, id, check, f)
			}
			if last, err = relay(ctx, it, items, last, f); err == nil {
				err = check()
			}
		case <-look.C:
			err = check()
		case <-pulse.C:
			err = e.raw(": still here\n\n")
		}
		if err != nil {
			return err
		}
	}
}

// finish ends the stream for good only when the task has; otherwise the browser comes back by itself.
func (d *Door) finish(ctx context.Context, id string, check func() error, f follower) error {
	if err := check(); err != nil {
		return err
	}
	t, err := d.sees().Desk.Task(ctx, id)
	if err != nil || !ended(t.State) {
		return nil
	}
	return f.end()
}

// relay sends an item and those that follow closely. It returns the last position sent.
func relay(ctx context.Context, it chat.FeedItem, items <-chan chat.FeedItem, last int64, f follower) (int64, error) {
	wait := time.NewTimer(gather)
	defer wait.Stop()
	var batch []chat.FeedItem
	put := func(it chat.FeedItem) error {
		if it.Seq == 0 {
			if err := f.durable(batch); err != nil {
				return err
			}
			batch = nil
			return f.live(it)
		}
		if it.Seq > last {
			last = it.Seq
			batch = append(batch, it)
		}
		return nil
	}
	err := put(it)
	for open, n := true, 1; err == nil && open && n < maxGather; n++ {
		select {
		case it, more := <-items:
			if open = more; more {
				err = put(it)
			}
		case <-wait.C:
			open = false
		case <-ctx.Done():
			open = false
		}
	}
	if err == nil {
		err = f.durable(batch)
	}
	if err == nil {
		err = f.flush()
	}
	return last, err
}

// pageFeed draws a feed as HTML for the task's page.
type pageFeed struct {
	d    *Door
	e    events
	text string // streamed and not yet durable
	tool string // whose output text is; empty: the model's
	dirt bool   // the live part on the page is out of date
}

func (p *pageFeed) durable(items []chat.FeedItem) error {
	if len(items) == 0 {
		return nil
	}
	var b bytes.Buffer
	for _, it := range items {
		part, err := p.d.show("parts", "row", row(it))
		if err != nil {
			return err
		}
		b.Write(part)
	}
	p.dirt = p.dirt || p.text != ""
	p.text, p.tool = "", ""
	return p.e.send("item", items[len(items)-1].Seq, b.String())
}

func (p *pageFeed) live(it chat.FeedItem) error {
	switch it.Kind {
	case "text", "output":
		if it.Tool != p.tool {
			p.text, p.tool = "", it.Tool
		}
		p.text += it.Text
		if cut := len(p.text) - liveTail; cut > liveTail {
			p.text = strings.ToValidUTF8(p.text[cut:], "")
		}
	case "call":
		p.text, p.tool = firstLine(it.Text)+"\n", it.Tool
	case "result":
		p.text, p.tool = "", ""
	default:
		return nil // states, asks and decisions reach the page through its panel
	}
	p.dirt = true
	return nil
}

func (p *pageFeed) flush() error {
	if !p.dirt {
		return nil
	}
	p.dirt = false
	text := p.text
	if over := len(text) - liveTail; over > 0 {
		text = "… " + strings.ToValidUTF8(text[over:], "")
	}
	part, err := p.d.show("parts", "live", map[string]string{"Tool": p.tool, "Text": text})
	if err != nil {
		return err
	}
	return p.e.send("live", 0, string(part))
}

func (p *pageFeed) changed() error { return p.e.send("panel", 0, "changed") }

func (p *pageFeed) end() error { return p.e.send("end", 0, "the task has ended") }

// feed streams a task's page. A reader whose position is behind gets the rest, one that lost the connection continues.
func (d *Door) feed(w http.ResponseWriter, r *http.Request, v viewer) {
	after, err := position(r)
	if err != nil {
		d.refuse(w, r, http.StatusBadRequest, "The feed cannot start there. Reload the page.")
		return
	}
	id := r.PathValue("id")
	if _, err := d.sees().Desk.Task(r.Context(), id); err != nil {
		d.lost(w, r, "task", err)
		return
	}
	ctx, cancel := d.whileSignedIn(r.Context(), v)
	defer cancel()
	e := openEvents(w)
	if e.raw("retry: 1500\n\n") != nil {
		return
	}
	if err := d.follow(ctx, id, after, e, &pageFeed{d: d, e: e}); err != nil && ctx.Err() == nil {
		d.sees().Log.DebugContext(ctx, "console feed ended", "task", id, "err", err)
	}
}

func (d *Door) whileSignedIn(ctx context.Context, v viewer) (context.Context, context.CancelFunc) {
	if v.expires.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, v.expires.Sub(d.now()))
}
