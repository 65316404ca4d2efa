package approval

import (
	"crypto/rand"
	"encoding/base32"
	"strings"
)

var lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewID returns a globally unique id of an ask with 125 bits of randomness, in the shape that chat.IsAskID accepts.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails (Go 1.24 and later)
	return "ask_" + strings.ToLower(lower.EncodeToString(b[:]))
}
