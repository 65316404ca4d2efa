package console

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"reasonix/internal/chat"
)

const pressPath = "/asks/" + askID + "/press"

func mustShow(t *testing.T, what, body string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(body, want) {
			t.Errorf("%s does not show %q:\n%s", what, want, body)
		}
	}
}

func TestInvariant01_ARequestSubmittedTwiceIsOneTask(t *testing.T) {
	w := newWorld()
	r := run(t, w, Config{})
	b := r.as("visitor")
	form := url.Values{"nonce": {"abc"}, "text": {"  Fix the test "}}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, to := b.script().post("/requests", form); to != "goes to /tasks/task_1" {
				t.Errorf("a submit answers %q", to)
			}
		})
	}
	wg.Wait()
	if len(w.tasks) != 1 {
		t.Fatalf("%d tasks", len(w.tasks))
	}
	e := w.seen(chat.VerbWork)[0]
	if e.Text != "Fix the test" || e.On != "console" || e.Actor.ID != "visitor-1" || e.Place.Kind != Kind || e.Place.Connection != "web" || e.Place.Channel == "" {
		t.Errorf("event: %+v", e)
	}
	r.as("lead").script().post("/requests", form) // another person's form with the same nonce
	if len(w.tasks) != 2 {
		t.Error("one person used up another's key")
	}
}

func TestARefusedRequestSaysWhyAndKeepsTheText(t *testing.T) {
	w := newWorld()
	r := run(t, w, Config{})
	b := r.as("visitor")
	_, body := b.script().post("/requests", url.Values{"nonce": {"n1"}, "text": {"forbidden thing"}})
	mustShow(t, "the form", body, "No route takes this request", "forbidden thing</textarea>", `class="outcome bad"`)
	_, body = b.post("/requests", url.Values{"nonce": {"n2"}, "text": {"forbidden thing"}})
	mustShow(t, "the page without script", body, "No route takes this request", "forbidden thing</textarea>", "<!doctype html>")
	for text, want := range map[string]string{"   ": "Write something first", strings.Repeat("x", maxText+1): "too long", "a\x00b": "bytes that are no text"} {
		_, body := b.script().post("/requests", url.Values{"nonce": {"n3"}, "text": {text}})
		mustShow(t, "the form", body, want)
	}
}

func TestAnErrorSaysWhatToDoAndTheNextTryCountsOnce(t *testing.T) {
	w := newWorld()
	w.broken = errDisk
	r := run(t, w, Config{})
	b := r.as("visitor")
	_, body := b.script().post("/requests", url.Values{"nonce": {"same"}, "text": {"Fix it"}})
	mustShow(t, "the form", body, "Nothing happened: store event: no space left on device. Press again", `value="same"`, "Fix it</textarea>")
	w.broken = nil
	if _, to := b.script().post("/requests", url.Values{"nonce": {"same"}, "text": {"Fix it"}}); to != "goes to /tasks/task_1" {
		t.Errorf("the second try: %s", to)
	}
}

func TestBrokenFormsChangeNothing(t *testing.T) {
	w := parkedWorld(t)
	b := run(t, w, Config{}).as("lead").script()
	for _, c := range []struct {
		path string
		form url.Values
		want string
		code int
	}{
		{"/requests", url.Values{"text": {"x"}}, "reload the page", 400},
		{"/requests", url.Values{"text": {"x"}, "nonce": {"a b"}}, "reload the page", 400},
		{"/requests", url.Values{"text": {strings.Repeat("x", maxBody)}, "nonce": {"a"}}, "too large", 413},
		{"/tasks/none/stop", url.Values{"nonce": {"a"}}, "There is no task", 404},
		{"/asks/ask_none/press", url.Values{"nonce": {"a"}}, "There is no ask", 404},
	} {
		if code, body := b.post(c.path, c.form); code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s %v: %d\n%s", c.path, c.form["nonce"], code, body)
		}
	}
	if len(w.events) != 0 {
		t.Errorf("events: %+v", w.events)
	}
}

func TestInvariant04_APressIsToldAtItsCardAndARefusalLeavesTheButtonsAlive(t *testing.T) {
	w := parkedWorld(t)
	r := run(t, w, Config{})
	stranger, lead, second := r.as("visitor").script(), r.as("lead").script(), r.as("second").script()

	_, card := stranger.post(pressPath, pressForm("allow"))
	mustShow(t, "the stranger's card", card, "You may not answer this. It needs lead or second.", `class="outcome bad"`, `value="allow"`, "go test -count=1")
	if w.tasks[0].Asks[0].State != "open" {
		t.Fatal("a stranger answered")
	}
	if strings.Contains(card, "hx-preserve") {
		t.Error("the card would be replaced by its old self")
	}
	_, card = lead.post(pressPath, pressForm("allow"))
	mustShow(t, "the approver's card", card, "Your answer counts", "lead chose allow", `class="ask settled"`)
	if strings.Contains(card, "<button") {
		t.Error("an answered ask has live buttons")
	}
	_, card = second.post(pressPath, pressForm("deny"))
	mustShow(t, "the late card", card, "already answered: lead chose allow", `class="outcome bad"`)
	if w.tasks[0].Asks[0].Answer != "lead chose allow" {
		t.Error("the second press changed the answer")
	}
	p := w.seen(chat.VerbPress)[1]
	if p.Press.AskID != askID || p.Press.Choice != "allow" || p.Actor.ID != "lead-1" || p.Place.Channel != "room-1" {
		t.Errorf("event: %+v", p)
	}
}

