package slack_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"reasonix/adapters/slack"
	"reasonix/internal/chat"
	"reasonix/internal/chat/chattest"
	"reasonix/internal/testkit/slackd"
)

// workspace is a loopback workspace with the door mounted.
type workspace struct {
	*slackd.Server
	t    *testing.T
	door chat.Door
	sink *chattest.Sink
	hook string
}

func newWorkspace(t *testing.T, change ...func(*slack.Config)) *workspace {
	s := slackd.New(t)
	w := &workspace{Server: s, t: t, door: open(t, s, change...), sink: chattest.NewSink()}
	w.hook = chattest.Serve(t, w.door, w.sink)
	return w
}

func (w *workspace) deliver(d slackd.Delivery) slackd.Answer {
	w.t.Helper()
	return w.Deliver(w.t, w.hook, d)
}

func (w *workspace) ignored() string {
	w.t.Helper()
	for _, h := range w.door.Check(w.t.Context()) {
		if strings.HasSuffix(h.Name, "ignored") {
			return h.Text
		}
	}
	w.t.Fatal("doctor does not say what was ignored")
	return ""
}

func TestOneMentionShownByTwoEventsIsOneRequest(t *testing.T) {
	w := newWorkspace(t)
	m := w.Mention("C1", "", "U1", "fix the login &amp; its test in <#C9|api>, see <https://example.org/x|this>")
	for _, inner := range []map[string]any{m, slackd.AsMention(m), m} {
		if a := w.deliver(w.Event(inner)); a.Status != 200 {
			t.Fatalf("answered %d", a.Status)
		}
	}
	effects := w.sink.Effects()
	if len(effects) != 1 {
		t.Fatalf("%d requests came of one mention", len(effects))
	}
	e := effects[0]
	want := "fix the login & its test in #api, see https://example.org/x"
	if e.On != "slack.mention" || e.Text != want || e.Actor.ID != "U1" || e.Actor.Team != w.Team || e.Place.Thread != m["ts"] {
		t.Fatalf("got %+v", e)
	}
}

func TestSlackAsksForTheAddressFirst(t *testing.T) {
	w := newWorkspace(t)
	a := w.deliver(slackd.JSON([]byte(`{"type":"url_verification","token":"x","challenge":"3eZbrw1aBm2rZgRNFdxV"}`)))
	if a.Status != 200 || !strings.Contains(a.Body, "3eZbrw1aBm2rZgRNFdxV") {
		t.Fatalf("answered %d %s", a.Status, a.Body)
	}
}

func TestWhatHasNoMeaningIsIgnoredAndCounted(t *testing.T) {
	w := newWorkspace(t)
	with := func(k string, v any) map[string]any {
		m := w.Mention("C1", "", "U1", "go")
		m[k] = v
		return m
	}
	cases := map[string]map[string]any{
		"changed or hidden message": {"type": "message", "subtype": "message_changed", "hidden": true, "channel": "C1", "ts": "1.1",
			"message": map[string]any{"text": "<@U0BOT> go", "user": "U1"}},
		"own message":                     with("bot_id", w.BotID),
		"message subtype channel_join":    with("subtype", "channel_join"),
		"message subtype message_deleted": with("subtype", "message_deleted"),
		"message of another bot":          with("bot_id", "B0OTHER"),
		"event type without meaning here": with("type", "reaction_added"),
		"message without author":          with("user", ""),
		"message without place":           with("ts", ""),
	}
	for reason, inner := range cases {
		if a := w.deliver(w.Event(inner)); a.Status != 200 {
			t.Errorf("%s: answered %d", reason, a.Status)
		}
		if got := w.ignored(); !strings.Contains(got, reason+": 1") {
			t.Errorf("%s is not counted: %s", reason, got)
		}
	}
	own := with("app_id", w.AppID)
	w.deliver(w.Event(own))
	w.deliver(slackd.JSON([]byte(`{"type":"app_rate_limited","team_id":"T0LOOP"}`)))
	if n := len(w.sink.Effects()); n != 0 {
		t.Fatalf("%d of them had an effect: %+v", n, w.sink.Effects())
	}
}

func TestMessagesThatPeopleReallyWriteAreKept(t *testing.T) {
	w := newWorkspace(t)
	for _, subtype := range []string{"file_share", "thread_broadcast", "me_message"} {
		m := w.Mention("C1", "", "U1", "look at "+subtype)
		m["subtype"] = subtype
		w.deliver(w.Event(m))
		if e := w.sink.Last(t); e.Text != "look at "+subtype {
			t.Fatalf("%s was lost: %+v", subtype, e)
		}
	}
}

func TestInvariant10_TwoBotsCannotTalkForEver(t *testing.T) {
	w := newWorkspace(t, func(c *slack.Config) { c.BotMessageLimit = 3 })
	root := w.Say("C1", "", "U1", "start")["ts"].(string)
	other := func() {
		m := w.Mention("C1", root, "U0OTHER", "thank you")
		m["bot_id"] = "B0OTHER"
		for range 2 { // both forms, each a delivery of its own
			w.deliver(w.Event(m))
		}
	}
	for range 10 {
		other()
	}
	if n := len(w.sink.Effects()); n != 3 {
		t.Fatalf("ten messages of another bot had %d effects, the limit is 3", n)
	}
	if e := w.sink.Last(t); !e.Actor.Bot {
		t.Fatalf("a bot passes as a person: %+v", e.Actor)
	}
	w.deliver(w.Event(w.Mention("C1", root, "U1", "go on")))
	other()
	if n := len(w.sink.Effects()); n != 5 {
		t.Fatalf("a person did not reset the limit: %d effects", n)
	}
	if n := len(w.Whispers()); n != 0 {
		t.Fatalf("a bot was told something: %v", w.Whispers())
	}
}

func TestCommandWordsCountWhereTheyAreMeant(t *testing.T) {
	w := newWorkspace(t)
	root := w.Say("C1", "", "U1", "start")["ts"].(string)
	cases := []struct {
		name  string
		inner map[string]any
		verb  chat.Verb
		on    string
	}{
		{"mention", w.Mention("C1", "", "U1", "status"), chat.VerbStatus, "slack.mention"},
		{"direct message", w.Say("D1", "", "U1", "help"), chat.VerbHelp, "slack.message"},
		{"stop in a thread", w.Say("C1", root, "U1", "stop"), chat.VerbStop, "slack.message"},
		{"help between people", w.Say("C1", root, "U1", "help"), chat.VerbWork, "slack.message"},
		{"ordinary talk", w.Say("C1", "", "U1", "stop"), chat.VerbWork, "slack.message"},
		{"consent in prose", w.Mention("C1", root, "U1", "yes, approve it"), chat.VerbWork, "slack.mention"},
		{"answer in a thread", w.Say("C1", root, "U1", "approve "+chattest.AskID), chat.VerbPress, "slack.message"},
	}
	for _, c := range cases {
		w.deliver(w.Event(c.inner))
		if e := w.sink.Last(t); e.Verb != c.verb || e.On != c.on {
			t.Errorf("%s: %s %q", c.name, e.On, e.Verb)
		}
	}
}

func TestSlashCommandNamesItsWords(t *testing.T) {
	w := newWorkspace(t)
	w.sink.Say(chat.Outcome{Kind: chat.OutcomeRefused, Text: "Ask <admin> for the role user."})
	a := w.deliver(w.Command("C1", "U1", "/reasonix", "Fix the login & logout"))
	e := w.sink.Last(t)
	if e.On != "slack.command" || e.Command != "/reasonix fix" || e.Text != "the login & logout" || e.Actor.ID != "U1" {
		t.Fatalf("got %+v", e)
	}
	if !strings.Contains(a.Body, `"ephemeral"`) || !strings.Contains(a.Body, "Ask \\u0026lt;admin\\u0026gt; for the role user.") {
		t.Fatalf("the person is told %s", a.Body)
	}
	w.deliver(w.Command("C1", "U1", "/reasonix", "stop"))
	if e := w.sink.Last(t); e.Verb != chat.VerbStop || e.Command != "/reasonix" {
		t.Fatalf("got %+v", e)
	}
	w.deliver(w.Command("C1", "U1", "/reasonix", ""))
	if e := w.sink.Last(t); e.Verb != chat.VerbWork || e.Command != "/reasonix" || e.Text != "" {
		t.Fatalf("got %+v", e)
	}
}

