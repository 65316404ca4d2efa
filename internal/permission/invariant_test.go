package permission

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var situations = func() (out []Situation) {
	for _, posture := range []Posture{PostureAsk, PostureAuto, PostureYolo} {
		for _, surface := range []Surface{Attended, Headless} {
			for _, window := range []bool{false, true} {
				for _, hook := range []HookVerdict{HookNone, HookAllows} {
					out = append(out, Situation{Posture: posture, Surface: surface, PlanWindow: window, Hook: hook})
				}
			}
		}
	}
	return out
}()

// Deny rules win in every posture, whatever else is configured or granted.
func TestInvariant06_DenyWinsInEveryPosture(t *testing.T) {
	lines := []string{"rm -rf x", "env rm x", "ls && /bin/rm x", "echo $(rm x)", "bash -c 'rm x'", "find . -exec rm {} +", "sudo timeout 5 rm x", "# c\nrm x", "r'm' x"}
	for _, mode := range []Mode{ModeAsk, ModeAllow, ModeDeny} {
		for _, dynamic := range []bool{false, true} {
			for _, s := range situations {
				for _, line := range lines {
					p := NewPolicy(Config{Mode: mode, AllowDynamicBash: dynamic, Deny: []Rule{{Text: "Bash(rm:*)", Source: "host.toml:3"}},
						Allow: []Rule{{Text: "Bash"}, {Text: "Bash=" + line}, {Text: "Bash(rm:*)"}}, Ask: []Rule{{Text: "Bash"}}})
					d := p.Decide(bashCall(line), s)
					if d.Verdict != Deny || d.Rule != "Bash(rm:*)" || d.Source != "host.toml:3" {
						t.Errorf("%q, mode %s, %+v: %s by %q", line, mode, s, d.Verdict, d.Rule)
					}
				}
			}
		}
	}
	for _, call := range []Call{
		{Tool: "write_file", Args: json.RawMessage(`{"path":"secrets/k"}`), Root: caseRoot},
		{Tool: "move_file", Args: json.RawMessage(`{"source_path":"a","destination_path":"x/../secrets/k"}`), Root: caseRoot},
		{Tool: "write_file", Args: json.RawMessage(`{"path":"docs/link"}`), Paths: []Path{{Raw: "docs/link", Resolved: caseRoot + "/secrets/k"}}, Root: caseRoot},
		{Tool: "mcp__tracker__create", Args: json.RawMessage(`{}`), Root: caseRoot},
	} {
		for _, s := range situations {
			p := NewPolicy(Config{Mode: ModeAllow, Deny: []Rule{{Text: "Edit(secrets/**)"}, {Text: "mcp__tracker"}}, Allow: []Rule{{Text: "Edit"}, {Text: call.Tool}}})
			if d := p.Decide(call, s); d.Verdict != Deny {
				t.Errorf("%s %s, %+v: %s", call.Tool, call.Args, s, d.Verdict)
			}
		}
	}
}

// anyLine draws lines of all kinds, from the tables and made up.
func anyLine(t testing.TB) *rapid.Generator[string] {
	var pool []string
	for _, file := range []string{"testdata/bash.tsv", "testdata/bash_more.tsv"} {
		for _, row := range readRows(t, file, 3) {
			pool = append(pool, unquoteJSON(t, row[1]))
		}
	}
	word := rapid.SampledFrom([]string{"go", "test", "git", "push", "rm", "-rf", "x", "$X", "*", "&&", ";", "|", "$(rm x)", "env", "timeout 5", "'a b'", ">f", "eval", "sh -c 'rm x'", "A=1", "\n", "&"})
	made := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(word, 1, 6).Draw(t, "words"), " ") })
	return rapid.OneOf(rapid.SampledFrom(pool), made)
}

var anyRule = rapid.SampledFrom([]string{"Bash", "Bash(go test:*)", "Bash(git:*)", "Bash(rm -rf*)", "Bash(*push*)", "Bash(env:*)", "Bash(timeout 5 go:*)", "Bash(ls)", "Bash(x *)", "Bash=go test $X",
	"Edit", "Edit(docs/**)", "Read(**)", "mcp__tracker", "grep(x)", "bash(rm:*)", "Bash(echo:*)", "Bash(sh:*)", "Bash(find:*)", "Bash(sudo:*)"})

func rulesOf(texts []string) []Rule {
	out := make([]Rule, len(texts))
	for i, t := range texts {
		out[i] = Rule{Text: t}
	}
	return out
}

func drawConfig(t *rapid.T) Config {
	list := rapid.SliceOfN(anyRule, 0, 3)
	return Config{Allow: rulesOf(list.Draw(t, "allow")), Ask: rulesOf(list.Draw(t, "ask")), Deny: rulesOf(list.Draw(t, "deny")),
		Mode: rapid.SampledFrom([]Mode{ModeAsk, ModeAllow, ModeDeny}).Draw(t, "mode"), AllowDynamicBash: rapid.Bool().Draw(t, "dynamic")}
}

