package permission

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// readRows reads a table with a header line; every row has at least n columns.
func readRows(t testing.TB, file string, n int) [][]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for i, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		if i == 0 || line == "" {
			continue
		}
		cols := strings.Split(line, "\t")
		if len(cols) < n {
			t.Fatalf("%s:%d: %d columns, want %d", file, i+1, len(cols), n)
		}
		rows = append(rows, cols)
	}
	return rows
}

func unquoteJSON(t testing.TB, s string) string {
	t.Helper()
	var out string
	if err := json.Unmarshal([]byte(s), &out); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return out
}

func TestClassesOfBashLines(t *testing.T) {
	for _, file := range []string{"testdata/bash.tsv", "testdata/bash_more.tsv"} {
		for _, row := range readRows(t, file, 3) {
			t.Run(row[0], func(t *testing.T) {
				line := unquoteJSON(t, row[1])
				c := Classify(line)
				if string(c.Class) != row[2] {
					t.Errorf("%s: %q is %s (%s: %q), want %s; %s", row[0], line, c.Class, c.Why, c.Offending, row[2], row[3])
				}
				if c.Class != Plain && (c.Why == "" || c.Offending == "" && line != "") {
					t.Errorf("%q: class %s without a reason", line, c.Class)
				}
				if len(row) > 3 && strings.HasPrefix(row[3], "ops:") && !c.Ops {
					t.Errorf("%q: has several parts, but Ops is false", line)
				}
			})
		}
	}
}
