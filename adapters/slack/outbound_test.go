package slack_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reasonix/internal/chat"
	"reasonix/internal/chat/chattest"
	"reasonix/internal/testkit/slackd"
)

var update = flag.Bool("update", false, "write the golden files anew")

var lead = chat.Actor{Kind: "slack", ID: "U_LEAD"}

func approveDeny() []chat.Button {
	return []chat.Button{{Label: "Approve", Choice: "allow", Style: "primary"}, {Label: "Deny", Choice: "deny", Style: "danger"}}
}

func askMessage(command string) chat.Message {
	return chat.Message{Kind: chat.KindAsk, TaskID: "task_1", AskID: chattest.AskID, Title: "May I run this command?",
		Text:     "The tests need it.",
		Blocks:   []chat.Block{{Name: "command.sh", Lang: "bash", Text: command}},
		Fields:   []chat.Field{{Label: "Digest", Value: "sha256:1f2e3d"}, {Label: "Folder", Value: "/workspace <api>"}},
		Buttons:  approveDeny(),
		Mentions: []chat.Actor{lead, {Kind: "github", ID: "lead-dev"}},
		Footer:   "Answer until tomorrow 12:00 UTC.",
	}
}

func TestMessagesAsSlackShowsThem(t *testing.T) {
	settled := askMessage("go test ./...")
	settled.Settled, settled.Text = true, "Approved by lead."
	question := chat.Message{Kind: chat.KindAsk, AskID: chattest.AskID, Title: "Which port?", Buttons: []chat.Button{
		{Label: "8080", Choice: "8080"}, {Label: "Something else", Choice: "answer", Input: true},
		{Label: "A very long choice that does not fit on a button because it explains itself at length", Choice: "long"}}}
	cases := map[string]chat.Message{
		"ack":      {Kind: chat.KindAck, Title: "Working on it", Text: "Task `task_1` on branch `reasonix/fix-login`."},
		"ask":      askMessage("go test ./..."),
		"tricks":   askMessage("echo `id` ``` <!channel> & \u202egnp.exe\u200b\x1b[2J\r\nrm -rf /"),
		"long":     askMessage("#!/bin/sh\n" + strings.Repeat("echo 0123456789\n", 312)),
		"settled":  settled,
		"question": question,
		"result": {Kind: chat.KindResult, Title: "Done", Text: "# What changed\n\n- fixed **two** tests\n- see [the run](https://example.org/1)\n\n```go\nif a < b && c > d {}\n```\nThanks <@U1> and <!everyone>",
			Fields: []chat.Field{{Label: "Cost", Value: "0.12 USD"}, {Label: "Steps", Value: "14"}}},
	}
	for name, m := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t)
			root := w.Say("C1", "", "U1", "start")["ts"].(string)
			if _, err := w.door.Send(t.Context(), chat.Post{Key: "k", Created: time.Now(), Message: m,
				Place: chat.Place{Connection: "acme", Kind: "slack", Channel: "C1", Thread: root}}); err != nil {
				t.Fatal(err)
			}
			p := w.BotPosts()[0]
			files := map[string]string{}
			for _, f := range w.Files() {
				files[f.Name] = fmt.Sprintf("%d characters in thread: %v", len([]rune(f.Content)), f.ThreadTS == root)
			}
			golden(t, name+".json", map[string]any{"text": p.Text, "blocks": p.Blocks, "files": files})
		})
	}
}

func golden(t *testing.T, name string, v any) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Fatalf("%s (run the test with -update to accept):\n%s", name, diff)
	}
}

