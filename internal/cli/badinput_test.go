package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reasonix/internal/testkit/githubd"
	"reasonix/internal/testkit/modeld"
	"reasonix/internal/testkit/slackd"
)

// TestBadInputIsAnsweredWithItsMendAndLosesNothing: one task waits for its approval while everything that can be wrong comes in. Each gets an
// answer that says what to do, the host lives on, and the task goes on afterwards as if nothing had been.
func TestBadInputIsAnsweredWithItsMendAndLosesNothing(t *testing.T) {
	var effects string
	gone := filepath.Join(t.TempDir(), "gone.git")
	small := false
	w := newWorld(t, func(r modeld.Request) modeld.Turn { return counter(&effects, "true")(r) }, func(w *world) {
		w.posture, effects = "ask", w.effects
		small = smallDisk(t, w.home)
		w.publish = fmt.Sprintf("publish = { pr = false }\n"+moreRoutes, gone, "http://"+freeAddr(t)+"/v1")
	})
	w.comment("dev", "/reasonix fix run it")
	waiting := w.askID()

	t.Run("at the Slack door", w.badSlack)
	t.Run("at the GitHub door", w.badGitHub)
	t.Run("a repository that is not there", func(t *testing.T) {
		card := w.card(t, 8, "/reasonix lost look into it")
		for _, want := range []string{"[[repos]]", gone} {
			if !strings.Contains(card, want) {
				t.Errorf("the card does not say %q:\n%s", want, card)
			}
		}
		if err := os.Rename(w.repo, gone); err != nil { // the mend; the other route's mirror has its objects already
			t.Fatal(err)
		}
		w.commentOn(8, "lead", "/answer "+askIn.FindString(card)+" it is there now")
		w.eventually("the task goes on to its own approval", func() bool { return strings.Count(w.onIssue(8), "echo run") > 0 })
	})
	t.Run("a model that cannot be reached", func(t *testing.T) {
		card := w.card(t, 9, "/reasonix dead look into it")
		if !strings.Contains(card, "reasonix doctor") || !strings.Contains(card, "refused") {
			t.Errorf("the card does not name the mend:\n%s", card)
		}
	})
	t.Run("a configuration that cannot be read", w.badConfiguration)
	t.Run("a full disk", func(t *testing.T) {
		if !small {
			t.Skip("needs a small file system of its own: run as root with CAP_SYS_ADMIN")
		}
		w.fullDisk(t)
	})

	if res, err := http.Get("http://" + w.addr + "/healthz"); err != nil || res.StatusCode != http.StatusNoContent {
		t.Fatalf("the host is gone: %v", err)
	}
	w.comment("lead", "/approve "+waiting)
	w.eventually("the task from before all that", func() bool { return strings.Contains(w.onIssue(7), "Done:") })
	if n := w.runs(); n != 1 {
		t.Errorf("its command ran %d times", n)
	}
}

const moreRoutes = `[[repos]]
name = "gone"
url = %q
base = "main"
[[providers]]
name = "dead"
kind = "openai"
base_url = %q
model = "m"
[[routes]]
name = "lost"
on = "github.comment"
match = { command = "/reasonix lost" }
posture = "ask"
repo = "gone"
asks = { approvers = ["lead"] }
[[routes]]
name = "dead"
on = "github.comment"
match = { command = "/reasonix dead" }
posture = "ask"
model = "dead"
asks = { approvers = ["lead"] }
`

func (w *world) badSlack(t *testing.T) {
	good := w.slack.Command("C1", "UDEV", "/reasonix", "fix it")
	with := func(change func(*slackd.Delivery)) slackd.Delivery {
		d := good
		change(&d)
		return d
	}
	for _, c := range []struct {
		name   string
		d      slackd.Delivery
		status int
		says   string
	}{
		{"a wrong signature", with(func(d *slackd.Delivery) { d.Secret = "another" }), 401, "signing secret"},
		{"no signature", with(func(d *slackd.Delivery) { d.Unsigned = true }), 401, "missing"},
		{"a stale timestamp", with(func(d *slackd.Delivery) { d.At = time.Now().Add(-time.Hour) }), 401, "clock"},
		{"a body over the limit", slackd.JSON([]byte(`"` + strings.Repeat("x", 2<<20) + `"`)), 413, "1 MiB"},
		{"malformed JSON", slackd.JSON([]byte(`{"type":`)), 400, "JSON"},
		{"an unknown event", w.slack.Event(map[string]any{"type": "emoji_changed"}), 200, ""},
		{"an unknown command", w.slack.Command("C1", "UDEV", "/reasonix", "frobnicate it"), 200, "/reasonix fix"},
		{"a stranger's command", w.slack.Command("C1", "UWHO", "/reasonix", "fix it"), 200, "[[people]]"},
	} {
		if a := w.slack.Deliver(t, w.hook("team"), c.d); a.Status != c.status || !strings.Contains(a.Body, c.says) {
			t.Errorf("%s: %d %q, want %d and %q", c.name, a.Status, a.Body, c.status, c.says)
		}
	}
}

