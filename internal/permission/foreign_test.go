package permission

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestALineForAnotherShellIsNeverReadAsBash(t *testing.T) {
	p := NewPolicy(Config{Allow: []Rule{{Text: "Bash(git status:*)"}}, ForeignShell: "PowerShell"})
	call := Call{Tool: "bash", Args: json.RawMessage(`{"command":"git status"}`)}
	d := p.Decide(call, Situation{Posture: PostureAuto, Surface: Attended})
	if d.Verdict != AskHuman || d.Class != HumanRequired || !strings.Contains(d.Reason, "PowerShell") {
		t.Errorf("%+v", d)
	}
	p = NewPolicy(Config{Deny: []Rule{{Text: "Bash(rm:*)"}}, ForeignShell: "PowerShell"})
	if d := p.Decide(call, Situation{Posture: PostureYolo, Surface: Attended}); d.Verdict != Deny {
		t.Errorf("yolo beside a deny rule that cannot be checked: %+v", d)
	}
}
