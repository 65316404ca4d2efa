package slack

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"reasonix/internal/chat"
)

// live is what Slack would take for a mention, a channel or a broadcast.
var live = regexp.MustCompile(`<[@!#]`)

func FuzzRender(f *testing.F) {
	f.Add("# Title\n\n- **bold** [x](https://example.org) `code`\n```go\na < b\n```\n<!channel> <@U1>", "rm -rf / \u202e", "Approve")
	f.Add(strings.Repeat("```\nx\n", 3000), strings.Repeat("`", 9000), strings.Repeat("ü", 200))
	f.Fuzz(func(t *testing.T, text, verbatim, label string) {
		r, err := render(chat.Message{Kind: chat.KindAsk, AskID: "ask_abcdefghijklmnopqrst", Title: label, Text: text, Footer: text,
			Fields: []chat.Field{{Label: label, Value: text}, {Label: "x", Value: verbatim}}, Blocks: []chat.Block{{Name: label, Text: verbatim}},
			Buttons: []chat.Button{{Label: label + "x", Choice: "allow"}}})
		if err != nil {
			t.Skip(err)
		}
		if len(r.blocks) > 50 {
			t.Fatalf("%d blocks", len(r.blocks))
		}
		for _, b := range r.blocks {
			s, ok := b.(*slack.SectionBlock)
			if !ok {
				continue
			}
			texts := s.Fields
			if s.Text != nil {
				texts = append(texts, s.Text)
			}
			for _, x := range texts {
				if n := utf8.RuneCountInString(x.Text); n > 3000 || n == 0 {
					t.Fatalf("a section of %d characters", n)
				}
				if live.MatchString(x.Text) {
					t.Fatalf("text calls somebody: %q", x.Text)
				}
			}
		}
		whole := strings.Join(shownIn(r), "\n")
		if want := chat.Visible(verbatim); want != "" && !strings.Contains(whole, want) {
			t.Fatalf("the command is not shown whole")
		}
	})
}

// shownIn is every verbatim text in place and every file.
func shownIn(r rendered) []string {
	var list []string
	for _, b := range r.blocks {
		rich, ok := b.(*slack.RichTextBlock)
		if !ok {
			continue
		}
		for _, e := range rich.Elements {
			if pre, ok := e.(*slack.RichTextPreformatted); ok {
				list = append(list, pre.Elements[0].(*slack.RichTextSectionTextElement).Text)
			}
		}
	}
	for _, f := range r.files {
		list = append(list, f.text)
	}
	return list
}

func FuzzInbound(f *testing.F) {
	f.Add(`{"type":"event_callback","team_id":"T","event":{"type":"message","user":"U","text":"<@U0> hi","ts":"1.2","channel":"C"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		var env envelope
		if json.Unmarshal([]byte(body), &env) != nil {
			return
		}
		var m message
		if json.Unmarshal(env.Event, &m) != nil {
			return
		}
		in := &inbound{Door: &Door{}}
		if in.unheard(env, m, identity{UserID: "U0"}) != "" {
			return
		}
		text, mentioned := plainText(m.Text, "U0")
		e := chat.Event{Text: text}
		readVerb(&e, m, mentioned)
		if e.Verb == chat.VerbPress && !chat.IsAskID(e.Press.AskID) {
			t.Fatalf("a press of %q", e.Press.AskID)
		}
	})
}