func TestAPressWithoutScriptComesBackWithTheWholePage(t *testing.T) {
	w := parkedWorld(t)
	_, body := run(t, w, Config{}).as("visitor").post(pressPath, pressForm("allow"))
	mustShow(t, "the page", body, "<!doctype html>", "You may not answer this", `value="allow"`, "Activity")
}

func TestAQuorumCountsVisibly(t *testing.T) {
	w := parkedWorld(t)
	w.quorum = 2
	r := run(t, w, Config{})
	_, card := r.as("lead").script().post(pressPath, pressForm("allow"))
	mustShow(t, "the first approval", card, "Counted: 1 of 2 approvals.", `value="allow"`)
	_, card = r.as("second").script().post(pressPath, pressForm("allow"))
	mustShow(t, "the second approval", card, "second chose allow")
}

func TestAPressAfterAnErrorKeepsItsKey(t *testing.T) {
	w := parkedWorld(t)
	b := run(t, w, Config{}).as("lead").script()
	w.broken = errDisk
	_, card := b.post(pressPath, pressForm("allow"))
	mustShow(t, "the card", card, "Nothing happened", `name="nonce" value="n-allow"`, `value="allow"`)
}

func TestFreeTextAnswersReachTheHost(t *testing.T) {
	w := parkedWorld(t)
	a := &w.tasks[0].Asks[0]
	a.Kind, a.Blocks, a.Digest = "question", nil, ""
	a.Title, a.Text = "A question", "Which rounding do you want?"
	a.Buttons = []chat.Button{{Label: "Answer", Choice: "answer", Style: "primary", Input: true}}
	r := run(t, w, Config{})
	b := r.as("lead").script()
	_, page := b.get("/tasks/task_1")
	mustShow(t, "the page", page, "Your answer", "Which rounding do you want?")
	form := url.Values{"nonce": {"q1"}, "choice": {"answer"}, "text": {""}, "digest": {""}}
	_, card := b.post(pressPath, form)
	mustShow(t, "an empty answer", card, "Write something first", "<textarea")
	form.Set("text", " away from zero ")
	_, card = b.post(pressPath, form)
	mustShow(t, "the answer", card, "lead chose answer: away from zero")
	if got := w.seen(chat.VerbPress); len(got) != 1 || got[0].Press.Text != "away from zero" {
		t.Errorf("events: %+v", got)
	}
}

func TestInvariant05_ALongCommandIsThereToTheLastCharacterAndCountsOnlyAfterReading(t *testing.T) {
	w := parkedWorld(t)
	command := "true " + strings.Repeat("a", 5000) + " && rm -rf /the/end"
	w.tasks[0].Asks[0].Blocks = []chat.Block{{Name: "command.sh", Text: command}}
	b := run(t, w, Config{}).as("lead").script()
	_, page := b.get("/tasks/task_1")
	mustShow(t, "the page", page, "rm -rf /the/end", "data-read", "data-consent", "<noscript>")
	_, card := b.post(pressPath, pressForm("allow"))
	mustShow(t, "an unread approval", card, "Read to the end first", `value="allow"`)
	if len(w.seen(chat.VerbPress)) != 0 {
		t.Fatal("an approval counted that was not read")
	}
	read := pressForm("allow")
	read.Set("read", "1")
	_, card = b.post(pressPath, read)
	mustShow(t, "a read approval", card, "lead chose allow")
}

func TestRefusingALongCommandNeedsNoReading(t *testing.T) {
	w := parkedWorld(t)
	w.tasks[0].Asks[0].Blocks = []chat.Block{{Name: "command.sh", Text: strings.Repeat("echo\n", 100)}}
	_, card := run(t, w, Config{}).as("lead").script().post(pressPath, pressForm("deny"))
	mustShow(t, "the card", card, "lead chose deny")
}

func TestAnActionThatIsAnotherThanWasShownIsNotAnswered(t *testing.T) {
	w := parkedWorld(t)
	form := pressForm("allow")
	form.Set("digest", "of something else")
	_, card := run(t, w, Config{}).as("lead").script().post(pressPath, form)
	mustShow(t, "the card", card, "The action changed since this page was drawn", `value="allow"`)
	if len(w.events) != 0 {
		t.Error("it was answered")
	}
}