// A slash command has no message: its first post becomes the root, everything further goes below, and what people write
// there belongs to the same conversation, also for a host that was started later.
func TestSlashCommandConversationIsOneThread(t *testing.T) {
	w := newWorkspace(t)
	w.deliver(w.Command("C1", "U1", "/reasonix", "fix it"))
	place := w.sink.Last(t).Place
	say := func(d chat.Door, key, text string) chat.Ref {
		ref, err := d.Send(t.Context(), chat.Post{Key: key, Place: place, Created: time.Now(), Message: chat.Message{Kind: chat.KindAck, Text: text}})
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	root := say(w.door, "ack", "Working on it")
	say(w.door, "status", "Step 1")
	later := open(t, w.Server)
	if _, found, err := later.Lookup(t.Context(), chat.Post{Key: "ack", Place: place, Created: time.Now()}); err != nil || !found {
		t.Fatalf("a host that was started later does not find the root: %v, %v", found, err)
	}
	say(later, "result", "Done")
	for _, p := range w.BotPosts()[1:] {
		if p.ThreadTS != root.ID {
			t.Fatalf("%q stands outside of the thread", p.Text)
		}
	}
	sink := chattest.NewSink()
	hook := chattest.Serve(t, later, sink)
	for _, inner := range []map[string]any{w.Say("C1", root.ID, "U1", "use tabs"), slackd.AsMention(w.Mention("C1", root.ID, "U1", "and spaces"))} {
		w.Deliver(t, hook, w.Event(inner))
		if got := sink.Last(t).Place; got.Key() != place.Key() {
			t.Fatalf("the reply belongs to %q, the command to %q", got.Key(), place.Key())
		}
	}
}

func TestInvariant04_PressTellsThePersonPrivately(t *testing.T) {
	w := newWorkspace(t)
	root := w.Say("C1", "", "U1", "start")["ts"].(string)
	place := chat.Place{Connection: "acme", Kind: "slack", Channel: "C1", Thread: root}
	_, err := w.door.Send(t.Context(), chat.Post{Key: "ask", Place: place, Created: time.Now(), Message: chat.Message{Kind: chat.KindAsk, AskID: chattest.AskID,
		Title: "May I?", Buttons: []chat.Button{{Label: "Approve", Choice: "allow"}, {Label: "Other…", Choice: "answer", Input: true}}}})
	if err != nil {
		t.Fatal(err)
	}
	post := w.BotPosts()[0]
	w.sink.Say(chat.Outcome{Kind: chat.OutcomeRefused, Text: "You may not approve this; lead may."})
	w.deliver(w.Click(t, post, "Approve", "U_STRANGER"))
	w.WaitWhisper(t, "that the stranger may not", func(m slackd.Whisper) bool {
		return m.User == "U_STRANGER" && m.ThreadTS == root && strings.Contains(m.Text, "lead may")
	})
	if n := len(w.BotPosts()[0].Buttons()); n != 2 {
		t.Fatalf("%d buttons are alive after a stranger's press", n)
	}

	w.Fail("chat.postEphemeral", slackd.Fault{Error: "not_in_channel"})
	w.deliver(w.Click(t, post, "Approve", "U_OUTSIDE"))
	w.WaitWhisper(t, "it by the second way", func(m slackd.Whisper) bool { return m.User == "U_OUTSIDE" })

	w.deliver(w.Click(t, post, "Other…", "U_LEAD"))
	views := w.Views()
	if len(views) != 1 {
		t.Fatalf("%d answer fields opened", len(views))
	}
	if a := w.deliver(w.Submit(views[0], "U_LEAD", "  ")); !strings.Contains(a.Body, "Write an answer first") {
		t.Fatalf("an empty answer: %s", a.Body)
	}
	if a := w.deliver(w.Submit(views[0], "U_LEAD", "use 8080")); !strings.Contains(a.Body, "lead may") || !strings.Contains(a.Body, "errors") {
		t.Fatalf("a refused answer closes the field: %s", a.Body)
	}
	e := w.sink.Last(t)
	if e.Press == nil || e.Press.Text != "use 8080" || e.Press.Choice != "answer" || e.Place.Key() != place.Key() {
		t.Fatalf("got %+v", e)
	}

	w.Fail("views.open", slackd.Fault{Error: "expired_trigger_id"})
	w.deliver(w.Click(t, post, "Other…", "U_LEAD"))
	w.WaitWhisper(t, "how to answer with words", func(m slackd.Whisper) bool { return strings.Contains(m.Text, "answer "+chattest.AskID) })
}

// A plan is turned down with or without a reason; the field that opens says so, and sending it empty counts.
func TestAReasonForARejectionIsOptional(t *testing.T) {
	w := newWorkspace(t)
	root := w.Say("C1", "", "U1", "start")["ts"].(string)
	place := chat.Place{Connection: "acme", Kind: "slack", Channel: "C1", Thread: root}
	_, err := w.door.Send(t.Context(), chat.Post{Key: "ask", Place: place, Created: time.Now(), Message: chat.Message{Kind: chat.KindAsk, AskID: chattest.AskID,
		Title: "Approve the plan?", Buttons: []chat.Button{{Label: "Reject, and say why", Choice: "reject", Input: true, Optional: true}}}})
	if err != nil {
		t.Fatal(err)
	}
	w.deliver(w.Click(t, w.BotPosts()[0], "Reject, and say why", "U_LEAD"))
	view := w.Views()[0]
	shown, _ := json.Marshal(view)
	if !strings.Contains(string(shown), `"optional":true`) || !strings.Contains(string(shown), `"text":"Reject, and say why"`) {
		t.Errorf("the field: %s", shown)
	}
	if a := w.deliver(w.Submit(view, "U_LEAD", "")); strings.Contains(a.Body, "errors") {
		t.Fatalf("an empty reason: %s", a.Body)
	}
	if e := w.sink.Last(t); e.Press == nil || e.Press.Choice != "reject" || e.Press.Text != "" {
		t.Fatalf("got %+v", e)
	}
}

func TestFilesOfAMessageInformTheTask(t *testing.T) {
	w := newWorkspace(t)
	m := w.Mention("C1", "", "U1", "see the log")
	m["subtype"] = "file_share"
	m["files"] = []any{
		map[string]any{"name": "build.log", "mimetype": "text/plain", "size": 20, "url_private": w.Share("build.log", "FAIL TestX"), "permalink": "https://loop.slack.com/f/1"},
		map[string]any{"name": "lost.log", "mimetype": "text/plain", "size": 20, "url_private": strings.Replace(w.Share("x", ""), "/x", "/lost.log", 1)},
		map[string]any{"name": "evil.log", "mimetype": "text/plain", "size": 20, "url_private": "https://evil.example/steal"},
		map[string]any{"name": "fourth.log", "mimetype": "text/plain", "size": 20},
	}
	w.deliver(w.Event(m))
	src := w.sink.Last(t).Context
	if len(src) != 4 || src[0].Text != "FAIL TestX" || src[0].Author != "U1" {
		t.Fatalf("got %+v", src)
	}
	for i, want := range []string{"", "files:read", "does not lie at Slack", "first 3"} {
		if !strings.Contains(src[i].Text, want) {
			t.Errorf("file %d: %q, want %q", i, src[i].Text, want)
		}
	}
}

func TestSlackOutageDoesNotSwallowEvents(t *testing.T) {
	w := newWorkspace(t)
	w.Fail("auth.test", slackd.Fault{Status: 503})
	if a := w.deliver(w.Event(w.Mention("C1", "", "U1", "go"))); a.Status != 200 {
		t.Fatalf("answered %d", a.Status)
	}
	if e := w.sink.Last(t); e.On != "slack.mention" || e.Text != "go" {
		t.Fatalf("got %+v", e)
	}
	// a thread whose root cannot be looked at now is delivered again
	w.Fail("conversations.replies", slackd.Fault{Status: 503})
	reply := w.Event(slackd.AsMention(w.Mention("C1", w.Say("C1", "", "U1", "x")["ts"].(string), "U1", "go on")))
	if a := w.deliver(reply); a.Status != 500 {
		t.Fatalf("answered %d", a.Status)
	}
	if a := w.deliver(reply); a.Status != 200 || w.sink.Last(t).Text != "go on" {
		t.Fatalf("answered %d", a.Status)
	}
}

func TestOtherWorkspacesAreNotHeard(t *testing.T) {
	w := newWorkspace(t, func(c *slack.Config) { c.Team = "T0MINE" })
	w.deliver(w.Event(w.Mention("C1", "", "U1", "go")))
	w.deliver(w.Command("C1", "U1", "/reasonix", "go"))
	w.deliver(slackd.Form(url.Values{"payload": {`{"type":"block_actions","team":{"id":"T0LOOP"},"user":{"id":"U1"}}`}}))
	if n := len(w.sink.Effects()); n != 0 {
		t.Fatalf("%d effects", n)
	}
}

func TestDoorRefusesAnUnsafeConfiguration(t *testing.T) {
	env := map[string]string{"TOKEN": "xoxb", "SECRET": "s"}
	cases := map[string]slack.Config{
		"signing_secret_env is missing":   {BotTokenEnv: "TOKEN"},
		"bot_token_env is missing":        {SigningSecretEnv: "SECRET"},
		"NOTHING, which is empty":         {BotTokenEnv: "TOKEN", SigningSecretEnv: "NOTHING"},
		"bot_message_limit is -1":         {BotTokenEnv: "TOKEN", SigningSecretEnv: "SECRET", BotMessageLimit: -1},
		`api_url "nowhere" is no address`: {BotTokenEnv: "TOKEN", SigningSecretEnv: "SECRET", APIURL: "nowhere"},
	}
	for want, cfg := range cases {
		_, err := chat.Open("slack", chat.DoorConfig{Name: "acme", Getenv: func(k string) string { return env[k] },
			Decode: func(v any) error { *v.(*slack.Config) = cfg; return nil }})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	_, err := slack.Open(chat.DoorConfig{Name: "acme", Decode: func(any) error { return errors.New("unknown key") }})
	if err == nil {
		t.Error("a broken block is taken")
	}
}
