package builtin

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"reasonix/internal/evidence"
	"reasonix/internal/provider"
	"reasonix/internal/sandbox"
	"reasonix/internal/tool"
)

var update = flag.Bool("update", false, "write the canonical schemas into docs/TOOL_CONTRACT.md")

var (
	contractPath = filepath.Join("..", "..", "..", "docs", "TOOL_CONTRACT.md")
	section      = regexp.MustCompile(`(?m)^### (\w+)\n`)
	jsonBlock    = regexp.MustCompile("(?s)```json\n(.*?)```")
)

// TestTheContractSaysWhatIsOffered compares the page with the schemas that a request carries. Run it with -update after a change.
func TestTheContractSaysWhatIsOffered(t *testing.T) {
	page, err := os.ReadFile(contractPath)
	if err != nil {
		t.Fatal(err)
	}
	offered := map[string]provider.ToolSchema{}
	for _, s := range everyTool(t).Schemas() {
		offered[s.Name] = s
	}
	if *update {
		page = rewrite(t, page, offered)
		if err := os.WriteFile(contractPath, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	documented := map[string]bool{}
	eachSection(string(page), func(name, body string) string {
		documented[name] = true
		s, ok := offered[name]
		if !ok {
			t.Errorf("the page documents %s, which is not offered", name)
			return body
		}
		m := jsonBlock.FindStringSubmatch(body)
		if m == nil {
			t.Errorf("%s: the page has no schema block", name)
			return body
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(m[1])); err != nil || !bytes.Equal(compact.Bytes(), s.Parameters) {
			t.Errorf("%s: the page's schema is not the offered one (%v); run this test with -update\n page %s\noffer %s", name, err, compact.Bytes(), s.Parameters)
		}
		if !strings.Contains(body, quoted(s.Description)) {
			t.Errorf("%s: the page does not quote the description; run this test with -update", name)
		}
		return body
	})
	for name := range offered {
		if !documented[name] {
			t.Errorf("%s is offered and not documented", name)
		}
	}
}

// everyTool is what a run offers: the built-ins and complete_step, which belongs to evidence.
func everyTool(t *testing.T) *tool.Registry {
	t.Helper()
	reg := newRig(t, sandbox.FilesConfig{}).reg
	if err := reg.Add(evidence.NewStep(evidence.StepPorts{})); err != nil {
		t.Fatal(err)
	}
	return reg
}

// eachSection calls fn with the body of each ### section and joins what it returns.
func eachSection(page string, fn func(name, body string) string) string {
	at := section.FindAllStringSubmatchIndex(page, -1)
	if len(at) == 0 {
		return page
	}
	out := page[:at[0][0]]
	for i, m := range at {
		end := len(page)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		if next := strings.Index(page[m[1]:end], "\n## "); next >= 0 {
			end = m[1] + next
		}
		out += page[m[0]:m[1]] + fn(page[m[2]:m[3]], page[m[1]:end])
		if i+1 < len(at) {
			out += page[end:at[i+1][0]]
		} else {
			out += page[end:]
		}
	}
	return out
}

func quoted(description string) string {
	return "> " + strings.ReplaceAll(description, "\n", "\n> ") + "\n"
}

// rewrite puts description and schema at the head of each section and keeps the words below them.
func rewrite(t *testing.T, page []byte, offered map[string]provider.ToolSchema) []byte {
	t.Helper()
	out := eachSection(string(page), func(name, body string) string {
		s, ok := offered[name]
		if !ok {
			return body
		}
		words := body
		if m := jsonBlock.FindStringIndex(body); m != nil {
			words = body[m[1]:]
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, s.Parameters, "", "  "); err != nil {
			t.Fatal(err)
		}
		return "\n" + quoted(s.Description) + "\n```json\n" + pretty.String() + "\n```\n\n" + strings.TrimLeft(words, "\n")
	})
	return []byte(out)
}

// A first request with every built-in tool has to stay small: its bytes are paid for on every turn.
func TestAllToolsTogetherStaySmall(t *testing.T) {
	reg := everyTool(t)
	type function struct {
		Type     string              `json:"type"`
		Function provider.ToolSchema `json:"function"`
	}
	var request struct {
		Model    string             `json:"model"`
		Stream   bool               `json:"stream"`
		Messages []provider.Message `json:"messages"`
		Tools    []function         `json:"tools"`
	}
	request.Model, request.Stream = "a-model-with-a-long-name", true
	request.Messages = []provider.Message{{Role: provider.RoleUser, Content: "Fix the failing test."}}
	for _, s := range reg.Schemas() {
		request.Tools = append(request.Tools, function{"function", s})
		if n := len(s.Description); n > 400 {
			t.Errorf("%s: its description has %d bytes", s.Name, n)
		}
	}
	b, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	const most = 12 << 10
	if len(b) >= most {
		t.Errorf("the first request has %d bytes, the limit is %d", len(b), most)
	}
	t.Logf("%d bytes for %d tools", len(b), len(request.Tools))
	if again := everyTool(t).Fingerprint(); !bytes.Equal(again, reg.Fingerprint()) {
		t.Error("the same tools gave different bytes")
	}
}
