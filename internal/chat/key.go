package chat

import (
	"crypto/sha256"
	"encoding/hex"
)

// KeyDigest is the form of a post's key that may lie open on a platform, where every member can read it: 128 bits of its
// SHA-256 as hexadecimal digits.
func KeyDigest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}