func TestInvariant05_ACommandCannotHideOnItsCard(t *testing.T) {
	w := parkedWorld(t)
	a := &w.tasks[0].Asks[0]
	a.Blocks = []chat.Block{{Name: "command.sh", Text: "echo ```\u202efr- mr\u202c\u200b</pre><script>alert(1)</script>\x1b[2K\r ok"}}
	a.Title = "Run\u202e <b>it</b>"
	a.Fields = append(a.Fields, chat.Field{Label: "What changed", Value: "money/round.go: 1 line"})
	_, page := run(t, w, Config{}).as("lead").get("/tasks/task_1")
	mustShow(t, "the card", page, `title="U+202E RIGHT-TO-LEFT OVERRIDE">\u202e</span>`, `\u200b</span>`, `\u001b</span>`, `\u000d</span>`,
		"&lt;script&gt;alert(1)", "```", "5 invisible characters are", `Run\u202e &lt;b&gt;`, "Changed since it was asked before", "money/round.go: 1 line")
	if strings.ContainsAny(page, "\u202e\u200b\x1b") {
		t.Error("a hiding character is on the page")
	}
}

func TestTheControlsOfATask(t *testing.T) {
	w := parkedWorld(t)
	r := run(t, w, Config{})
	b := r.as("visitor").script()
	_, page := b.get("/tasks/task_1")
	mustShow(t, "the page", page, "<dt>Mode</dt><dd>goal</dd>", "<dt>Posture</dt><dd>ask</dd>", "<dt>Contract</dt>", "<dt>Permission</dt>", "<dt>Box</dt>", "The model is scripted")
	_, part := b.post("/tasks/task_1/posture", url.Values{"nonce": {"p"}, "posture": {"yolo"}})
	mustShow(t, "the posture form", part, "Only an administrator may change the posture", `<select`)
	_, part = b.post("/tasks/task_1/posture", url.Values{"nonce": {"p"}, "posture": {"root"}})
	mustShow(t, "the posture form", part, "Choose ask, auto or yolo")
	_, part = b.post("/tasks/task_1/reply", url.Values{"nonce": {"r"}, "text": {"use math.Round"}})
	mustShow(t, "the reply form", part, "The model reads it at its next turn")
	_, part = b.post("/tasks/task_1/reply", url.Values{"nonce": {"r2"}, "text": {"approve " + askID}})
	mustShow(t, "a press by command word", part, "You may not answer this")
	_, part = b.post("/tasks/task_1/stop", url.Values{"nonce": {"s"}})
	mustShow(t, "the stop form", part, "Stopped.")
	_, part = b.post("/tasks/task_1/reply", url.Values{"nonce": {"r3"}, "text": {"and now the docs"}})
	mustShow(t, "a reply after the end", part, `href="/tasks/task_2"`)
	var verbs []string
	for _, e := range w.events {
		verbs = append(verbs, fmt.Sprintf("%s:%s:%s", e.Verb, e.Text, e.Place.Channel))
	}
	want := []string{"posture:yolo:room-1", ":use math.Round:room-1", "press::room-1", "stop::room-1", ":and now the docs:room-1"}
	if !slices.Equal(verbs, want) {
		t.Errorf("events %q, want %q", verbs, want)
	}
}

func TestAStateThatCannotBeReadIsSaid(t *testing.T) {
	w := parkedWorld(t)
	b := run(t, w, Config{}).as("lead")
	w.unread = errDisk
	for _, path := range []string{"/", "/asks"} {
		status, body := b.get(path)
		if status != 200 {
			t.Errorf("%s: %d", path, status)
		}
		mustShow(t, path, body, "no space left on device", "shown again as soon as")
	}
	if status, body := b.get("/tasks/task_1"); status != 503 || !strings.Contains(body, "Reload in a moment") {
		t.Errorf("task: %d\n%s", status, body)
	}
	w.unread = nil
	if status, body := b.get("/tasks/none"); status != 404 || !strings.Contains(body, "There is no task with this id") {
		t.Errorf("unknown task: %d\n%s", status, body)
	}
}

func TestNoticesOfTheHostAppearInTheirRoomOnce(t *testing.T) {
	w := parkedWorld(t)
	r := run(t, w, Config{})
	post := chat.Post{Key: "k1", Place: w.tasks[0].Place, Message: chat.Message{Kind: chat.KindNotice, TaskID: "task_1", Text: "The ask expires in an hour."}}
	for range 3 {
		ref, err := r.Send(t.Context(), post)
		if err != nil || ref.ID != "k1" || ref.URL != "http://"+r.Addr()+"/tasks/task_1" {
			t.Fatalf("ref %+v, %v", ref, err)
		}
	}
	if ref, found, err := r.Lookup(t.Context(), post); err != nil || !found || ref.ID != "k1" {
		t.Errorf("lookup: %+v %v %v", ref, found, err)
	}
	_, page := r.as("lead").get("/tasks/task_1")
	if n := strings.Count(page, "The ask expires in an hour."); n != 1 {
		t.Errorf("the notice is shown %d times", n)
	}
	for i := range maxNoticeRooms * 2 {
		post.Place.Channel, post.Key = fmt.Sprint(i), fmt.Sprint(i)
		if _, err := r.Send(t.Context(), post); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(r.notices.rooms); n > maxNoticeRooms {
		t.Errorf("%d rooms are kept", n)
	}
}
