package tool

import "errors"

// Promised errors of the file port; wrap them with the path.
var (
	ErrOutside   = errors.New("outside the workspace and its granted roots")
	ErrForbidden = errors.New("reading this path is forbidden")
	ErrProtected = errors.New("protected path")
	ErrSpecial   = errors.New("not a regular file")
	ErrTooLarge  = errors.New("file too large")
	ErrChanged   = errors.New("file changed since it was read")
	ErrReadOnly  = errors.New("the workspace is read-only now")
)
