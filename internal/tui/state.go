package tui

import (
	"encoding/json"
	"time"

	"reasonix/internal/agent"
	"reasonix/internal/budget"
	"reasonix/internal/goal"
	"reasonix/internal/permission"
	"reasonix/internal/run"
	"reasonix/internal/session"
)

// The notes that the terminal leaves in a transcript, beside those of the run: what was asked for, what was granted for the session, which
// limits hold. A later start reads its whole state from them.
const (
	noteRequest = "terminal_request"
	noteGrant   = "terminal_grant"
	noteLimits  = "terminal_limits"
)

// Request is one thing that the person asked for, worked on in one mode.
type Request struct {
	Key  string `json:"key"`
	Mode string `json:"mode"` // run, goal, plan
	Text string `json:"text"`
}

// Grant is what the person allowed for the rest of the session: a rule, or a folder that may be written.
type Grant struct {
	Rule    string `json:"rule,omitempty"`
	Dir     string `json:"dir,omitempty"`
	Revoked bool   `json:"revoked,omitempty"`
}

func (g Grant) String() string {
	if g.Dir != "" {
		return "write " + g.Dir
	}
	return g.Rule
}

// state is a projection of the transcript: where the conversation at this terminal stands.
type state struct {
	request Request // the last one; an empty key: none yet
	stop    agent.Stop
	cleared bool // its goal was given up
	posture string
	grants  []Grant
	limits  *budget.Limits // set here; nil: those of the configuration
	goal    goal.State
	where   session.Where
	spent   budget.Spent // on the request
	price   budget.Price
	turns   int // requests so far
}

// apply takes the next entry.
func (s *state) apply(e session.Entry) {
	s.where.Apply(e)
	s.goal.Apply(e)
	switch e.Kind {
	case session.KindNote:
		s.note(e)
	case session.KindUsage:
		if e.Usage != nil {
			s.spent = s.spent.Add(budget.Spent{Tokens: e.Usage.Total(), Cost: s.price.Cost(*e.Usage), Steps: 1})
		}
	case session.KindEnd:
		var end struct {
			Stop agent.Stop `json:"stop"`
			MS   int64      `json:"ms"`
		}
		if json.Unmarshal(e.Data, &end) == nil {
			s.stop = end.Stop
			s.spent.Time += time.Duration(end.MS) * time.Millisecond
		}
	case session.KindUser, session.KindAssistant:
		s.stop = ""
	}
}

func (s *state) note(e session.Entry) {
	switch e.Name {
	case noteRequest:
		var r Request
		if json.Unmarshal(e.Data, &r) != nil {
			return
		}
		s.cleared = r.Key == ""
		if s.cleared {
			return
		}
		s.request, s.stop, s.spent = r, "", budget.Spent{}
		s.goal = goal.State{GoalID: goal.ID(r.Key)}
		s.turns++
	case noteGrant:
		var g Grant
		if json.Unmarshal(e.Data, &g) == nil {
			s.grant(g)
		}
	case noteLimits:
		var l budget.Limits
		if json.Unmarshal(e.Data, &l) == nil {
			s.limits = &l
		}
	case run.NotePosture:
		var n run.PostureNote
		if json.Unmarshal(e.Data, &n) == nil && n.To != "" {
			s.posture = n.To
		}
	}
}

func (s *state) grant(g Grant) {
	revoked := g.Revoked
	g.Revoked = false
	for i, have := range s.grants {
		if have == g {
			s.grants = append(s.grants[:i:i], s.grants[i+1:]...)
			break
		}
	}
	if !revoked {
		s.grants = append(s.grants, g)
	}
}

// unfinished tells whether the last request can go on where it stopped.
func (s *state) unfinished() bool {
	return s.request.Key != "" && !s.cleared && s.stop != agent.StopDone
}

// asking tells whether the last request waits for the person.
func (s *state) asking() bool {
	if !s.unfinished() {
		return false
	}
	for _, o := range s.where.Open() {
		if o.Pending != nil && o.Decision == nil {
			return true
		}
	}
	return s.stop == agent.StopBudget
}

// pursuing tells whether a goal is active: what the person types steers it.
func (s *state) pursuing() bool {
	return s.unfinished() && s.request.Mode == run.ModeGoal
}

// rules are the granted rules as the policy reads them.
func (s *state) rules() []permission.Rule {
	var out []permission.Rule
	for _, g := range s.grants {
		if r, err := permission.ParseRule(g.Rule, "granted for this session"); g.Rule != "" && err == nil {
			out = append(out, r)
		}
	}
	return out
}

// dirs are the folders that were opened for writing.
func (s *state) dirs() []string {
	var out []string
	for _, g := range s.grants {
		if g.Dir != "" {
			out = append(out, g.Dir)
		}
	}
	return out
}
