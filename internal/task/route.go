package task

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reasonix/internal/approval"
	"reasonix/internal/budget"
	"reasonix/internal/chat"
)

// Route is a configured rule from events to tasks. The first that matches wins.
type Route struct {
	Name      string
	On        string
	Match     Match
	Mode      Mode
	Posture   string
	Model     string
	Repo      string // name in [[repos]]; empty: work that needs no source
	Slug      string // the platform's name of that repository, for pull requests
	Base      string // its base branch
	Headless  bool
	Asks      Asks
	Limits    budget.Limits
	DayLimits budget.Limits // of all its tasks together on one day: tokens and cost
	MaxSteps  int
	Publish   *Publish
	Network   bool
}

// Match narrows a route; empty fields match everything but Role, whose empty value means user.
type Match struct {
	Command string // "/reasonix fix"
	Repo    string // the platform's repository
	Channel string // the place's channel
	Role    Role   // least role of the requester
}

// Asks says where a route's questions go and who may answer.
type Asks struct {
	To                  *chat.Place // nil: where the task was asked for
	Approvers           []string
	Quorum              int
	RequesterMayApprove bool
	Expire              time.Duration
	Then                string
}

// Person is one human with several identities.
type Person struct {
	Name       string
	Role       Role
	Identities map[string]string // kind → id
	DayLimits  budget.Limits     // of all tasks that the person asks for on one day: tokens and cost
}

// People are the configured humans.
type People []Person

// Who finds the person behind a verified actor. Nobody found: the empty name and the role none.
func (p People) Who(a chat.Actor) (string, Role) {
	for _, x := range p {
		if id := x.Identities[a.Kind]; id != "" && sameID(a, id) {
			return x.Name, x.Role
		}
	}
	return "", RoleNone
}

// sameID compares platform ids; a Slack id may be qualified by its team, GitHub logins ignore case.
func sameID(a chat.Actor, id string) bool {
	if a.Kind == "github" {
		return strings.EqualFold(a.ID, id)
	}
	return a.ID == id || (a.Team != "" && a.Team+"/"+a.ID == id)
}

// Find returns the person of that name.
func (p People) Find(name string) (Person, bool) {
	i := slices.IndexFunc(p, func(x Person) bool { return x.Name == name })
	if i < 0 {
		return Person{}, false
	}
	return p[i], true
}

// Resolution is what the routes make of an event.
type Resolution struct {
	Route     *Route
	Requester Requester
	Refusal   string // why no task is opened, as a sentence; empty when Route is set
	Unmatched bool   // no route listens to this at all; the refusal may be silent
}

// Resolve picks the route of an event that asks for work. Text never takes part, only identity, place and the explicit command.
func Resolve(routes []Route, people People, e chat.Event) Resolution {
	person, role := people.Who(e.Actor)
	if e.Actor.Kind == "schedule" {
		person, role = "schedule", RoleUser
	}
	req := Requester{Actor: e.Actor, Person: person, Role: role}
	var least Role
	for i := range routes {
		r := &routes[i]
		if !r.listens(e) {
			continue
		}
		if need := r.role(); !role.AtLeast(need) {
			if least == "" {
				least = need
			}
			continue
		}
		return Resolution{Route: r, Requester: req}
	}
	if least != "" {
		return Resolution{Requester: req, Refusal: fmt.Sprintf("%s has the role %s here, and this needs %s. An administrator can add you under [[people]].", e.Actor, role, least)}
	}
	return Resolution{Requester: req, Unmatched: true, Refusal: unmatched(routes, e)}
}

func (r *Route) listens(e chat.Event) bool {
	if e.Route != "" {
		return r.Name == e.Route
	}
	if r.On != e.On {
		return false
	}
	if r.Match.Command != "" && !strings.EqualFold(r.Match.Command, strings.Join(strings.Fields(e.Command), " ")) {
		return false
	}
	if r.Match.Repo != "" && !strings.EqualFold(r.Match.Repo, e.Repo) {
		return false
	}
	return r.Match.Channel == "" || r.Match.Channel == e.Place.Channel
}

