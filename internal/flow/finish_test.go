package flow

import (
	"fmt"
	"strings"
	"testing"

	"reasonix/internal/chat"
	"reasonix/internal/workspace"
)

func TestAFinalPostStaysReadableHoweverMuchHappened(t *testing.T) {
	r := &chat.ReceiptView{Usage: []chat.Field{{Label: "Model calls", Value: "300"}}}
	for i := range 40 {
		r.HostFacts = append(r.HostFacts, fmt.Sprintf("fact %d", i))
		r.Approvals = append(r.Approvals, fmt.Sprintf("lead approved bash %d", i))
		r.Checks = append(r.Checks, chat.Field{Label: fmt.Sprintf("check %d", i), Value: "passed"})
	}
	r.Checks[30].Value = "failed (exit code 1)"
	fields := resultFields(r, workspace.Harvest{}, "")
	lines := 0
	for _, f := range fields {
		lines += 1 + strings.Count(f.Value, "\n")
	}
	if lines > 25 {
		t.Errorf("%d lines: %+v", lines, fields)
	}
	all := fmt.Sprint(fields)
	for _, want := range []string{"{check 30 failed (exit code 1)} {check 0 passed}", "{More checks 35, in the receipt}", "fact 5\n… more in the receipt", "{Model calls 300}"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in %s", want, all)
		}
	}
	if strings.Contains(all, "fact 6") || len(r.Checks) != 40 || r.Checks[0].Label != "check 0" {
		t.Errorf("too much, or the receipt itself was changed: %s", all)
	}
}
