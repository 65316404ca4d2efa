package tool

import (
	"encoding/json"
	"fmt"
	"sync"
)

// VersionAbsent bound to Files.Write means that the file must not exist yet.
const VersionAbsent = "absent"

// NoteSeen is the Env.Note kind under which Versions leaves what the model has seen.
const NoteSeen = "seen"

// Versions remembers which version of each file the model saw last in this run, so that a write over somebody else's change is
// refused. Safe for concurrent use.
type Versions struct {
	mu   sync.Mutex
	seen map[string]string
}

// NewVersions starts with nothing seen.
func NewVersions() *Versions { return &Versions{seen: map[string]string{}} }

// Seen is the data of a NoteSeen.
type Seen struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

// See records that the model saw path (resolved) in that version.
func (v *Versions) See(path, version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen[path] = version
}

// Last returns the version that was seen last.
func (v *Versions) Last(path string) (string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	version, ok := v.seen[path]
	return version, ok
}

// Forget drops a path that was moved away.
func (v *Versions) Forget(path string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.seen, path)
}

// Recall takes in the data of one NoteSeen of an earlier attempt, in order, so that a continued task knows what it had read.
func (v *Versions) Recall(data json.RawMessage) error {
	var s Seen
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("recall seen file: %w", err)
	}
	if s.Version == "" {
		v.Forget(s.Path)
		return nil
	}
	v.See(s.Path, s.Version)
	return nil
}
