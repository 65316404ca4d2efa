//go:build unix

package console

import "io/fs"

func ownerOnly(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }
