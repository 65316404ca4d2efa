package chattest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"reasonix/internal/chat"
)

// Delivery sends one request to the door, the same each time it is called, and returns the status of the answer.
type Delivery func(hook string) (status int, err error)

// Refusal is a request that the door must not take.
type Refusal struct {
	Name   string
	Send   Delivery
	Status int
}

// Subject is a door and the platform that it speaks to. A nil function means that the door has no such ability.
type Subject struct {
	Door chat.Door

	Work      func() Delivery                     // a request for work, of a new meaning at each call
	Press     func(p chat.Post) Delivery          // presses the first button of a post that was sent
	Answer    func(askID, text string) []Delivery // words that answer an ask: approve, deny, answer with the text
	Refusals  []Refusal                           // unsigned, stale, too large, malformed
	Signed    func(body string) Delivery          // a correctly signed body, however senseless
	Place     chat.Place                          // a place that can be written to
	Gone      chat.Place                          // a place that cannot
	Count     func() int                          // posts of the bot that stand there
	Shows     func(ref chat.Ref) string           // what people read in a post
	LoseReply func()                              // the next post is made, but its answer is lost
	Limit     func(wait time.Duration)            // the next post is refused with this wait
}

// AskID is an id of the shape that asks have.
const AskID = "ask_abcdefghijklmnopqrst"

// Run holds a door to its contract; open gives a fresh subject to each part.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	parts := map[string]func(*testing.T, Subject){
		"Invariant01_the same delivery five times at once has one effect":    sameDelivery,
		"Invariant01_it is acknowledged only after the sink returned":        acknowledgedAfter,
		"Invariant01_a sink that fails is shown to the platform":             failureShown,
		"Invariant04_a press arrives as a press":                             pressArrives,
		"Invariant04_words with an ask's id answer it":                       wordsAnswer,
		"what is not the platform's is refused":                              refused,
		"senseless input harms nothing":                                      senseless,
		"Invariant07_a post whose answer was lost is found and stays single": lostReply,
		"Invariant07_the platform's wait is passed on":                       waits,
		"a post is edited in place":                                          edited,
		"a place that is gone is called gone":                                gone,
		"a settled ask has no live buttons":                                  settled,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

// Serve mounts a door's handler; a panic in it fails the test.
func Serve(t testing.TB, d chat.Door, s *Sink) string {
	t.Helper()
	h := d.Handler(s.Host(t))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("the door panicked: %v", p)
				panic(http.ErrAbortHandler)
			}
		}()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func send(t testing.TB, d Delivery, hook string) int {
	t.Helper()
	status, err := d(hook)
	if err != nil {
		t.Fatalf("deliver: %v", err)
	}
	return status
}

func ok(status int) bool { return status >= 200 && status < 300 }

func sameDelivery(t *testing.T, s Subject) {
	if s.Work == nil {
		t.Log("not an ability of this door: webhook")
		return
	}
	sink := NewSink()
	hook := Serve(t, s.Door, sink)
	work := s.Work()
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if status, err := work(hook); err != nil || !ok(status) {
				t.Errorf("answered %d, %v", status, err)
			}
		})
	}
	wg.Wait()
	if n := len(sink.Effects()); n != 1 {
		t.Fatalf("five deliveries had %d effects", n)
	}
	send(t, s.Work(), hook)
	if n := len(sink.Effects()); n != 2 {
		t.Fatalf("another request had no effect of its own: %d", n)
	}
}

func acknowledgedAfter(t *testing.T, s Subject) {
	if s.Work == nil {
		t.Log("not an ability of this door: webhook")
		return
	}
	sink := NewSink()
	hook := Serve(t, s.Door, sink)
	release := sink.Hold()
	defer release()
	answered := make(chan int, 1)
	work := s.Work()
	go func() {
		status, _ := work(hook)
		answered <- status
	}()
	<-sink.Entered
	select {
	case status := <-answered:
		t.Fatalf("answered %d before the sink returned", status)
	case <-time.After(100 * time.Millisecond):
	}
	release()
	if status := <-answered; !ok(status) {
		t.Fatalf("answered %d", status)
	}
}

