package tui

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"reasonix/internal/agent"
	"reasonix/internal/budget"
	"reasonix/internal/permission"
	"reasonix/internal/provider"
	"reasonix/internal/session"
)

var toFiles = files{project: "/w/reasonix.toml", user: "/h/config.toml"}

func action() agent.Pending {
	return agent.Pending{CallID: "c", Kind: "approval", Tool: "bash", Title: "Allow bash?", Text: "go test ./...", Digest: "d1",
		Decision: permission.Decision{Reason: "no rule matched", Class: permission.Plain}, Offers: []string{"Bash=go test ./...", "Bash(go test:*)"}}
}

func TestACardShowsTheWholeActionAndWhatAnAnswerWillCover(t *testing.T) {
	p := action()
	p.Text = strings.Repeat("echo a very long line; ", 400) + "rm -rf \u202e/tmp/x"
	got := cardOf(p, toFiles).text()
	for _, want := range []string{`rm -rf \u{202e}/tmp/x`, "digest: d1", "asked because: no rule matched", "[s] for this session: exactly this line",
		"[p] always in this project, written into /w/reasonix.toml", "[u] always, written into /h/config.toml", "as in s2: Bash(go test:*)"} {
		if !strings.Contains(got, want) {
			t.Errorf("the card lacks %q:\n%s", want, got[max(0, len(got)-1500):])
		}
	}
	if strings.Count(got, "echo a very long line") != 400 {
		t.Error("the action was cut")
	}
	for line := range strings.SplitSeq(cardOf(agent.Pending{Text: "one\n[y] two", Title: "t"}, toFiles).text(), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "[y] two") {
			t.Error("text of the model can pose as a choice")
		}
	}
}

func TestOnlyAnExactKeyIsAnAnswer(t *testing.T) {
	plan := agent.Pending{Kind: "plan", Title: "Approve the plan?", Text: "x"}
	question := agent.Pending{Kind: "question", Title: "Which?", Options: []string{"red", "blue"}}
	write := agent.Pending{Kind: "approval", Tool: "write_file", Decision: permission.Decision{Kind: permission.KindWrite, Writes: []string{"/x/a.txt", "/x/b.txt"}, Folders: []string{"/x"}}}
	config := agent.Pending{Kind: "approval", Tool: "write_file", Offers: []string{"Edit(reasonix.toml)"}, Decision: permission.Decision{Kind: permission.KindConfig}}
	cases := []struct {
		name   string
		p      agent.Pending
		line   string
		answer string // empty: refused
		scope  Scope
		rule   string
		text   string
	}{
		{"once", action(), " y ", "allow", Once, "", ""},
		{"upper case", action(), "Y", "allow", Once, "", ""},
		{"session", action(), "s", "allow", Session, "Bash=go test ./...", ""},
		{"the wider rule", action(), "u2", "allow", User, "Bash(go test:*)", ""},
		{"no such rule", action(), "s3", "", "", "", ""},
		{"no", action(), "n use make", "deny", "", "", "use make"},
		{"prose is no consent", action(), "yes please", "", "", "", ""},
		{"yes with a condition is none", action(), "y but only once", "", "", "", ""},
		{"empty", action(), "", "", "", "", ""},
		{"plan", plan, "y", "approve", "", "", ""},
		{"plan with changes", plan, "c smaller", "approve-changes", "", "", "smaller"},
		{"changes without any", plan, "c", "", "", "", ""},
		{"reject", plan, "n", "reject", "", "", ""},
		{"a plan is granted once", plan, "s", "", "", "", ""},
		{"option", question, "2", "answer", "", "", "blue"},
		{"own answer", question, "2 of them", "answer", "", "", "2 of them"},
		{"no answer", question, "  ", "", "", "", ""},
		{"write access to the folder", write, "p", "allow", Project, "", ""},
		{"managed configuration is never granted", config, "s", "", "", "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := cardOf(c.p, toFiles).pick(c.line)
			if (err == nil) != (c.answer != "") {
				t.Fatalf("got %+v, %v", got, err)
			}
			if err == nil && (got.answer != c.answer || got.scope != c.scope || got.rule != c.rule || got.text != c.text) {
				t.Errorf("got %s %s %q %q", got.answer, got.scope, got.rule, got.text)
			}
		})
	}
	got, err := cardOf(write, toFiles).pick("s")
	if err != nil || len(got.dirs) != 1 || got.dirs[0] != "/x" {
		t.Errorf("folders %v, %v", got.dirs, err)
	}
}

func note(name string, data any) session.Entry {
	raw, _ := json.Marshal(data)
	return session.Entry{Kind: session.KindNote, Name: name, Data: raw}
}