func (w *world) badGitHub(t *testing.T) {
	good := w.github.Comment("acme/api", 6, "dev", "/reasonix fix it")
	with := func(change func(*githubd.Delivery)) githubd.Delivery {
		d := good
		change(&d)
		return d
	}
	for _, c := range []struct {
		name   string
		d      githubd.Delivery
		status int
		says   string
	}{
		{"a wrong signature", with(func(d *githubd.Delivery) { d.Secret = "another" }), 401, "secret"},
		{"no signature", with(func(d *githubd.Delivery) { d.Unsigned = true }), 401, "set a secret"},
		{"the old signature alone", with(func(d *githubd.Delivery) { d.OldSign = true }), 401, "X-Hub-Signature-256"},
		{"a body over the limit", with(func(d *githubd.Delivery) { d.Body = make([]byte, 25<<20+1) }), 413, "25 MB"},
		{"malformed JSON", with(func(d *githubd.Delivery) { d.Body = []byte(`{"action":`) }), 400, "payload"},
		{"an unknown event", w.github.Payload("galaxy_formed", []byte(`{}`)), 200, ""},
	} {
		if a := w.github.Deliver(t, w.hook("hub"), c.d); a.Status != c.status || !strings.Contains(a.Body, c.says) {
			t.Errorf("%s: %d %q, want %d and %q", c.name, a.Status, a.Body, c.status, c.says)
		}
	}
	w.commentOn(5, "dev", "/reasonix frobnicate it")
	w.eventually("an unknown command is told which are known", func() bool { return strings.Contains(w.onIssue(5), "/reasonix fix") })
	if said := w.onIssue(6); said != "" {
		t.Errorf("something refused had an effect: %s", said)
	}
}

func (w *world) badConfiguration(t *testing.T) {
	path := filepath.Join(w.home, "bad.toml")
	for _, c := range []struct{ name, text, says string }{
		{"broken syntax", "default_model = \"x\"\n\n[bot\n", "bad.toml:3:"},
		{"an unknown key", "default_model = \"x\"\n[bot]\nmax_taks = 4\n", "bad.toml:3: unknown key bot.max_taks"},
		{"a value of the wrong type", "[bot]\nmax_tasks = \"four\"\n", "bad.toml:2:"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, code := w.cli("--config", path, "bot", "start"); code != 1 || !strings.Contains(out, c.says) {
			t.Errorf("%s: exit code %d, %s", c.name, code, out)
		}
	}
	if out, code := w.cli("--config", filepath.Join(w.home, "none.toml"), "bot", "start"); code != 1 || !strings.Contains(out, "none.toml") {
		t.Errorf("no file: exit code %d, %s", code, out)
	}
}

// fullDisk: what cannot be kept is not acknowledged, and the same delivery is taken once there is space again.
func (w *world) fullDisk(t *testing.T) {
	filler := filepath.Join(w.home, "filler")
	if err := fill(filler); err != nil {
		t.Fatal(err)
	}
	text := "/reasonix frobnicate " + strings.Repeat("much ", 2000)
	var refused githubd.Delivery
	for n := range 200 {
		refused = w.github.Comment("acme/api", 400+n, "dev", text)
		a := w.github.Deliver(t, w.hook("hub"), refused)
		if a.Status == http.StatusInternalServerError {
			break
		}
		if a.Status != http.StatusOK || n == 199 {
			t.Fatalf("delivery %d on a full disk: %+v", n, a)
		}
	}
	w.eventually("the log names the mend", func() bool { return strings.Contains(w.log.String(), "free space in "+w.home) })
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	w.eventually("the same delivery is taken", func() bool { return w.github.Deliver(t, w.hook("hub"), refused).Status == http.StatusOK })
}

// card asks for work on an issue and returns the request that comes of it.
func (w *world) card(t *testing.T, issue int, text string) string {
	t.Helper()
	w.commentOn(issue, "dev", text)
	w.eventually("a card on the issue", func() bool { return askIn.MatchString(w.onIssue(issue)) })
	return w.onIssue(issue)
}

func (w *world) commentOn(issue int, user, body string) {
	w.t.Helper()
	if a := w.github.Deliver(w.t, w.hook("hub"), w.github.Comment("acme/api", issue, user, body)); a.Status/100 != 2 {
		w.t.Fatalf("the comment was answered %d: %s", a.Status, a.Body)
	}
}

// onIssue is everything that the bot says on an issue.
func (w *world) onIssue(number int) string {
	var b strings.Builder
	for _, c := range w.github.BotComments() {
		if c.Number == number {
			b.WriteString(c.Body + "\n")
		}
	}
	return b.String()
}
