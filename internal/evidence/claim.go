package evidence

import (
	"encoding/json"
	"fmt"
	"strings"
)

// NoteStep is the kind of the note that holds one sign-off; its data is a Claim as the host adjudicated it.
const NoteStep = "step"

// Kind is what an item of evidence cites.
type Kind string

// The kinds. A manual note is the model's own word and never backs itself.
const (
	Verification Kind = "verification"
	Diff         Kind = "diff"  // files that were changed
	Paths        Kind = "files" // files that were read or changed
	Manual       Kind = "manual"
)

// Standing of a claim after the host has looked. It is never higher than what was claimed.
type Standing string

// The standings. Lowered: a citation is not backed by the receipts, so the step is not completed.
const (
	Verified   Standing = "verified"
	Unverified Standing = "unverified" // completed on the model's word: a manual note
	Lowered    Standing = "lowered"
)

// Item is one piece of evidence. Backed and Reason are the host's.
type Item struct {
	Kind    Kind     `json:"kind"`
	Command string   `json:"command,omitempty"`
	Paths   []string `json:"paths,omitempty"`
	Note    string   `json:"note,omitempty"`
	Backed  bool     `json:"backed"`
	Reason  string   `json:"reason"`
	Mend    string   `json:"mend,omitempty"` // what the model can do about it
}

// Claim is one sign-off of a todo.
type Claim struct {
	Step     string   `json:"step"`
	Summary  string   `json:"summary"`
	Standing Standing `json:"standing"`
	Evidence []Item   `json:"evidence"`
}

// Weakest says what keeps the claim from being verified.
func (c Claim) Weakest() string {
	for _, it := range c.Evidence {
		if !it.Backed && it.Kind != Manual {
			return it.what() + ": " + it.Reason
		}
	}
	for _, it := range c.Evidence {
		if !it.Backed {
			return "on the model's word: " + it.Note
		}
	}
	return ""
}

func (it Item) what() string {
	switch it.Kind {
	case Verification:
		return short(it.Command)
	case Manual:
		return short(it.Note)
	}
	return short(strings.Join(it.Paths, ", "))
}

// Adjudicate checks every citation of a claim against what the host saw. where gives the real, absolute path of a path as somebody wrote it.
// It only ever lowers: whatever the claim said about itself is thrown away first.
func (f Facts) Adjudicate(c Claim, where func(string) string) Claim {
	c.Standing = Verified
	items := make([]Item, len(c.Evidence))
	for i, it := range c.Evidence {
		it.Backed, it.Reason, it.Mend = f.backs(it, where)
		items[i] = it
		switch {
		case !it.Backed && it.Kind != Manual:
			c.Standing = Lowered
		case !it.Backed && c.Standing == Verified:
			c.Standing = Unverified
		}
	}
	if len(items) == 0 {
		c.Standing = Unverified
	}
	c.Evidence = items
	return c
}

func (f Facts) backs(it Item, where func(string) string) (backed bool, reason, mend string) {
	switch it.Kind {
	case Verification:
		return f.verifies(it.Command)
	case Diff:
		return covers(it.Paths, resolved(f.seen.written, where), where,
			"no file tool changed it in this task", "a file that a command made can be read and cited as files")
	case Paths:
		all := resolved(f.seen.written, where)
		for p := range f.seen.read {
			all[p] = true
		}
		return covers(it.Paths, all, where, "it was neither read nor changed with a file tool in this task", "")
	case Manual:
		return false, "a note is the model's own word; the host saw nothing of it", ""
	}
	return false, fmt.Sprintf("%q is no kind of evidence", it.Kind), ""
}

func (f Facts) verifies(command string) (backed bool, reason, mend string) {
	run, ok := f.seen.run(command)
	switch {
	case !ok && f.refused(command):
		return false, "it was refused and did not run", ""
	case !ok:
		return false, "it was not run in this task", "cite a command word for word as it ran"
	case run.outcome == Failed:
		return false, fmt.Sprintf("its last run failed (exit code %d)", run.exit), ""
	case run.outcome != Passed:
		return false, "it ran, but the exit code of its line does not tell how it ended", "run it alone"
	case run.stale && run.after != "":
		return false, "it passed, and this ran afterwards and may have changed files: " + run.after, "run it again"
	case run.stale:
		return false, "it passed before the last change to files", "run it again"
	}
	return true, "it passed", ""
}

func (f Facts) refused(command string) bool {
	for _, r := range f.Refusals {
		if r.What == strings.TrimSpace(command) {
			return true
		}
	}
	return false
}

func covers(paths []string, seen map[string]bool, where func(string) string, why, mend string) (bool, string, string) {
	for _, p := range paths {
		if !seen[where(p)] {
			return false, short(p) + ": " + why, mend
		}
	}
	return true, "seen by the host", ""
}

// signed follows which completed todos were signed off. Items are told apart by their text; of items with the same text the last sign-offs count.
type signed struct {
	before  map[string]int     // completed before this request, by text
	claims  map[string][]Claim // sign-offs that completed an item
	lowered map[string]Claim   // the last one that did not
	checked bool               // some step was verified with a command
}

func newSigned() signed {
	return signed{before: map[string]int{}, claims: map[string][]Claim{}, lowered: map[string]Claim{}}
}

func completed(todos []Todo) map[string]int {
	n := map[string]int{}
	for _, t := range todos {
		if t.Status == Completed {
			n[key(t.Content)]++
		}
	}
	return n
}

// key makes texts comparable whatever their white space.
func key(text string) string { return strings.Join(strings.Fields(text), " ") }

func (s *signed) note(data json.RawMessage) {
	var c Claim
	if json.Unmarshal(data, &c) != nil {
		return
	}
	k := key(c.Step)
	if c.Standing == Lowered {
		s.lowered[k] = c
		return
	}
	delete(s.lowered, k)
	for _, it := range c.Evidence {
		s.checked = s.checked || it.Kind == Verification && it.Backed
	}
	s.claims[k] = append(s.claims[k], c)
}

// list forgets the sign-offs of items that are open again or gone.
func (s *signed) list(todos []Todo) {
	now := completed(todos)
	for k, n := range s.before {
		s.before[k] = min(n, now[k])
	}
	for k, claims := range s.claims {
		s.claims[k] = claims[:min(len(claims), max(0, now[k]-s.before[k]))]
	}
}

// open are the completed items of this request that the host cannot vouch for, in the order of the list.
func (s *signed) open(todos []Todo) (claims []Claim, unsigned []string) {
	seen := map[string]int{}
	for _, t := range todos {
		k := key(t.Content)
		if t.Status != Completed {
			continue
		}
		seen[k]++
		n := seen[k] - s.before[k] - 1
		switch done := s.claims[k]; {
		case n < 0: // of an earlier request
		case n < len(done):
			if done[n].Standing != Verified {
				claims = append(claims, done[n])
			}
		default:
			if low, there := s.lowered[k]; there {
				claims = append(claims, low)
				continue
			}
			unsigned = append(unsigned, short(t.Content))
		}
	}
	return claims, unsigned
}