func TestTheTranscriptTellsWhereTheConversationStands(t *testing.T) {
	var s state
	apply := func(entries ...session.Entry) {
		for _, e := range entries {
			s.apply(e)
		}
	}
	end := func(stop agent.Stop) session.Entry {
		raw, _ := json.Marshal(map[string]any{"stop": stop, "ms": 1500})
		return session.Entry{Kind: session.KindEnd, Data: raw}
	}
	call := session.Entry{Kind: session.KindAssistant, Message: &provider.Message{Role: provider.RoleAssistant, ToolCalls: []provider.ToolCall{{ID: "c1", Name: "bash"}}}}
	if s.unfinished() || s.asking() {
		t.Fatal("nothing was asked for yet")
	}
	apply(note(noteRequest, Request{Key: "k1", Mode: "run", Text: "do"}), call, session.Entry{Kind: session.KindUsage, Usage: &provider.Usage{Input: 10, Output: 2}})
	if !s.unfinished() || s.asking() {
		t.Fatal("a request that was killed while it ran is unfinished and asks nothing")
	}
	apply(session.Entry{Kind: session.KindPending, CallID: "c1", Data: json.RawMessage(`{}`)})
	if !s.asking() {
		t.Fatal("a question that was written before the kill is open")
	}
	apply(session.Entry{Kind: session.KindDecision, CallID: "c1", Data: json.RawMessage(`{}`)}, end(agent.StopDone))
	if s.unfinished() || s.spent.Tokens != 12 || s.spent.Time.Milliseconds() != 1500 {
		t.Fatalf("done; spent %+v", s.spent)
	}
	apply(note(noteGrant, Grant{Rule: "Bash=ls"}), note(noteGrant, Grant{Dir: "/x"}), note(noteGrant, Grant{Rule: "Bash=ls", Revoked: true}), note(noteLimits, budget.Limits{Steps: 3}))
	if len(s.rules()) != 0 || len(s.dirs()) != 1 || s.limits == nil || s.limits.Steps != 3 {
		t.Fatalf("grants %v, limits %+v", s.grants, *s.limits)
	}
	apply(note(noteRequest, Request{Key: "k2", Mode: "goal", Text: "reach"}), end(agent.StopBlocked))
	if !s.pursuing() || s.spent.Tokens != 0 {
		t.Fatal("a blocked goal is still pursued, and a new request counts from nought")
	}
	if apply(note(noteRequest, Request{})); s.pursuing() || s.unfinished() {
		t.Fatal("it was given up")
	}
}

// However text is cut into pieces, the lines are the same, none is wider than the screen, and nothing is lost.
func TestStreamedTextBecomesLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-z]{1,12}[ \n]){0,40}`).Draw(t, "text")
		width := rapid.IntRange(1, 20).Draw(t, "width")
		f := flow{width: width}
		var out strings.Builder
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			out.WriteString(f.push(rest[:n]))
			rest = rest[n:]
		}
		out.WriteString(f.flush())
		for line := range strings.SplitSeq(out.String(), "\n") {
			if len(line) > width {
				t.Fatalf("a line of %d: %q", len(line), line)
			}
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if squeeze(out.String()) != squeeze(text) {
			t.Fatalf("%q became %q", text, out.String())
		}
	})
}

func TestTheTabKeyCompletesCommands(t *testing.T) {
	for line, want := range map[string]string{"/pos": "/posture ", "/p": "/p", "/res": "/resume ", "/perm": "/permissions "} {
		if got, _, ok := complete(line, len(line), '\t'); !ok || got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
	if _, _, ok := complete("hello", 5, '\t'); ok {
		t.Error("messages are not completed")
	}
}

func TestLinesAreReadWholeAndLongOnesAreDropped(t *testing.T) {
	long := strings.Repeat("a", 3<<20)
	in := bufio.NewReaderSize(strings.NewReader("one\r\ntwo \\\nthree\n"+long+"\nfour\n"+strings.Repeat("b", 70<<10)+"\nlast"), 64<<10)
	for _, want := range []string{"one", "two \nthree", "", "four", strings.Repeat("b", 70<<10), "last"} {
		got, err := readWhole(in)
		if got != want || (err != nil) != (want == "") {
			t.Fatalf("got %.20q (%d), %v; want %.20q", got, len(got), err, want)
		}
	}
	if _, err := readWhole(in); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// However the bytes arrive, a paste is one text, wherever in the line it begins, and Ctrl-C is no key.
func TestAPasteIsOneText(t *testing.T) {
	typed := "look: \x1b[200~one\r\ntwo\n\x1b[31mthree\x03\tx\x1b[201~ y\x03\x1b[A\r"
	for size := 1; size <= len(typed); size++ {
		stops := 0
		k := &keys{in: &inPieces{rest: typed, size: size}, stop: func() { stops++ }}
		got, err := io.ReadAll(k)
		if want := "look: \x1b[200~one␤two␤[31mthree\tx\x1b[201~ y\x1b[A\r"; string(got) != want || err != nil {
			t.Fatalf("in pieces of %d: %q, %v", size, got, err)
		}
		if stops != 1 {
			t.Fatalf("in pieces of %d: %d stops", size, stops)
		}
	}
}

type inPieces struct {
	rest string
	size int
}

func (p *inPieces) Read(b []byte) (int, error) {
	if p.rest == "" {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(p.size, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}

func TestACardSaysWhichAnswersThereAre(t *testing.T) {
	want := "Answer with y, s, s2, p, p2, u, u2, n. n TEXT says no and tells the model why. Ctrl-C leaves it open."
	if got := cardOf(action(), toFiles).ways(); got != want {
		t.Errorf("%s", got)
	}
}

// What two turns say does not run into one line, with no call between them.
func TestATurnBeginsItsOwnLine(t *testing.T) {
	var out strings.Builder
	p := NewPlain(strings.NewReader(""), &out, nil)
	defer p.Close()
	for _, o := range []agent.Observation{{Kind: "turn"}, {Kind: "text", Text: "First."}, {Kind: "turn"}, {Kind: "text", Text: "Second."}} {
		p.Observe(o)
	}
	if out.String() != "First.\nSecond." {
		t.Errorf("%q", out.String())
	}
}
