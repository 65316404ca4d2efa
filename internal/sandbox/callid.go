package sandbox

import "crypto/rand"

// callID marks the processes of one call.
func callID() string { return rand.Text() }
