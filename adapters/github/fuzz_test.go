package github

import (
	"strings"
	"testing"
	"unicode/utf8"

	"reasonix/internal/chat"
)

func FuzzCommands(f *testing.F) {
	f.Add("/reasonix fix\r\n```\n/stop\n```\n@reasonix-bot status\n/approve ask_abcdefghijklmnopqrst")
	f.Add("<!-- /x -->\n/answer ask_abcdefghijklmnopqrst\n")
	f.Fuzz(func(t *testing.T, body string) {
		list := commands(body, "reasonix-bot")
		if len(list) > maxCommands {
			t.Fatalf("%d commands", len(list))
		}
		lower := strings.ToLower(body)
		for _, c := range list {
			if c.verb == chat.VerbPress && (!chat.IsAskID(c.press.AskID) || !strings.Contains(lower, c.press.AskID)) {
				t.Fatalf("a press of %q out of %q", c.press.AskID, body)
			}
		}
		for _, line := range strings.Split(body, "\n") {
			if strings.HasPrefix(line, "/") || strings.HasPrefix(line, "@") {
				return
			}
		}
		if len(list) > 0 {
			t.Fatalf("%q holds no line that could be a command, yet: %+v", body, list)
		}
	})
}

func FuzzRender(f *testing.F) {
	f.Add("text @dev <details> <!-- \n```\nx", "echo ``` \u202e", "Approve", 1)
	f.Add("- ```\n  x\n  ```\n<details>", strings.Repeat("`", 50), "<b>", 9000)
	f.Fuzz(func(t *testing.T, text, verbatim, label string, times int) {
		if times < 0 || times > 20000 {
			times = 1
		}
		big := strings.Repeat(verbatim, min(times, 200000/(len(verbatim)+1)))
		r, err := render(chat.Message{Kind: chat.KindAsk, AskID: "ask_abcdefghijklmnopqrst", Title: clip(label, 100), Text: text, Footer: clip(label, 100),
			Fields: []chat.Field{{Label: clip(label, 100), Value: text}}, Blocks: []chat.Block{{Name: clip(label, 100), Lang: label, Text: big}},
			Buttons: []chat.Button{{Label: clip(label, 100), Choice: "allow"}}})
		if err != nil {
			t.Skip(err)
		}
		for _, c := range append(r.parts, r.main) {
			if n := utf8.RuneCountInString(c); n > 65000 {
				t.Fatalf("a comment of %d characters", n)
			}
		}
		if !strings.Contains(r.main, "`/approve ask_abcdefghijklmnopqrst`") {
			t.Fatalf("the ask does not say how to answer:\n%s", r.main)
		}
		if len(r.parts) == 0 && big != "" && !strings.Contains(strings.ReplaceAll(r.main, "\n    ", "\n"), strings.TrimSuffix(chat.Visible(big), "\n")) {
			t.Fatal("the command is not shown whole")
		}
		if markOf(r.main) != "" {
			t.Fatal("text passes as a mark")
		}
	})
}