func failureShown(t *testing.T, s Subject) {
	if s.Work == nil {
		t.Log("not an ability of this door: webhook")
		return
	}
	sink := NewSink()
	hook := Serve(t, s.Door, sink)
	sink.Fail(errors.New("disk is full"))
	work := s.Work()
	if status := send(t, work, hook); status < 500 {
		t.Fatalf("answered %d although nothing was taken", status)
	}
	if status := send(t, work, hook); !ok(status) {
		t.Fatalf("the delivery again was answered %d", status)
	}
	if n := len(sink.Effects()); n != 1 {
		t.Fatalf("%d effects", n)
	}
}

func ask(s Subject, key string) chat.Post {
	return chat.Post{Key: key, Place: s.Place, Created: time.Now(), Message: chat.Message{Kind: chat.KindAsk, AskID: AskID, Title: "May I run this?",
		Blocks:  []chat.Block{{Name: "command.sh", Text: "go test ./..."}},
		Buttons: []chat.Button{{Label: "Approve", Choice: "allow", Style: "primary"}, {Label: "Deny", Choice: "deny", Style: "danger"}}}}
}

func pressArrives(t *testing.T, s Subject) {
	if s.Press == nil {
		t.Log("not an ability of this door: buttons")
		return
	}
	sink := NewSink()
	hook := Serve(t, s.Door, sink)
	p := ask(s, "post-press")
	if _, err := s.Door.Send(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	press := s.Press(p)
	for range 2 {
		if status := send(t, press, hook); !ok(status) {
			t.Fatalf("answered %d", status)
		}
	}
	if n := len(sink.Effects()); n != 1 {
		t.Fatalf("one press had %d effects", n)
	}
	e := sink.Last(t)
	if e.Verb != chat.VerbPress || e.Press == nil || e.Press.AskID != AskID || e.Press.Choice != "allow" || e.Actor.ID == "" {
		t.Fatalf("not the press of a person: %+v", e)
	}
	if e.Place.Key() != s.Place.Key() {
		t.Fatalf("pressed at %q, the ask stands at %q", e.Place.Key(), s.Place.Key())
	}
}

func wordsAnswer(t *testing.T, s Subject) {
	if s.Answer == nil {
		t.Log("not an ability of this door: words")
		return
	}
	sink := NewSink()
	hook := Serve(t, s.Door, sink)
	for i, d := range s.Answer(AskID, "use port 8080") {
		if status := send(t, d, hook); !ok(status) {
			t.Fatalf("answered %d", status)
		}
		e := sink.Last(t)
		want := []string{"allow", "deny", "answer"}[i]
		if e.Verb != chat.VerbPress || e.Press.Choice != want || e.Press.AskID != AskID {
			t.Fatalf("want %s, got %+v", want, e)
		}
		if want == "answer" && e.Press.Text != "use port 8080" {
			t.Fatalf("answer is %q", e.Press.Text)
		}
	}
}

func refused(t *testing.T, s Subject) {
	sink := NewSink()
	if len(s.Refusals) == 0 {
		t.Log("not an ability of this door: webhook")
		return
	}
	hook := Serve(t, s.Door, sink)
	for _, r := range s.Refusals {
		if got := send(t, r.Send, hook); got != r.Status {
			t.Errorf("%s: answered %d, want %d", r.Name, got, r.Status)
		}
	}
	if n := len(sink.Effects()); n != 0 {
		t.Fatalf("%d of them had an effect", n)
	}
}

func senseless(t *testing.T, s Subject) {
	if s.Signed == nil {
		t.Log("not an ability of this door: webhook")
		return
	}
	sink := NewSink()
	hook := Serve(t, s.Door, sink)
	deep := strings.Repeat("[", 9000)
	for _, body := range []string{"", "null", "[]", "{}", `{"type":1}`, `{"type":"event_callback"}`, `{"type":"event_callback","event":{"type":"message"}}`,
		`{"action":"created"}`, `{"action":null,"comment":null,"issue":null}`, `"x"`, "\x00", "payload=", "payload=%7B%7D", "payload=null", deep} {
		if got := send(t, s.Signed(body), hook); got >= 500 {
			t.Errorf("%.60q was answered %d", body, got)
		}
	}
	if n := len(sink.Effects()); n != 0 {
		t.Fatalf("%d of them had an effect", n)
	}
}

func lostReply(t *testing.T, s Subject) {
	if s.LoseReply == nil {
		t.Log("not an ability of this door: posts")
		return
	}
	p := ask(s, "post-lost")
	if _, found, err := s.Door.Lookup(t.Context(), p); err != nil || found {
		t.Fatalf("found %v before it was sent, %v", found, err)
	}
	s.LoseReply()
	if _, err := s.Door.Send(t.Context(), p); !errors.Is(err, chat.ErrUncertain) {
		t.Fatalf("a lost answer is %v, want uncertain", err)
	}
	ref, found, err := s.Door.Lookup(t.Context(), p)
	if err != nil || !found || ref.ID == "" {
		t.Fatalf("found %v, %+v, %v", found, ref, err)
	}
	if n := s.Count(); n != 1 {
		t.Fatalf("%d posts stand there", n)
	}
	other := p
	other.Key = "post-other"
	if _, found, err := s.Door.Lookup(t.Context(), other); err != nil || found {
		t.Fatalf("another key found the post: %v, %v", found, err)
	}
}

func waits(t *testing.T, s Subject) {
	if s.Limit == nil {
		t.Log("not an ability of this door: posts")
		return
	}
	s.Limit(17 * time.Second)
	_, err := s.Door.Send(t.Context(), ask(s, "post-limited"))
	var again *chat.RetryError
	if !errors.As(err, &again) {
		t.Fatalf("got %v, want a retry", err)
	}
	if again.After < 16*time.Second || again.After > 18*time.Second {
		t.Fatalf("waits %s, the platform said 17s", again.After)
	}
	if n := s.Count(); n != 0 {
		t.Fatalf("%d posts stand there", n)
	}
}

func edited(t *testing.T, s Subject) {
	if s.Shows == nil || !s.Door.Capabilities().Edit {
		t.Log("not an ability of this door: edits")
		return
	}
	p := chat.Post{Key: "post-status", Place: s.Place, Created: time.Now(), Message: chat.Message{Kind: chat.KindStatus, Title: "Working", Text: "step 1"}}
	ref, err := s.Door.Send(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	p.Key, p.Edits, p.Message.Text = "post-status-2", &ref, "step 2"
	again, err := s.Door.Send(t.Context(), p)
	if err != nil || again.ID != ref.ID {
		t.Fatalf("edited %+v into %+v, %v", ref, again, err)
	}
	if n := s.Count(); n != 1 {
		t.Fatalf("%d posts stand there", n)
	}
	if shown := s.Shows(ref); !strings.Contains(shown, "step 2") || strings.Contains(shown, "step 1") {
		t.Fatalf("people read %q", shown)
	}
}

func settled(t *testing.T, s Subject) {
	if s.Shows == nil {
		t.Log("not an ability of this door: buttons")
		return
	}
	p := ask(s, "post-settled")
	ref, err := s.Door.Send(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	p.Key, p.Edits, p.Message.Settled, p.Message.Text = "post-settled-2", &ref, true, "approved by lead"
	if _, err := s.Door.Send(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	shown := s.Shows(ref)
	if !strings.Contains(shown, "approved by lead") || strings.Contains(shown, "Approve") {
		t.Fatalf("people read %q", shown)
	}
}

func gone(t *testing.T, s Subject) {
	p := ask(s, "post-gone")
	p.Place = s.Gone
	if _, err := s.Door.Send(context.Background(), p); !errors.Is(err, chat.ErrGone) {
		t.Fatalf("got %v, want gone", err)
	}
}
