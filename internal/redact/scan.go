package redact

import (
	"fmt"
	"strings"
	"sync"

	"github.com/zricethezav/gitleaks/v8/detect"
)

// Finding is one suspected secret. Its text is never part of it.
type Finding struct {
	Rule string // "known value", or the id of the pattern
	What string // for people
	Line int    // from 1
}

func (f Finding) String() string { return fmt.Sprintf("line %d: %s (%s)", f.Line, f.What, f.Rule) }

// Scan looks for known values first and then for the patterns of well-known kinds of secret. The patterns take 30 ms to load at the
// first call and read about 3 MB/s. They know formats, not meanings: password = "hunter2" is found only when the value is known.
func (r *Redactor) Scan(text string) ([]Finding, error) {
	var out []Finding
	rest := text
	if r != nil {
		spans := r.find(text)
		for _, s := range spans {
			name := strings.TrimSuffix(strings.TrimPrefix(s.mask, "[redacted:"), "]")
			out = append(out, Finding{"known value", "the value of " + name, 1 + strings.Count(text[:s.from], "\n")})
		}
		rest = apply(text, spans)
	}
	found, err := patterns(rest)
	if err != nil {
		return out, err
	}
	return append(out, found...), nil
}

var (
	loadDetector = sync.OnceValues(detect.NewDetectorDefaultConfig)
	scanning     sync.Mutex // the detector keeps state between calls
)

func patterns(text string) ([]Finding, error) {
	d, err := loadDetector()
	if err != nil {
		return nil, fmt.Errorf("scan for secrets: %w", err)
	}
	scanning.Lock()
	defer scanning.Unlock()
	var out []Finding
	for _, f := range d.DetectString(text) {
		line := f.StartLine + 1
		out = append(out, Finding{f.RuleID, f.Description, line})
	}
	return out, nil
}
