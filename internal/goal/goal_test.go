package goal

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"reasonix/internal/provider"
	"reasonix/internal/session"
	"reasonix/internal/tool"
)

func TestTheModelsReportDecidesAndSilenceNeverEndsAGoal(t *testing.T) {
	blocked := func(reason string) *Report { return &Report{Disposition: Blocked, Reason: reason} }
	cases := []struct {
		name    string
		repeats int
		reports []*Report
		ended   string // per turn: . goes on, E ended
		next    string // in the last turn's next message
	}{
		{"complete ends", 0, []*Report{{Disposition: Complete}}, "E", ""},
		{"continue goes on with its next action", 0, []*Report{{Disposition: Continue, Next: "run the tests"}}, ".", "Go on with: run the tests"},
		{"continue without a next action", 0, []*Report{{Disposition: Continue}}, ".", "still active"},
		{"blocked parks at once by default", 0, []*Report{blocked("no key")}, "E", ""},
		{"the same reason three times", 3, []*Report{blocked("No key!"), blocked("no  key"), blocked("NO KEY.")}, "..E", ""},
		{"another reason begins again", 3, []*Report{blocked("no key"), blocked("no key"), blocked("no disk"), blocked("no disk")}, "....", "Try once more"},
		{"a report between begins again", 2, []*Report{blocked("no key"), {Disposition: Continue}, blocked("no key")}, "...", "Try once more"},
		{"silence goes on", 0, []*Report{nil}, ".", "without a report"},
		{"much silence asks for another way", 0, []*Report{nil, nil, nil, nil}, "....", "4 turns in a row ended without a report"},
		{"signs alone are compared as they are", 2, []*Report{blocked("???"), blocked("!!!"), blocked("!!!")}, "..E", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			turn, ended, next := Turn{GoalID: "g1"}, "", ""
			for i, r := range c.reports {
				turn = Decide(turn, r, c.repeats)
				if turn.N != i+1 || turn.GoalID != "g1" {
					t.Errorf("turn %+v", turn)
				}
				ended += map[bool]string{true: "E", false: "."}[turn.Ended]
				next = Next(turn, r)
			}
			if ended != c.ended || !strings.Contains(next, c.next) {
				t.Errorf("ended %s, want %s; next %q, want %q", ended, c.ended, next, c.next)
			}
		})
	}
}

func TestOnlyAReportEndsAGoal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turn, repeats := Turn{}, rapid.IntRange(-1, 4).Draw(t, "repeats")
		for range rapid.IntRange(1, 50).Draw(t, "turns") {
			r := rapid.SampledFrom([]*Report{nil, nil, {Disposition: Continue}}).Draw(t, "report")
			if turn = Decide(turn, r, repeats); turn.Ended {
				t.Fatal("it ended")
			}
		}
	})
}

func note(kind string, v any) session.Entry {
	b, _ := json.Marshal(v)
	return session.Entry{Kind: session.KindNote, Name: kind, Data: b}
}

func said(key string) session.Entry {
	return session.Entry{Kind: session.KindUser, Name: key, Message: &provider.Message{Role: provider.RoleUser, Content: "x"}}
}

func TestALateReportOfAReplacedGoalChangesNothing(t *testing.T) {
	s := State{GoalID: ID("second request")}
	s.Apply(note(NoteReport, Report{Disposition: Complete, GoalID: ID("first request")}))
	s.Apply(note(NoteTurn, Turn{GoalID: ID("first request"), N: 7, Ended: true}))
	if s.Report != nil || s.Turn.N != 0 {
		t.Fatalf("state %+v", s)
	}
	s.Apply(note(NoteReport, Report{Disposition: Continue, GoalID: s.GoalID}))
	if s.Report == nil || s.Last == nil {
		t.Fatal("its own report must count")
	}
	first, again := ID("a"), ID("a")
	if first == ID("b") || first != again {
		t.Fatal("the id must follow the request")
	}
}

func TestAPersonsWordBeginsAFreshAudit(t *testing.T) {
	s := State{GoalID: "g"}
	s.Apply(note(NoteTurn, Turn{GoalID: "g", N: 2, Status: Blocked, Reason: "no key", Repeats: 2, Ended: true}))
	s.Apply(said(KeyPrefix + "g:2")) // the host's own message
	s.Apply(said(""))
	if !s.Turn.Ended {
		t.Fatal("the host's message must not open the goal again")
	}
	s.Apply(said("ask:17"))
	if s.Turn.Ended || s.Turn.Repeats != 0 || s.Turn.N != 2 {
		t.Fatalf("after a person's word: %+v", s.Turn)
	}
}

func TestTheToolKeepsTheReportAndBindsItToItsGoal(t *testing.T) {
	var kept string
	env := tool.Env{Note: func(kind string, data json.RawMessage) { kept = kind + " " + string(data) }}
	u := NewBound(env, "g42")
	text, err := u.Execute(t.Context(), []byte(`{"status":"continue","next_action":"run it","goal_id":"g1"}`))
	if err != nil || text != "reported: continue" || kept != `goal_report {"status":"continue","next_action":"run it","goal_id":"g42"}` {
		t.Fatalf("%q, %v, kept %s", text, err, kept)
	}
	for args, want := range map[string]string{
		`{"status":"blocked"}`: "needs a reason",
		`{"status":"done"}`:    "not one of",
		`{"status":"complete","summary":"` + strings.Repeat("x", maxText+1) + `"}`: "longer than",
		`{`: "read the report",
	} {
		kept = ""
		if _, err := u.Execute(t.Context(), []byte(args)); err == nil || !strings.Contains(err.Error(), want) || kept != "" {
			t.Errorf("%.40s: %v, kept %q", args, err, kept)
		}
	}
	if New(tool.Env{}) != nil {
		t.Error("without a note port the tool must not be offered")
	}
	if !json.Valid(u.Schema()) || !u.ReadOnly() {
		t.Error("schema")
	}
}

func TestTheBlockNamesTheSectionsOfTheContract(t *testing.T) {
	objective := "## Context\nan old service\n**Request:** move it\noutput format: a list\nConstraints apply here as prose.\n# Pause policy\nbefore publishing"
	got := Sections(objective)
	if strings.Join(got, ", ") != "Context, Request, Output format, Pause policy" {
		t.Fatalf("sections %q", got)
	}
	b := Block("g1", objective)
	for _, want := range []string{"[goal g1]", objective, "(Context, Request, Output format, Pause policy) are the boundary", "update_goal"} {
		if !strings.Contains(b, want) {
			t.Errorf("the block lacks %q:\n%s", want, b)
		}
	}
	if b := Block("g1", "just fix it"); !strings.Contains(b, "infer a light contract") {
		t.Errorf("block:\n%s", b)
	}
}
