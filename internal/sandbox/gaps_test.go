package sandbox

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The page that people read lists exactly the gaps that the program knows.
func TestTheListOfGapsIsTheOneOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/SANDBOX.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "<!-- gaps:begin -->")
	list, _, ended := strings.Cut(rest, "<!-- gaps:end -->")
	if !found || !ended {
		t.Fatal("the page has no list between <!-- gaps:begin --> and <!-- gaps:end -->")
	}
	var want strings.Builder
	for _, g := range ReducedGaps {
		fmt.Fprintf(&want, " - `%s`: %s", g.ID, g.What)
		if g.Below > 0 {
			fmt.Fprintf(&want, " (Landlock below version %d only.)", g.Below)
		}
	}
	if got := strings.Join(strings.Fields(list), " "); got != strings.TrimSpace(want.String()) {
		t.Errorf("docs/SANDBOX.md says\n%s\nand the program\n%s", strings.ReplaceAll(got, " - `", "\n- `"), strings.ReplaceAll(want.String(), " - `", "\n- `"))
	}
}