func TestInvariant05_NoButtonBeforeTheWholeTextCanBeRead(t *testing.T) {
	w := newWorkspace(t)
	command := "curl https://example.org/setup | sh " + strings.Repeat("--flag ", 700) + "&& rm -rf ~/tail"
	post := chat.Post{Key: "ask-long", Created: time.Now(), Message: askMessage(command),
		Place: chat.Place{Connection: "acme", Kind: "slack", Channel: "C1", Thread: w.Say("C1", "", "U1", "x")["ts"].(string)}}
	for _, step := range []string{"files.getUploadURLExternal", "files.completeUploadExternal"} {
		w.Fail(step, slackd.Fault{Status: 500})
		var again *chat.RetryError
		if _, err := w.door.Send(t.Context(), post); !errors.As(err, &again) {
			t.Fatalf("%s: got %v, want a retry", step, err)
		}
		if n := len(w.BotPosts()); n != 0 {
			t.Fatalf("a card stands there although its text could not be sent along")
		}
	}
	if _, err := w.door.Send(t.Context(), post); err != nil {
		t.Fatal(err)
	}
	files := w.Files()
	if len(files) != 1 || files[0].Content != command || files[0].ThreadTS != post.Place.Thread {
		t.Fatalf("the file does not hold the whole command: %d files", len(files))
	}
	all := w.Posts()
	if last := all[len(all)-1]; len(last.Buttons()) != 2 || len(all[len(all)-2].Files) != 1 {
		t.Fatalf("the card does not stand after its file")
	}
	if shown := w.BotPosts()[0].Shown(); !strings.Contains(shown, "whole text in the file above") || !strings.Contains(shown, "sha256:1f2e3d") {
		t.Fatalf("the card shows %s", shown)
	}
	// the card fails after the file went up: the retry does not send the file again
	post.Key = "ask-long-2"
	w.Fail("chat.postMessage", slackd.Fault{RetryAfter: 3})
	for range 2 {
		_, _ = w.door.Send(t.Context(), post)
	}
	if n := len(w.Files()); n != 2 {
		t.Fatalf("%d files stand there for two cards", n)
	}
}

func TestInvariant05_CommandsAreShownLetterByLetter(t *testing.T) {
	w := newWorkspace(t)
	m := askMessage("echo ``` <@U1> & \u202eevil\u200b")
	if _, err := w.door.Send(t.Context(), chat.Post{Key: "k", Created: time.Now(), Message: m, Place: chat.Place{Connection: "acme", Channel: "C1"}}); err != nil {
		t.Fatal(err)
	}
	for _, b := range w.BotPosts()[0].Blocks {
		raw, _ := json.Marshal(b)
		if !strings.Contains(string(raw), "evil") {
			continue
		}
		if b["type"] != "rich_text" || !strings.Contains(string(raw), `rich_text_preformatted`) {
			t.Fatalf("the command stands in a block that reads markup: %s", raw)
		}
		if !strings.Contains(string(raw), `\\u{202e}evil\\u{200b}`) {
			t.Fatalf("invisible characters stay invisible: %s", raw)
		}
		return
	}
	t.Fatal("the command is not shown")
}

func TestHugeMessagesFitAndLoseNothing(t *testing.T) {
	w := newWorkspace(t)
	m := chat.Message{Kind: chat.KindResult, Title: strings.Repeat("T", 500), Text: strings.Repeat("word ", 10000), Footer: strings.Repeat("f", 3000)}
	for i := range 60 {
		m.Fields = append(m.Fields, chat.Field{Label: fmt.Sprintf("fact %d", i), Value: strings.Repeat("v", 50)})
	}
	m.Fields = append(m.Fields, chat.Field{Label: "long fact", Value: strings.Repeat("ü", 5000)})
	for i := range 20 {
		m.Blocks = append(m.Blocks, chat.Block{Name: fmt.Sprintf("out-%d.txt", i), Text: strings.Repeat("x", 1000)})
	}
	for i := range 20 {
		m.Buttons = append(m.Buttons, chat.Button{Label: fmt.Sprintf("choice %d", i), Choice: fmt.Sprint(i)})
	}
	m.Kind, m.AskID = chat.KindAsk, chattest.AskID
	if _, err := w.door.Send(t.Context(), chat.Post{Key: "k", Created: time.Now(), Message: m, Place: chat.Place{Connection: "acme", Channel: "C1"}}); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range w.Files() {
		files[f.Name] = f.Content
	}
	if files["message.md"] != strings.TrimSpace(m.Text) && files["message.md"] != m.Text {
		t.Error("the long text is not whole")
	}
	if !strings.Contains(files["facts.txt"], strings.Repeat("ü", 5000)) {
		t.Error("the long fact is not whole")
	}
	if len(files["out-19.txt"]) != 1000 {
		t.Error("the last block is not whole")
	}
}

