package tool

import "errors"

// Promised errors of the file port; wrap them with the path.
var (
	ErrOutside   = errors.New("outside the workspace and its granted roots")
	ErrForbidden = errors.New("reading this path is forbidden")
	ErrProtected = errors.New("protected path")
	ErrSpecial   = errors.New("not a regular file")
	ErrTooLarge  = errors.New("file too large")
	// ErrNoCommand: no background command of that id. ErrTooMany: as many run as may run at once.
	ErrNoCommand = errors.New("no such background command")
	ErrTooMany   = errors.New("too many background commands")
	ErrChanged   = errors.New("file changed since it was read")
	ErrReadOnly  = errors.New("the workspace is read-only now")
)
