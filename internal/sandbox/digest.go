package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// Digest identifies what the box allows. Order of the lists does not matter, except that of Env, where the last one wins.
func (p Policy) Digest() string {
	p.Caches = sorted(p.Caches)
	p.Writable = sorted(p.Writable)
	p.Readable = sorted(p.Readable)
	p.ForbidRead = sorted(p.ForbidRead)
	p.Limits = p.Limits.withDefaults()
	if p.Network != nil {
		p.Network = &Network{AllowHosts: sorted(p.Network.AllowHosts), Trusted: sorted(p.Network.Trusted)}
	}
	data, err := json.Marshal(p)
	if err != nil { // only strings, numbers and bools: cannot happen
		panic("sandbox: encode policy: " + err.Error())
	}
	sum := sha256.Sum256(append([]byte("box policy 1\n"), data...))
	return hex.EncodeToString(sum[:])
}

// DigestIn is the digest of what a box of this kind allows: an action that was approved for the full box is asked again in the reduced one.
func (p Policy) DigestIn(box Box) string {
	if Reduced(box) {
		return box.Name() + ":" + p.Digest()
	}
	return p.Digest()
}

func sorted(in []string) []string {
	out := slices.Clone(in)
	slices.Sort(out)
	return slices.Compact(out)
}
