package github

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"reasonix/internal/chat"
)

// hostile builds texts out of the pieces that markdown tricks are made of.
func hostile(name string) *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{"```", "``", "`", "~~~", "\n", "\n\n", "    ", "- ", "> ", "@dev", "@reasonix-bot", "<details>", "<!--", "-->", "/reasonix fix",
		"/approve ask_abcdefghijklmnopqrst", "/stop", " ", "x", "\\", "\u202e", "\r\n", "$$", "<!-- reasonix:key=0 -->"})
	return rapid.Map(rapid.SliceOfN(piece, 0, 24), func(p []string) string { return strings.Join(p, "") })
}

func TestInvariant05_NoWordsHideHowAndWhatIsAsked(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		command := hostile("command").Draw(r, "command")
		m := chat.Message{Kind: chat.KindAsk, AskID: "ask_abcdefghijklmnopqrst", Title: hostile("title").Draw(r, "title"), Text: hostile("text").Draw(r, "text"),
			Blocks: []chat.Block{{Name: "command.sh", Text: command}}, Buttons: []chat.Button{{Label: "Approve", Choice: "allow"}}}
		out, err := render(m)
		if err != nil {
			r.Fatal(err)
		}
		if strings.TrimSuffix(command, "\n") != "" && !strings.Contains(out.main, fenced("", chat.Visible(command))) {
			r.Fatalf("the command is not shown whole:\n%s", out.main)
		}
		before, _, _ := strings.Cut(out.main, "**command.sh**")
		if command == "" {
			before = out.main
		}
		var code fence
		for _, line := range strings.Split(before, "\n") {
			code.next(line)
		}
		if code.open != "" || strings.Contains(before, "<details") || strings.Contains(before, "<!--") || mention.MatchString(before) && !strings.ContainsAny(before, "`~") {
			r.Fatalf("words around the ask reach into it:\n%s", before)
		}
		if !strings.Contains(out.main, "\n- Approve: `/approve ask_abcdefghijklmnopqrst`") || markOf(out.main) != "" {
			r.Fatalf("the ask does not say how to answer, or carries a foreign mark:\n%s", out.main)
		}
	})
}

func TestInvariant04_CommandsAreOnlyWholeLinesOutsideOfCode(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		body := hostile("body").Draw(r, "body")
		list := commands("```\n"+strings.NewReplacer("`", "", "~", "").Replace(body)+"\n```", "reasonix-bot")
		if len(list) != 0 {
			r.Fatalf("code holds %d commands: %q", len(list), body)
		}
		for _, c := range commands(body, "reasonix-bot") {
			if c.verb == chat.VerbPress && !chat.IsAskID(c.press.AskID) {
				r.Fatalf("a press of %q out of %q", c.press.AskID, body)
			}
		}
	})
}
