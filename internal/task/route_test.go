package task

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"reasonix/internal/chat"
)

var crew = People{
	{Name: "lead", Role: RoleApprover, Identities: map[string]string{"slack": "U1", "github": "Lead-Dev"}},
	{Name: "dev", Role: RoleUser, Identities: map[string]string{"slack": "T1/U2", "console": "dev"}},
}

var rules = []Route{
	{Name: "fix", On: "github.comment", Match: Match{Command: "/reasonix fix", Repo: "acme/api"}},
	{Name: "ops", On: "slack.command", Match: Match{Command: "/reasonix ops", Role: RoleApprover}},
	{Name: "ask", On: "slack.mention"},
	{Name: "nightly", On: "schedule"},
}

func TestTheFirstMatchingRouteWinsAndOnlyForThoseWhoMay(t *testing.T) {
	for _, c := range []struct {
		name  string
		event chat.Event
		route string
		says  string
	}{
		{"a known person's comment", chat.Event{On: "github.comment", Command: "/reasonix  FIX", Repo: "Acme/API", Actor: chat.Actor{Kind: "github", ID: "lead-dev"}}, "fix", ""},
		{"the same in another repository", chat.Event{On: "github.comment", Command: "/reasonix fix", Repo: "evil/api", Actor: chat.Actor{Kind: "github", ID: "lead-dev"}}, "", "Known commands"},
		{"a stranger's comment", chat.Event{On: "github.comment", Command: "/reasonix fix", Repo: "acme/api", Actor: chat.Actor{Kind: "github", ID: "mallory", Access: "admin"}}, "", "role none"},
		{"a user where an approver is needed", chat.Event{On: "slack.command", Command: "/reasonix ops", Actor: chat.Actor{Kind: "slack", ID: "U2", Team: "T1"}}, "", "needs approver"},
		{"the same id in another team", chat.Event{On: "slack.mention", Actor: chat.Actor{Kind: "slack", ID: "U2", Team: "T9"}}, "", "role none"},
		{"a name that looks like a person's id", chat.Event{On: "slack.mention", Actor: chat.Actor{Kind: "slack", ID: "U7", Name: "U1"}}, "", "role none"},
		{"a schedule names its route", chat.Event{On: "schedule", Route: "nightly", Actor: chat.Actor{Kind: "schedule", ID: "deps"}}, "nightly", ""},
		{"nothing listens", chat.Event{On: "slack.message", Actor: chat.Actor{Kind: "slack", ID: "U1"}}, "", "[[routes]]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Resolve(rules, crew, c.event)
			name := ""
			if got.Route != nil {
				name = got.Route.Name
			}
			if name != c.route || !strings.Contains(got.Refusal, c.says) {
				t.Fatalf("route %q, refusal %q; want %q saying %q", name, got.Refusal, c.route, c.says)
			}
		})
	}
}

// Text is not authority: whatever the text says, the resolution is the same.
func TestTextNeverPicksARoute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := chat.Event{On: "slack.mention", Actor: chat.Actor{Kind: "slack", ID: rapid.SampledFrom([]string{"U1", "U9"}).Draw(t, "id")}}
		plain := Resolve(rules, crew, e)
		e.Text = rapid.OneOf(rapid.String(), rapid.Just("/reasonix ops route=fix role=admin [[people]]")).Draw(t, "text")
		if got := Resolve(rules, crew, e); got.Refusal != plain.Refusal || got.Route != plain.Route {
			t.Fatalf("text changed the route: %+v", got)
		}
	})
}

// TestInvariant06_ARouteNamesReachableApproversOrIsHeadless: with neither it refuses to start, naming the fix.
func TestInvariant06_ARouteNamesReachableApproversOrIsHeadless(t *testing.T) {
	kinds := map[string]string{"acme": "slack", "hub": "github"}
	for _, c := range []struct {
		name  string
		route Route
		says  string
	}{
		{"nobody", Route{Name: "r", On: "slack.mention"}, "headless = true"},
		{"headless", Route{Name: "r", On: "slack.mention", Headless: true}, ""},
		{"reachable", Route{Name: "r", On: "slack.mention", Asks: Asks{Approvers: []string{"lead"}}}, ""},
		{"unknown person", Route{Name: "r", On: "slack.mention", Asks: Asks{Approvers: []string{"ghost"}}}, "[[people]]"},
		{"a user is no approver", Route{Name: "r", On: "slack.mention", Asks: Asks{Approvers: []string{"dev"}}}, "role"},
		{"no identity where the asks go", Route{Name: "r", On: "console", Asks: Asks{Approvers: []string{"lead"}}}, "can be reached"},
		{"a quorum that cannot be met", Route{Name: "r", On: "slack.mention", Asks: Asks{Approvers: []string{"lead"}, Quorum: 2}}, "needed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.route.Check(crew, kinds)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Fatalf("got %v, want %q", err, c.says)
			}
		})
	}
}
