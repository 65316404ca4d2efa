package goal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"reasonix/internal/session"
)

// NoteTurn is the kind of the note that ends every turn of a goal; its data is a Turn.
const NoteTurn = "goal_turn"

// KeyPrefix begins the key of every user message that the host writes to go on with a goal. Any other user message is a
// person's word: it begins a fresh audit of blocked reasons.
const KeyPrefix = "goal:"

// redirectAfter is the number of turns in a row without a report after which the host asks for another way.
const redirectAfter = 3

// Turn is how one turn of the goal ended.
type Turn struct {
	GoalID  string      `json:"goal_id"`
	N       int         `json:"n"` // from 1, within the goal
	Status  Disposition `json:"status,omitempty"`
	Reason  string      `json:"reason,omitempty"` // normalised, of a blocked report
	Repeats int         `json:"repeats,omitempty"`
	Missing int         `json:"missing,omitempty"` // turns in a row without a report
	Ended   bool        `json:"ended,omitempty"`   // complete, or blocked often enough
}

// ID names the lifecycle of a goal: the same request key gives the same goal, another one replaces it.
func ID(requestKey string) string {
	sum := sha256.Sum256([]byte(requestKey))
	return "g" + hex.EncodeToString(sum[:6])
}

// State follows the transcript of a session and knows where its goal stands. The zero value with an id is a fresh goal.
type State struct {
	GoalID string
	Report *Report // of the turn that is not ended yet, nil when it is missing
	Last   *Report // newest report of this goal
	Turn   Turn    // the last ended turn
}

// Apply takes the next entry. Reports of other goals change nothing.
func (s *State) Apply(e session.Entry) {
	switch {
	case e.Kind == session.KindUser && e.Name != "" && !strings.HasPrefix(e.Name, KeyPrefix):
		s.Report, s.Turn = nil, Turn{GoalID: s.GoalID, N: s.Turn.N}
	case e.Kind == session.KindNote && e.Name == NoteReport:
		var r Report
		if json.Unmarshal(e.Data, &r) == nil && r.GoalID == s.GoalID {
			s.Report, s.Last = &r, &r
		}
	case e.Kind == session.KindNote && e.Name == NoteTurn:
		var t Turn
		if json.Unmarshal(e.Data, &t) == nil && t.GoalID == s.GoalID {
			s.Report, s.Turn = nil, t
		}
	}
}

// Decide ends a turn: it gives the Turn to record. repeats is how often the same reason must come in a row before the goal
// counts as blocked; below 1 means 1. The model's word decides; silence never ends a goal.
func Decide(last Turn, report *Report, repeats int) Turn {
	t := Turn{GoalID: last.GoalID, N: last.N + 1}
	if report == nil {
		t.Missing = last.Missing + 1
		return t
	}
	t.Status = report.Disposition
	switch report.Disposition {
	case Complete:
		t.Ended = true
	case Blocked:
		t.Reason, t.Repeats = normalise(report.Reason), 1
		if last.Status == Blocked && last.Reason == t.Reason {
			t.Repeats = last.Repeats + 1
		}
		t.Ended = t.Repeats >= max(repeats, 1)
	}
	return t
}

// normalise makes reasons comparable whatever their case, white space and punctuation.
func normalise(reason string) string {
	words := strings.FieldsFunc(strings.ToLower(reason), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) == 0 { // nothing but signs: compare them as they are
		return strings.TrimSpace(reason)
	}
	return strings.Join(words, " ")
}

// Next is the user message that goes on with the goal after a turn that did not end it.
func Next(t Turn, report *Report) string {
	head := fmt.Sprintf("[goal %s, turn %d] ", t.GoalID, t.N+1)
	const tail = " End with update_goal."
	switch {
	case report == nil && t.Missing >= redirectAfter:
		return head + fmt.Sprintf("The goal is still active, and %d turns in a row ended without a report. Change the approach: check what is "+
			"really done, take one concrete step with a tool, and then call update_goal with complete, continue or blocked.", t.Missing)
	case report == nil:
		return head + "The goal is still active: the last turn ended without a report. Go on." + tail
	case report.Disposition == Blocked:
		return head + "You reported blocked: " + report.Reason + ". Try once more another way; report blocked again only if that truly cannot work." + tail
	case report.Next != "":
		return head + "Go on with: " + report.Next + "." + tail
	}
	return head + "The goal is still active. Go on with the next concrete step." + tail
}
