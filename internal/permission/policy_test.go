package permission

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func fileCall(tool, args string) Call {
	return Call{Tool: tool, Args: json.RawMessage(args), Root: caseRoot}
}

var attended = Situation{Posture: PostureAsk, Surface: Attended}

func TestRulesThatCanNeverMatchAreReported(t *testing.T) {
	for rule, want := range map[string]string{
		"":                          "empty rule",
		"  ":                        "empty rule",
		"rm":                        `unknown tool "rm"; for a command write Bash(rm:*)`,
		"rm -rf*":                   `no tool name in "rm -rf*"`,
		"(x)":                       "no tool name before the bracket",
		"Bash(go test:*":            "unbalanced brackets",
		"Bash go test:*)":           "unbalanced brackets",
		"Bash)":                     "unbalanced brackets",
		"Bash()":                    "empty specifier",
		"Bash=":                     "empty literal",
		"Edit([)":                   "not a valid path pattern",
		"Write(docs/**)":            "file changes are the family Edit",
		"Grep":                      "reading is the family Read",
		"web_surf":                  "unknown tool",
		"mcp__":                     "incomplete MCP name",
		"mcp__tracker__":            "incomplete MCP name",
		"Bash(go test && rm x:*)":   "a prefix cannot hold operators",
		"Bash(go test $PKG)":        "dynamic_ordinary",
		"Bash(sh -c ls)":            "human_required",
		"Bash(A=1 make:*)":          "a prefix cannot hold operators",
		"exit_plan_mode":            "always waits for a person",
		"Bash(echo \"unterminated)": "human_required",
	} {
		p := NewPolicy(Config{Allow: []Rule{{Text: rule, Source: "reasonix.toml:12"}}})
		problems := p.Problems()
		if len(problems) != 1 || !strings.Contains(problems[0].Why, want) {
			t.Errorf("rule %q: problems %v, want one with %q", rule, problems, want)
			continue
		}
		if !strings.HasPrefix(problems[0].String(), "reasonix.toml:12: rule ") {
			t.Errorf("rule %q: the problem does not name its place: %s", rule, problems[0])
		}
	}
}

func TestGoodRulesAreNotReported(t *testing.T) {
	good := []string{"Bash", "bash", "Bash(go test:*)", "Bash(go test *)", "Bash(rm -rf*)", "Bash(git * main)", "Bash(*)", "Bash=a && $b", "Edit", "edit", "Edit(docs/**)", "Edit(~/x)", "Edit(/abs/**)", "Edit(a(1).md)",
		"Read", "Read(**/.env)", "mcp__tracker", "mcp__tracker__list", "mcp__*", "write_file(docs/**)", "grep(TODO*)", "my_tool", "todo_write", "Bash(echo 'a (b)':*)"}
	if problems := NewPolicy(Config{Allow: rulesOf(good), Tools: []string{"my_tool"}}).Problems(); len(problems) > 0 {
		t.Error(problems)
	}
	deny := []string{"exit_plan_mode", "Bash(sh -c:*)", "Bash(eval)", "Bash(go test $PKG)"}
	if problems := NewPolicy(Config{Deny: rulesOf(deny)}).Problems(); len(problems) > 0 {
		t.Error(problems)
	}
	if problems := NewPolicy(Config{Mode: "yes"}).Problems(); len(problems) != 1 {
		t.Errorf("an unknown mode: %v", problems)
	}
}

func TestTheDigestIsAboutTheRulesAndNotTheirOrder(t *testing.T) {
	base := Config{Allow: rulesOf([]string{"Bash(a:*)", "Edit"}), Deny: rulesOf([]string{"Bash(b:*)"})}
	same := Config{Allow: []Rule{{Text: "Edit", Source: "x:1"}, {Text: "Bash(a:*)"}, {Text: "Edit"}}, Deny: base.Deny, Mode: ModeAsk}
	if NewPolicy(base).Digest() != NewPolicy(same).Digest() {
		t.Error("order, doubles or sources changed the digest")
	}
	for name, c := range map[string]Config{
		"another list": {Allow: base.Allow, Ask: base.Deny},
		"fewer":        {Allow: base.Allow[:1], Deny: base.Deny},
		"mode":         {Allow: base.Allow, Deny: base.Deny, Mode: ModeAllow},
		"dynamic":      {Allow: base.Allow, Deny: base.Deny, AllowDynamicBash: true},
	} {
		if NewPolicy(base).Digest() == NewPolicy(c).Digest() {
			t.Errorf("%s: the digest did not change", name)
		}
	}
	p := NewPolicy(base)
	if q := p.With(Rule{Text: "Bash=x"}); q.Digest() == p.Digest() || p.Digest() != NewPolicy(base).Digest() {
		t.Error("a grant must change the digest of the new policy alone")
	}
}

