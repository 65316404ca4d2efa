package console

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"reasonix/internal/chat"
)

// frame is one server-sent event.
type frame struct{ id, event, data string }

// stream reads events until the server closes it or the test hangs up.
type stream struct {
	t    *testing.T
	body io.ReadCloser
	r    *bufio.Reader
	stop context.CancelFunc
}

func (b *browser) stream(path, lastID string, header ...string) *stream {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	req, _ := http.NewRequestWithContext(ctx, "GET", b.base+path, nil)
	req.Header.Set("Accept", "text/event-stream")
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := b.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		b.t.Fatalf("%s: %d %s", path, resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	b.t.Cleanup(cancel)
	return &stream{b.t, resp.Body, bufio.NewReader(resp.Body), cancel}
}

// next is the next event; ok is false at the end of the stream.
func (s *stream) next() (f frame, ok bool) {
	for {
		l, err := s.r.ReadString('\n')
		if err != nil {
			return f, false
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(l, "\n"), ": ")
		switch name {
		case "id":
			f.id = value
		case "event":
			f.event = value
		case "data":
			f.data += value + "\n"
		case "":
			if f.event != "" {
				return f, true
			}
		}
	}
}

// until reads up to the first event that fits.
func (s *stream) until(event, text string) []frame {
	s.t.Helper()
	var got []frame
	for {
		f, ok := s.next()
		if !ok {
			s.t.Fatalf("the stream ended before %s %q; it had %+v", event, text, got)
		}
		got = append(got, f)
		if f.event == event && strings.Contains(f.data, text) {
			return got
		}
	}
}

func (s *stream) hangUp() {
	s.stop()
	s.body.Close()
}

func TestTheFeedIsDrawnAsItHappens(t *testing.T) {
	w := parkedWorld(t)
	b := run(t, w, Config{}).as("lead")
	s := b.stream("/tasks/task_1/feed", "")
	var page strings.Builder
	for _, f := range s.until("item", "Run a command") {
		page.WriteString(f.data)
	}
	mustShow(t, "the feed", page.String(), `<span class="tool">bash</span>`, "go test -count=1 -run", "<code>Cents</code> <strong>truncates</strong>", `data-seq="7"`, "<details", "See the question")
	w.say("task_1", chat.FeedItem{ID: "live", Kind: "text", Text: "Now I "}, chat.FeedItem{ID: "live", Kind: "text", Text: "edit <it>"})
	s.until("live", "Now I edit &lt;it&gt;")
	w.say("task_1", chat.FeedItem{Kind: "text", Text: "Now I edit it."})
	got := s.until("live", "")
	if last := got[len(got)-1]; strings.Contains(last.data, "Now I") {
		t.Errorf("streamed text stays beside the durable one: %q", last.data)
	}
	w.say("task_1", chat.FeedItem{ID: "live", Kind: "output", Tool: "bash", Text: "ok money 0.01s"})
	s.until("live", "ok money 0.01s")
	w.approve()
	s.until("panel", "")
	conclude(w, "task_1")
	s.until("end", "")
	if _, more := s.next(); more {
		t.Error("the stream goes on after the end")
	}
}

func TestAReaderThatComesBackMissesNothingAndSeesNothingTwice(t *testing.T) {
	w := parkedWorld(t)
	conclude(w, "task_1")
	w.approve()
	r := run(t, w, Config{TokenEnv: "TOKEN", TokenPerson: "lead"})
	w.alter("task_1", func(t *chat.TaskView) { t.State = "completed" })
	all := len(w.feeds["task_1"])
	for cut := range all + 1 {
		s := r.browser().stream("/api/tasks/task_1/feed", "", "Authorization", "Bearer "+accessToken)
		var seqs []int64
		last := ""
		read := func(s *stream, limit int) {
			for len(seqs) < limit {
				f, ok := s.next()
				if !ok {
					return
				}
				if f.event == "item" {
					var it chat.FeedItem
					if err := json.Unmarshal([]byte(f.data), &it); err != nil || fmt.Sprint(it.Seq) != f.id {
						t.Fatalf("item %q with id %s: %v", f.data, f.id, err)
					}
					seqs, last = append(seqs, it.Seq), f.id
				}
			}
		}
		read(s, cut)
		s.hangUp()
		read(r.browser().stream("/api/tasks/task_1/feed?after=1", last, "Authorization", "Bearer "+accessToken), all+1)
		want := make([]int64, 0, all)
		for i := range all {
			want = append(want, int64(i+1))
		}
		if cut == 0 {
			want = want[1:] // without an event id the address says where to start
		}
		if !slices.Equal(seqs, want) {
			t.Errorf("cut after %d: items %v, want %v", cut, seqs, want)
		}
	}
}

func TestAFeedContinuesAfterTheHostRestarted(t *testing.T) {
	key := t.TempDir() + "/key"
	w := parkedWorld(t)
	first := run(t, w, Config{SessionKeyFile: key})
	addr := first.Addr()
	b := first.as("lead")
	s := b.stream("/tasks/task_1/feed", "")
	got := s.until("item", "Run a command")
	first.stop()
	for _, ok := s.next(); ok; _, ok = s.next() {
		t.Error("the stream says more after the host stopped")
	}
	run(t, w, Config{SessionKeyFile: key, Listen: addr})
	w.say("task_1", chat.FeedItem{Kind: "note", Text: "The host is back."})
	s = b.stream("/tasks/task_1/feed?after=0", got[len(got)-1].id)
	for _, f := range s.until("item", "The host is back.") {
		if strings.Contains(f.data, "truncates") {
			t.Errorf("an item comes twice: %q", f.data)
		}
	}
}

func TestAFeedThatCannotStartSaysWhy(t *testing.T) {
	w := parkedWorld(t)
	b := run(t, w, Config{}).as("lead")
	if status, body := b.get("/tasks/task_1/feed?after=x"); status != 400 || !strings.Contains(body, "Reload the page") {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := b.get("/tasks/none/feed"); status != 404 {
		t.Errorf("unknown task: %d", status)
	}
}

func TestAFeedEndsWithItsSession(t *testing.T) {
	c := &clock{zero}
	w := parkedWorld(t)
	r := run(t, w, Config{Session: "1m"}, c.set)
	b := r.as("lead")
	c.at = zero.Add(time.Minute - 50*time.Millisecond)
	s := b.stream("/tasks/task_1/feed", "")
	for _, ok := s.next(); ok; _, ok = s.next() {
		continue // it ends by itself, long before the test's own limit
	}
}

func TestNothingIsLeftRunning(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	w := parkedWorld(t)
	r := run(t, w, Config{})
	b := r.as("lead")
	one, two := b.stream("/tasks/task_1/feed", ""), b.stream("/tasks/task_1/feed", "")
	one.until("item", "truncates")
	two.until("item", "truncates")
	one.hangUp()
	r.stop()
	two.hangUp()
	b.CloseIdleConnections()
	if _, err := http.Get("http://" + r.Addr() + "/login"); err == nil {
		t.Error("it still listens")
	}
}

func TestASecondConsoleOnTheSameAddressSaysSo(t *testing.T) {
	r := run(t, newWorld(), Config{})
	d, err := configured(Config{Listen: r.Addr()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Run(t.Context(), chat.Host{}); err == nil || !strings.Contains(err.Error(), "change listen") {
		t.Errorf("run: %v", err)
	}
}
