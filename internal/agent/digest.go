package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Action is everything that an approval is bound to.
type Action struct {
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"` // decoded once by tool.Registry.Decode
	WorkDir string          `json:"workdir"`
	Tree    string          `json:"tree"` // TreeState.Hash
	Base    string          `json:"base"`
	Head    string          `json:"head"`
	Gate    string          `json:"gate"` // Gate.Digest
	Box     string          `json:"box"`  // digest of the box policy
}

// Digest is the sha256, in hex, of the action as canonical JSON: one object with the eight keys args, base, box, gate, head,
// tool, tree, workdir; keys of every object sorted bytewise, no white space, numbers as they were written, no HTML escapes.
// Equal digests mean the same action on the same thing under the same rules.
func Digest(a Action) (string, error) {
	if len(a.Args) == 0 {
		a.Args = json.RawMessage("null")
	}
	raw, err := canonical(a)
	if err != nil {
		return "", fmt.Errorf("digest of a call to %s: %w", a.Tool, err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// canonical goes through generic values: encoding/json sorts the keys of maps, and json.Number keeps numbers as written.
func canonical(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(tree); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
