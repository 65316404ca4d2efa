package slack_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"reasonix/internal/testkit/slackd"
)

// realPayloads reads the JSON objects that stand in the test files of the client library's module.
func realPayloads(t *testing.T, glob string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/slack-go/slack").Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Skipf("the source of slack-go is not here (%v): run go mod download github.com/slack-go/slack", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, glob))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", glob, err)
	}
	var list []string
	for _, f := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), f, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			s, err := strconv.Unquote(lit.Value)
			if err == nil && strings.HasPrefix(strings.TrimSpace(s), "{") && json.Valid([]byte(s)) {
				list = append(list, s)
			}
			return true
		})
	}
	return list
}

func wrap(w *workspace, inner string) slackd.Delivery {
	return slackd.JSON([]byte(`{"team_id":"` + w.Team + `","api_app_id":"` + w.AppID + `","type":"event_callback","event_id":"Ev1","event":` + inner + `}`))
}

func TestRealMentionOpensARequest(t *testing.T) {
	w := newWorkspace(t)
	w.BotUser = "U0LAN0Z89"
	for _, p := range realPayloads(t, "slackevents/inner_events_test.go") {
		if !strings.Contains(p, `"app_mention"`) || !strings.Contains(p, "is it everything a river should be?") {
			continue
		}
		if a := w.deliver(wrap(w, p)); a.Status != 200 {
			t.Fatalf("answered %d", a.Status)
		}
		e := w.sink.Last(t)
		if e.On != "slack.mention" || e.Text != "is it everything a river should be?" || e.Actor.ID != "U061F7AUR" || e.Actor.Team != "T3MQV36V7" ||
			e.Place.Channel != "C0LAN2Q65" || e.Place.Thread != "1515449522.000016" {
			t.Fatalf("got %+v", e)
		}
		return
	}
	t.Fatal("the mention is not in the library's tests any more")
}

func TestEveryRealPayloadIsAnswered(t *testing.T) {
	w := newWorkspace(t)
	events := realPayloads(t, "slackevents/*_test.go")
	interactions := realPayloads(t, "interactions_test.go")
	if len(events) < 90 || len(interactions) < 3 {
		t.Fatalf("only %d events and %d interactions were found", len(events), len(interactions))
	}
	for _, p := range events {
		for _, d := range []slackd.Delivery{wrap(w, p), slackd.JSON([]byte(p))} {
			if a := w.deliver(d); a.Status >= 500 {
				t.Errorf("answered %d to %.200s", a.Status, p)
			}
		}
	}
	for _, p := range interactions {
		if a := w.deliver(slackd.Form(url.Values{"payload": {p}})); a.Status >= 500 {
			t.Errorf("answered %d to %.200s", a.Status, p)
		}
	}
}