func TestErrorsOfSlackKeepTheirMeaning(t *testing.T) {
	cases := []struct {
		fault slackd.Fault
		want  string
	}{
		{slackd.Fault{Error: "is_archived"}, "gone"},
		{slackd.Fault{Error: "not_in_channel"}, "gone"},
		{slackd.Fault{Error: "ratelimited"}, "retry"},
		{slackd.Fault{Error: "fatal_error"}, "uncertain"},
		{slackd.Fault{Status: 503}, "uncertain"},
		{slackd.Fault{DropBefore: true}, "uncertain"},
		{slackd.Fault{Error: "missing_scope"}, "other"},
		{slackd.Fault{Error: "msg_too_long"}, "other"},
	}
	for _, c := range cases {
		w := newWorkspace(t)
		w.Fail("chat.postMessage", c.fault)
		_, err := w.door.Send(t.Context(), chat.Post{Key: "k", Created: time.Now(), Message: askMessage("ls"), Place: chat.Place{Connection: "acme", Channel: "C1"}})
		if got := meaning(err); got != c.want {
			t.Errorf("%+v: %s (%v), want %s", c.fault, got, err, c.want)
		}
		// an edit may be repeated, so nothing about it is uncertain
		ref, err := w.door.Send(t.Context(), chat.Post{Key: "k2", Created: time.Now(), Message: askMessage("ls"), Place: chat.Place{Connection: "acme", Channel: "C1"}})
		if err != nil {
			t.Fatal(err)
		}
		w.Fail("chat.update", c.fault)
		_, err = w.door.Send(t.Context(), chat.Post{Key: "k3", Edits: &ref, Message: askMessage("ls"), Place: chat.Place{Connection: "acme", Channel: "C1"}})
		if got := meaning(err); got != strings.Replace(c.want, "uncertain", "retry", 1) {
			t.Errorf("edit, %+v: %s (%v)", c.fault, got, err)
		}
	}
}

func meaning(err error) string {
	var again *chat.RetryError
	switch {
	case err == nil:
		return "none"
	case errors.Is(err, chat.ErrGone):
		return "gone"
	case errors.Is(err, chat.ErrUncertain):
		return "uncertain"
	case errors.As(err, &again):
		return "retry"
	}
	return "other"
}

func TestInvariant07_APostThatPeopleCopiedIsNotTakenForOurs(t *testing.T) {
	w := newWorkspace(t)
	post := chat.Post{Key: "k", Created: time.Now(), Message: askMessage("ls"), Place: chat.Place{Connection: "acme", Channel: "C1"}}
	w.Forge("C1", "U_OTHER", "B_OTHER", `{"event_type":"reasonix_post","event_payload":{"key":"`+chat.KeyDigest("k")+`"}}`)
	if _, found, err := w.door.Lookup(t.Context(), post); err != nil || found {
		t.Fatalf("found %v, %v", found, err)
	}
}

func TestDoctorNamesWhatIsMissing(t *testing.T) {
	w := newWorkspace(t)
	w.Scopes = "chat:write,commands"
	text := fmt.Sprint(w.door.Check(t.Context()))
	if !strings.Contains(text, "not granted: files:write") {
		t.Errorf("doctor says %s", text)
	}
	w.Fail("auth.test", slackd.Fault{Error: "invalid_auth"})
	items := w.door.Check(t.Context())
	if items[0].OK || !strings.Contains(items[0].Mend, "TOKEN") {
		t.Errorf("doctor says %+v", items)
	}
}
