//go:build !unix

package console

import "io/fs"

// ownerOnly cannot be read from the mode bits here; the folder's access list decides.
func ownerOnly(fs.FileInfo) bool { return true }
