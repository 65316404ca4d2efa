package permission

import (
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
)

func TestRulesGetTheLineTheyWereWrittenOn(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       map[string][]int
	}{
		{"one line each", "[permissions]\nmode = \"ask\"\ndeny = [\"Bash(rm:*)\", \"Bash(git push*)\"] # two\nallow = []\nask=['x']\n", map[string][]int{"deny": {3, 3}, "ask": {5}}},
		{"over lines with comments", "# allow = [\"no\"]\n[permissions]\nallow = [\n  # Bash(no)\n  \"Bash(go test:*)\", # yes\n\n  'Edit(docs/**)',\n]\n", map[string][]int{"allow": {5, 7}}},
		{"brackets and quotes in rules", "[permissions]\nallow = [\n\"Bash=echo [\\\"]]\",\n'Bash(x])',\n\"Edit(a#b)\"]\nask=[\"y\"]", map[string][]int{"allow": {3, 4, 5}, "ask": {6}}},
		{"dotted key", "permissions.deny = [\"a\",\n\"b\"]\n", map[string][]int{"deny": {1, 2}}},
		{"inline table", "permissions = { allow = [\"a\"], deny = [\n\"b\"] }\n", map[string][]int{"allow": {1}, "deny": {2}}},
		{"other tables do not count", "[tools]\nallow = [\"a\"]\n[permissions.sub]\nallow = [\"a\"]\n[ \"permissions\" ]\nallow = [\"a\"]\n[x]\ndeny=['b']", map[string][]int{"allow": {6}}},
		{"long strings", "[permissions]\nallow = [\"\"\"\nBash=a\nb\"\"\", '''c''',\n\"d\"]\n", map[string][]int{"allow": {2, 4, 5}}},
		{"a string that looks like a table", "x = \"\"\"\n[permissions]\nallow = ['no']\n\"\"\"\n[permissions]\nallow = ['a']\n", map[string][]int{"allow": {6}}},
		{"array of tables before", "[[routes]]\nmatch = { a = [1, 2], b = [\"x\"] }\n[permissions]\nallow = ['a']", map[string][]int{"allow": {4}}},
		{"windows line ends", "[permissions]\r\nallow = [\r\n'a',\r\n'b']\r\n", map[string][]int{"allow": {3, 4}}},
		{"empty", "", map[string][]int{}},
		{"broken", "[permissions]\nallow = [\"a\",\n\"b", map[string][]int{"allow": {2, 3}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ScanRuleLines([]byte(c.text))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzScanRuleLines: the scanner ends, and finds as many elements as the decoder.
func FuzzScanRuleLines(f *testing.F) {
	f.Add("[permissions]\nallow = [\"a\", 'b']\nask = [\"\"\"c\"\"\"]\n")
	f.Add("permissions = { deny = ['''x'''] }")
	f.Add("[permissions]\nallow = [\"a\\\"\", ]\n[[x]]\ny.z = 1")
	f.Fuzz(func(t *testing.T, text string) {
		begun := time.Now()
		found := ScanRuleLines([]byte(text))
		if took := time.Since(begun); took > time.Second {
			t.Fatalf("%d bytes took %s", len(text), took)
		}
		var doc struct {
			Permissions map[string]any `toml:"permissions"`
		}
		meta, err := toml.Decode(text, &doc)
		if err != nil || !meta.IsDefined("permissions") {
			return
		}
		for _, key := range []string{"allow", "ask", "deny"} {
			list, ok := doc.Permissions[key].([]any)
			if !ok {
				continue
			}
			texts := 0
			for _, v := range list {
				if _, ok := v.(string); ok {
					texts++
				}
			}
			if len(found[key]) != texts {
				t.Errorf("%q: %s has %d strings, %d lines were found", text, key, texts, len(found[key]))
			}
		}
	})
}