// Adding an allow rule turns no deny into an allow, and no human_required line unless the rule is that very line.
func TestAnAllowRuleNeverReachesTooFar(t *testing.T) {
	lines := anyLine(t)
	rapid.Check(t, func(t *rapid.T) {
		c, line, s := drawConfig(t), lines.Draw(t, "line"), rapid.SampledFrom(situations).Draw(t, "situation")
		call := bashCall(line)
		p := NewPolicy(c)
		before := p.Decide(call, s)
		rule := anyRule.Draw(t, "added")
		if rapid.Bool().Draw(t, "literal") {
			rule = "Bash=" + line
		}
		after := p.With(Rule{Text: rule}).Decide(call, s)
		ruled := !strings.HasSuffix(before.Reason, "mode is deny") // allow rules stand before the fallback
		if before.Verdict == Deny && after.Verdict == Allow && ruled {
			t.Fatalf("%q: %s turned deny (%s) into allow", line, rule, before.Reason)
		}
		if before.Class == HumanRequired && before.Verdict != Allow && after.Verdict == Allow && rule != "Bash="+line {
			t.Fatalf("%q: %s allowed a human_required line", line, rule)
		}
		if before.Verdict == Allow && after.Verdict != Allow {
			t.Fatalf("%q: adding the allow rule %s made it %s", line, rule, after.Verdict)
		}
	})
}

// A rule about something else changes no decision, in whichever list it stands.
func TestAnUnrelatedRuleChangesNothing(t *testing.T) {
	lines := anyLine(t)
	unrelated := rapid.SampledFrom([]string{"Edit(never/here/**)", "mcp__nobody", "mcp__nobody__tool", "Read(never)", "write_file(never)", "exit_plan_mode"})
	rapid.Check(t, func(t *rapid.T) {
		c, s := drawConfig(t), rapid.SampledFrom(situations).Draw(t, "situation")
		call := bashCall(lines.Draw(t, "line"))
		before := NewPolicy(c).Decide(call, s)
		extra := Rule{Text: unrelated.Draw(t, "extra")}
		switch rapid.IntRange(0, 2).Draw(t, "list") {
		case 0:
			c.Allow = append(slices.Clone(c.Allow), extra)
		case 1:
			c.Ask = append(slices.Clone(c.Ask), extra)
		default:
			c.Deny = append(slices.Clone(c.Deny), extra)
		}
		if after := NewPolicy(c).Decide(call, s); !reflect.DeepEqual(after, before) {
			t.Fatalf("%s: %s changed %+v into %+v", call.Args, extra.Text, before, after)
		}
	})
}

// Every offer allows the call when it is granted, and no offer allows a line with another program in it.
func TestOffersAllowWhatTheyShowAndNoMore(t *testing.T) {
	lines := anyLine(t)
	rapid.Check(t, func(t *rapid.T) {
		line := lines.Draw(t, "line")
		p := NewPolicy(Config{})
		call := bashCall(line)
		for i, offer := range p.Offers(call) {
			q := p.With(Rule{Text: offer})
			if len(q.Problems()) > 0 {
				t.Fatalf("%q: offer %s is useless: %v", line, offer, q.Problems())
			}
			if d := q.Decide(call, Situation{Surface: Attended}); d.Verdict != Allow || d.Rule != offer {
				t.Fatalf("%q: offer %s gives %s by %s", line, offer, d.Verdict, d.Rule)
			}
			for _, more := range []string{line + "; victim", line + " && victim", "victim; " + line, line + "\nvictim", line + " | victim", line + " $(victim)"} {
				if d := q.Decide(bashCall(more), Situation{Surface: Attended}); d.Verdict == Allow && strings.Contains(more, "victim") && classHas(more, "victim") {
					t.Fatalf("offer %d %s of %q allows %q", i, offer, line, more)
				}
			}
		}
	})
}

func classHas(line, program string) bool {
	return slices.ContainsFunc(Classify(line).Parts, func(p SimpleCommand) bool { return len(p.Words) > 0 && p.Words[0] == program })
}

// A deny rule for a program catches it in every wrapping that the classifier understands.
func TestADenyRuleSeesThroughEveryWrapping(t *testing.T) {
	wrappings := []string{"%s", "env %s", "env A=1 %s", "timeout 5 %s", "nice -n 3 %s", "nohup %s", "stdbuf -oL %s", "sudo -u bob %s", "command %s", "exec %s", "busybox %s", "xargs %s", "time %s", "setsid %s", "flock l %s"}
	frames := []string{"%s", "ls; %s", "(%s)", "echo $(%s)", "if true; then %s; fi", "# c\n%s", "bash -c '%s'", "eval '%s'", "%s &", "cat <(%s)", "A=1 %s", "find . -exec %s {} +"}
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"victim x", "/usr/bin/victim x", "\"victim\" x", "vic\\tim x"}).Draw(t, "program")
		for range rapid.IntRange(0, 4).Draw(t, "depth") {
			line = fmt.Sprintf(rapid.SampledFrom(wrappings).Draw(t, "wrapping"), line)
		}
		line = fmt.Sprintf(rapid.SampledFrom(frames).Draw(t, "frame"), line)
		p := NewPolicy(Config{Deny: []Rule{{Text: "Bash(victim x*)"}}})
		for _, s := range situations {
			if d := p.Decide(bashCall(line), s); d.Verdict != Deny {
				t.Fatalf("%q in %+v is %s: %s", line, s, d.Verdict, d.Reason)
			}
		}
	})
}
