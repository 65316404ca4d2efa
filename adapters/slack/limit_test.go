package slack_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"reasonix/adapters/slack"
	"reasonix/internal/chat"
	"reasonix/internal/testkit/slackd"
)

func TestInvariant01_SlackGetsItsAnswerInThreeSeconds(t *testing.T) {
	w := newWorkspace(t)
	release := w.sink.Hold()
	defer release()
	began := time.Now()
	a := w.deliver(w.Event(w.Mention("C1", "", "U1", "go")))
	if took := time.Since(began); a.Status != 500 || took > 3*time.Second {
		t.Fatalf("answered %d after %s", a.Status, took)
	}
}

func TestAThreadIsFoundAlthoughTheHostJustStarted(t *testing.T) {
	w := newWorkspace(t)
	w.deliver(w.Command("C1", "U1", "/reasonix", "fix it"))
	place := w.sink.Last(t).Place
	post := func(d chat.Door, key string) {
		if _, err := d.Send(t.Context(), chat.Post{Key: key, Place: place, Created: time.Now(), Message: chat.Message{Kind: chat.KindAck, Text: key}}); err != nil {
			t.Fatal(err)
		}
	}
	post(w.door, "first")
	post(open(t, w.Server), "second")
	if posts := w.BotPosts(); posts[1].ThreadTS != posts[0].TS {
		t.Fatal("the command has two threads")
	}
}

func TestTheTokenStaysAtItsHost(t *testing.T) {
	var stolen string
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		stolen = r.Form.Get("token") + r.Header.Get("Authorization")
	}))
	defer thief.Close()
	lure := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer lure.Close()
	d := open(t, slackd.New(t), func(c *slack.Config) { c.APIURL = lure.URL + "/api/" })
	_, err := d.Send(t.Context(), chat.Post{Key: "k", Place: chat.Place{Channel: "C1"}, Message: chat.Message{Kind: chat.KindAck, Text: "x"}})
	if err == nil || stolen != "" || strings.Contains(err.Error(), "xoxb") {
		t.Fatalf("the token went to %q, the error is %v", stolen, err)
	}
}