func TestGrantsAreOfferedNarrowestFirst(t *testing.T) {
	p := NewPolicy(Config{Ask: rulesOf([]string{"Bash(git push:*)"})})
	for line, want := range map[string][]string{
		"go test ./...":            {"Bash=go test ./...", "Bash(go test:*)"},
		"npm run lint -- --fix":    {"Bash=npm run lint -- --fix", "Bash(npm run lint:*)"},
		"ls -la":                   {"Bash=ls -la", "Bash(ls:*)"},
		"go test $PKG":             {"Bash=go test $PKG"},
		"go test ./... && make":    {"Bash=go test ./... && make"},
		"python3 -c 'print(1)'":    {"Bash=python3 -c 'print(1)'"},
		"rm -rf build":             {"Bash=rm -rf build"},
		"git -C x status":          {"Bash=git -C x status"},
		"go run ./x":               {"Bash=go run ./x"},
		"curl https://example.com": {"Bash=curl https://example.com"},
		"make\n":                   {"Bash=make\n"},
		"go test 'a b'":            {"Bash=go test 'a b'", "Bash(go test:*)"},
		"git push origin":          nil, // an allow rule cannot beat the ask rule
		"ls \u0007":                nil,
		"":                         nil,
	} {
		if diff := cmp.Diff(want, p.Offers(bashCall(line))); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
	}
	for _, c := range []struct {
		call Call
		want []string
	}{
		{fileCall("write_file", `{"path":"docs/./a.md"}`), []string{"Edit(docs/a.md)"}},
		{fileCall("edit_file", `{"path":"a[1]*.md"}`), []string{`Edit(a\[1\]\*.md)`}},
		{fileCall("write_file", `{"path":"a(1).md"}`), []string{"Edit(a(1).md)"}},
		{fileCall("write_file", `{"path":"/etc/passwd"}`), nil},
		{fileCall("move_file", `{"source_path":"a","destination_path":"b"}`), nil},
		{fileCall("mcp__tracker__create", `{}`), []string{"mcp__tracker__create"}},
		{fileCall("exit_plan_mode", `{"plan":"x"}`), nil},
		{fileCall("bash", `{"command":"make","additional_write_dirs":["/out"]}`), nil},
		{fileCall("bash", `not json`), nil},
	} {
		if diff := cmp.Diff(c.want, p.Offers(c.call)); diff != "" {
			t.Errorf("%s %s: %s", c.call.Tool, c.call.Args, diff)
		}
	}
}

func TestResolvedPathsCountAsMuchAsWrittenOnes(t *testing.T) {
	p := NewPolicy(Config{Allow: rulesOf([]string{"Edit(docs/**)"}), Deny: rulesOf([]string{"Edit(secrets/**)"})})
	link := func(resolved string) Call {
		return Call{Tool: "write_file", Args: json.RawMessage(`{"path":"docs/link"}`), Root: caseRoot, Paths: []Path{{Raw: "docs/link", Resolved: resolved}}}
	}
	for resolved, want := range map[string]Verdict{
		caseRoot + "/docs/link": Allow, caseRoot + "/secrets/k": Deny, caseRoot + "/main.go": Ask, "/etc/passwd": Ask,
	} {
		if d := p.Decide(link(resolved), attended); d.Verdict != want {
			t.Errorf("docs/link -> %s: %s (%s), want %s", resolved, d.Verdict, d.Reason, want)
		}
	}
	call := link("/private/ws/docs/link")
	if d := p.Decide(call, attended); d.Verdict != Ask || d.Kind != KindWrite {
		t.Errorf("another root: %s %s", d.Verdict, d.Kind)
	}
	call.RealRoot = "/private/ws"
	if d := p.Decide(call, attended); d.Verdict != Allow {
		t.Errorf("the root itself is a link: %s (%s)", d.Verdict, d.Reason)
	}
}

