package permission

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestACaseIsAnsweredAsOneJSONObject(t *testing.T) {
	got, err := EvaluateCase([]byte(`{"name":"push","deny":["Bash(git push:*)"],"posture":"yolo","surface":"headless","tool":"bash","args":{"command":"env git push"},"want":"allow"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"push","decision":"deny","class":"plain","rule":"Bash(git push:*)","source":"deny[0]","posture":"yolo","reason":"denied by rule Bash(git push:*) (deny[0]), in every posture","want":"allow","differs":true}`
	if string(line) != want {
		t.Errorf("got  %s\nwant %s", line, want)
	}
}

func TestACaseThatIsWrongInItselfIsAnError(t *testing.T) {
	for line, want := range map[string]string{
		`{`:                                      "read case",
		`{"tool":"bash","args":{},"colour":1}`:   "colour",
		`{"args":{}}`:                            "tool is missing",
		`{"tool":"bash","posture":"reckless"}`:   "unknown posture",
		`{"tool":"bash","surface":"underwater"}`: "unknown surface",
		`{"tool":"bash","hook":"sometimes"}`:     "unknown hook",
		`{"tool":"bash","mode":"maybe"}`:         "unknown mode",
		`{"tool":"bash","want":"perhaps"}`:       "unknown want",
		`{"tool":"bash"} {"tool":"bash"}`:        "more than one value",
		`{"tool":"bash","allow":"Bash"}`:         "read case",
	} {
		if _, err := EvaluateCase([]byte(line), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", line, err, want)
		}
	}
}

func TestStrictDecodingRefusesBeforeAnyRule(t *testing.T) {
	strict := func(tool string, args json.RawMessage) error {
		if strings.Contains(string(args), "Command") {
			return errors.New("unknown field Command")
		}
		return nil
	}
	got, err := EvaluateCase([]byte(`{"tool":"bash","allow":["Bash"],"posture":"yolo","args":{"command":"ls","Command":"rm"}}`), strict)
	if err != nil || got.Verdict != Refuse || !strings.Contains(got.Reason, "unknown field Command") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestUselessRulesOfACaseAreNamed(t *testing.T) {
	got, err := EvaluateCase([]byte(`{"tool":"bash","deny":["rm"],"posture":"auto","args":{"command":"rm x"}}`), nil)
	if err != nil || len(got.Problems) != 1 || !strings.Contains(got.Problems[0], `deny[0]: rule "rm": unknown tool`) {
		t.Errorf("%+v, %v", got, err)
	}
}
