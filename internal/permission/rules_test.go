package permission

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// caseOfRow turns a table row into the JSON line of a policy test.
func caseOfRow(t testing.TB, row []string) string {
	t.Helper()
	posture, dynamic, _ := strings.Cut(row[5], ";")
	posture, window := strings.CutSuffix(posture, "+plan_window")
	surface, hook := row[6], "none"
	for _, h := range []string{"allows", "blocks"} {
		word := map[string]string{"allows": "+allowing_hook", "blocks": "+blocking_hook"}[h]
		if s, ok := strings.CutSuffix(surface, word); ok {
			surface, hook = s, h
		}
	}
	if surface == "interactive" {
		surface = "attended"
	}
	var call struct {
		Tool string          `json:"tool"`
		Args json.RawMessage `json:"args"`
	}
	if err := json.Unmarshal([]byte(row[7]), &call); err != nil {
		t.Fatalf("%s: %v", row[0], err)
	}
	return fmt.Sprintf(`{"name":%q,"allow":%s,"ask":%s,"deny":%s,"mode":%q,"posture":%q,"surface":%q,"allow_dynamic_bash":%t,"plan_window":%t,"hook":%q,"tool":%q,"args":%s,"read_only":%s,"want":%q}`,
		row[0], row[1], row[2], row[3], row[4], posture, surface, dynamic == "allow_dynamic_bash=true", window, hook, call.Tool, call.Args, row[8], row[9])
}

func TestDecisionsByRulesAndPosture(t *testing.T) {
	for _, file := range []string{"testdata/rules.tsv", "testdata/rules_more.tsv"} {
		for _, row := range readRows(t, file, 11) {
			t.Run(row[0], func(t *testing.T) {
				line := caseOfRow(t, row)
				got, err := EvaluateCase([]byte(line), nil)
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				if got.Differs {
					t.Errorf("%s\nis %s (%s), want %s; %s", line, got.Verdict, got.Reason, row[9], row[10])
				}
				if got.Reason == "" {
					t.Errorf("%s: a decision without a reason", line)
				}
			})
		}
	}
}
