package run

import (
	"encoding/json"
	"sync"

	"reasonix/internal/permission"
	"reasonix/internal/session"
)

// NotePosture is the kind of the note that records a posture; its data is a PostureNote.
const NotePosture = "posture"

// PostureNote is the posture from here on. From is empty where the request begins.
type PostureNote struct {
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	By   string `json:"by,omitempty"` // who changed it
}

// Standing is what may change while an attempt runs: the phase of a plan and the posture. The gate and the box look at it before
// every call, so a change counts at once. Drive keeps it in step with the transcript. A nil Standing has no phase and no posture.
// It is safe for concurrent use.
type Standing struct {
	mu      sync.Mutex
	plan    planState
	planned bool // mode plan
	posture string
	granted bool
	grants  []permission.Rule
}

// NewStanding starts with the posture that the route or the command line fixed. plan says that the mode is plan: until Drive has
// read the transcript the standing is that of an unapproved plan.
func NewStanding(posture string, plan bool) *Standing {
	return &Standing{posture: posture, planned: plan}
}

// Planning tells whether nothing may be changed yet.
func (s *Standing) Planning() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.planned && !s.plan.open
}

// Window tells whether the execution window of an approved plan is open.
func (s *Standing) Window() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.planned && s.plan.open
}

// Posture is the one in force; empty when the standing has none.
func (s *Standing) Posture() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.posture
}

// SetPosture is called at a turn boundary.
func (s *Standing) SetPosture(p string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posture = p
}

// SetGrants replaces what people granted on top of the policy; it is called at a turn boundary, so that a revoked grant ends there.
func (s *Standing) SetGrants(rules []permission.Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.granted, s.grants = true, rules
}

// grantsOr are the grants in force, or base when nobody set any.
func (s *Standing) grantsOr(base []permission.Rule) []permission.Rule {
	if s == nil {
		return base
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.granted {
		return s.grants
	}
	return base
}

// apply takes the next entry of the transcript.
func (s *Standing) apply(e session.Entry, request string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.planned {
		s.plan.apply(e, request)
	}
}

// situation is the standing as the policy reads it.
func (s *Standing) situation(base permission.Situation) permission.Situation {
	if p := s.Posture(); p != "" {
		base.Posture = permission.Posture(p)
	}
	base.PlanWindow = base.PlanWindow || s.Window()
	return base
}

// Approved tells from the entries of a session whether the plan of the request with that key is approved.
func Approved(entries []session.Entry, request string) bool {
	var p planState
	for _, e := range entries {
		p.apply(e, request)
	}
	return p.open
}

// lastPosture is the To of the last posture note.
func lastPosture(e session.Entry) (string, bool) {
	if e.Kind != session.KindNote || e.Name != NotePosture {
		return "", false
	}
	var n PostureNote
	if json.Unmarshal(e.Data, &n) != nil {
		return "", false
	}
	return n.To, n.To != ""
}