func (r *Route) role() Role {
	if r.Match.Role == "" {
		return RoleUser
	}
	return r.Match.Role
}

func unmatched(routes []Route, e chat.Event) string {
	var known []string
	for _, r := range routes {
		if r.On == e.On && r.Match.Command != "" {
			known = append(known, r.Match.Command)
		}
	}
	if len(known) > 0 {
		return fmt.Sprintf("No route takes %q here. Known commands: %s.", strings.TrimSpace(e.Command), strings.Join(slices.Compact(known), ", "))
	}
	return fmt.Sprintf("No route listens to %s here. Add one under [[routes]] with on = %q.", e.On, e.On)
}

// Check refuses a route whose asks nobody could answer (invariant 6). kinds maps a connection to its kind; console says whether the
// console is open, where every person with a console identity can be reached.
func (r *Route) Check(people People, kinds map[string]string) error {
	if r.Headless {
		return nil
	}
	if len(r.Asks.Approvers) == 0 {
		return fmt.Errorf("route %q names nobody who may approve: set asks = { approvers = [\"…\"] }, or headless = true so that an ask becomes a refusal", r.Name)
	}
	reachable := 0
	for _, name := range r.Asks.Approvers {
		p, ok := people.Find(name)
		if !ok {
			return fmt.Errorf("route %q: approver %q is not under [[people]]", r.Name, name)
		}
		if !p.Role.AtLeast(RoleApprover) {
			return fmt.Errorf("route %q: approver %q has the role %s; give the role approver or admin", r.Name, name, p.Role)
		}
		if p.reachableBy(r.askKind(kinds), kinds) {
			reachable++
		}
	}
	if reachable < max(1, r.Asks.Quorum) {
		return fmt.Errorf("route %q: %d of its approvers can be reached where its asks go (%s), and %d are needed: add their identity for that platform under [[people]]", r.Name, reachable, r.askKind(kinds), max(1, r.Asks.Quorum))
	}
	if r.Asks.Quorum > len(r.Asks.Approvers) {
		return fmt.Errorf("route %q: a quorum of %d needs as many approvers", r.Name, r.Asks.Quorum)
	}
	return nil
}

func (r *Route) askKind(kinds map[string]string) string {
	if r.Asks.To != nil {
		return kinds[r.Asks.To.Connection]
	}
	kind, _, _ := strings.Cut(r.On, ".")
	return kind
}

func (p Person) reachableBy(kind string, kinds map[string]string) bool {
	if p.Identities[kind] != "" {
		return true
	}
	for _, k := range kinds {
		if k == "console" && p.Identities["console"] != "" {
			return true
		}
	}
	return false
}

// Spec is what a task opened by this route is fixed to.
func (r *Route) Spec(e chat.Event, req Requester) Spec {
	s := Spec{
		Route: r.Name, Mode: r.Mode, Posture: r.Posture, Headless: r.Headless, Model: r.Model, Repo: r.Repo, RepoSlug: r.Slug, Base: r.Base,
		Expire: r.Asks.Expire, AskPlace: r.Asks.To, Limits: r.Limits, MaxSteps: r.MaxSteps, Publish: r.Publish, Network: r.Network,
		Asks: approval.Rules{
			Approvers: slices.Clone(r.Asks.Approvers), Quorum: max(1, r.Asks.Quorum), RequesterMayAnswer: r.Asks.RequesterMayApprove,
			Requester: req.name(), Then: r.Asks.Then,
		},
	}
	if s.RepoSlug == "" {
		s.RepoSlug = e.Repo
	}
	// A pull request's head is pinned only where it belongs to the route's own repository.
	if t := e.Target; t != nil && t.IsPR && strings.EqualFold(s.RepoSlug, e.Repo) {
		s.SHA, s.Base = t.HeadSHA, t.BaseRef
	}
	return s
}

func (r Requester) name() string {
	if r.Person != "" {
		return r.Person
	}
	return r.Actor.String()
}
