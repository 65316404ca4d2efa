package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// greet says that the host runs, and what it still needs before anybody can ask it for something.
func (h *house) greet(out io.Writer) {
	doors := slices.Sorted(maps.Keys(h.doors))
	words := "no doors"
	if len(doors) > 0 {
		words = "doors: " + strings.Join(doors, ", ")
	}
	fmt.Fprintf(out, "The host runs; %s; routes: %d; people: %d. Ctrl-C or `reasonix bot stop` ends it.\n", words, len(h.cfg.Routes), len(h.cfg.People))
	if len(h.cfg.Routes) == 0 || len(h.cfg.People) == 0 {
		fmt.Fprintln(out, "Nobody can ask it for anything yet: add [[people]] and [[routes]] to the configuration; `reasonix bot doctor` checks them.")
	}
}