func TestGrantedFoldersAndManagedConfiguration(t *testing.T) {
	p := NewPolicy(Config{})
	yolo := Situation{Posture: PostureYolo, Surface: Attended}
	out := fileCall("write_file", `{"path":"/out/a"}`)
	if d := p.Decide(out, yolo); d.Verdict != Ask || d.Kind != KindWrite {
		t.Errorf("outside: %s %s", d.Verdict, d.Kind)
	}
	out.WriteRoots = []string{"/out"}
	if d := p.Decide(out, yolo); d.Verdict != Allow {
		t.Errorf("granted: %s (%s)", d.Verdict, d.Reason)
	}
	out.Managed = []string{"/out/a"}
	if d := p.Decide(out, yolo); d.Verdict != Ask || d.Kind != KindConfig {
		t.Errorf("managed: %s %s", d.Verdict, d.Kind)
	}
	similar := fileCall("write_file", `{"path":"/outside/a"}`)
	similar.WriteRoots = []string{"/out"}
	if d := p.Decide(similar, yolo); d.Verdict != Ask {
		t.Errorf("a folder with a similar name: %s", d.Verdict)
	}
}

func TestPathsOnADiskThatIgnoresCase(t *testing.T) {
	call := fileCall("write_file", `{"path":"Secrets/K"}`)
	deny := rulesOf([]string{"Edit(secrets/**)"})
	auto := Situation{Posture: PostureAuto, Surface: Attended}
	if d := NewPolicy(Config{Deny: deny}).Decide(call, auto); d.Verdict != Allow {
		t.Errorf("case matters: %s", d.Verdict)
	}
	if d := NewPolicy(Config{Deny: deny, FoldCase: true}).Decide(call, auto); d.Verdict != Deny {
		t.Errorf("case does not matter: %s", d.Verdict)
	}
}

func TestHomeInRules(t *testing.T) {
	p := NewPolicy(Config{Deny: rulesOf([]string{"Read(~/.ssh/**)"}), Home: "/home/u"})
	for path, want := range map[string]Verdict{"/home/u/.ssh/id": Deny, "~/.ssh/id": Deny, "/home/v/.ssh/id": Allow} {
		call := fileCall("read_file", `{"path":"`+path+`"}`)
		call.ReadOnly = true
		if d := p.Decide(call, attended); d.Verdict != want {
			t.Errorf("%s: %s, want %s", path, d.Verdict, want)
		}
	}
}

func TestADecisionCarriesItsReason(t *testing.T) {
	p := NewPolicy(Config{Ask: []Rule{{Text: "Bash(git push:*)", Source: "reasonix.toml:9"}}})
	d := p.Decide(bashCall("eval git push"), Situation{Posture: PostureAuto, Surface: Headless})
	want := Decision{Verdict: Refuse, Class: HumanRequired, Offending: "eval git push", Rule: "Bash(git push:*)", Source: "reasonix.toml:9", Kind: KindApproval, Posture: PostureAuto,
		Reason: `asked for by rule Bash(git push:*) (reasonix.toml:9); the line is human_required: eval runs its words as a line in "eval git push"; headless, so nobody can be asked`}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	d = p.Decide(bashCall("make"), attended)
	if d.Reason != "no rule matched; posture ask, mode ask" || d.Class != Plain || d.Kind != KindApproval || d.Fallback != "ask" || d.Posture != PostureAsk {
		t.Errorf("%+v", d)
	}
}

func TestPoliciesDoNotShareTheirRules(t *testing.T) {
	p := NewPolicy(Config{Allow: rulesOf([]string{"Bash(a:*)"})})
	one, two := p.With(Rule{Text: "Bash(b:*)"}), p.With(Rule{Text: "Bash(c:*)"})
	texts := func(p *Policy) (out []string) {
		_, _, allow := p.Rules()
		for _, r := range allow {
			out = append(out, r.Text)
		}
		return out
	}
	if !slices.Equal(texts(one), []string{"Bash(a:*)", "Bash(b:*)"}) || !slices.Equal(texts(two), []string{"Bash(a:*)", "Bash(c:*)"}) || len(texts(p)) != 1 {
		t.Error(texts(p), texts(one), texts(two))
	}
}

func TestABlockingHookSaysWhy(t *testing.T) {
	d := NewPolicy(Config{Allow: rulesOf([]string{"Bash"})}).Decide(bashCall("ls"), Situation{Posture: PostureYolo, Hook: HookBlocks, HookReason: "not on fridays"})
	if d.Verdict != Deny || d.Reason != "a PreToolUse hook blocked the call: not on fridays" {
		t.Errorf("%+v", d)
	}
}
