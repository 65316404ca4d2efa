package sandbox

import (
	"slices"
	"strconv"
	"time"
)

// Defaults fill every limit that is zero. CPU has no default: a build may use many minutes, and the wall time ends it. Memory has none
// here: where control groups hold it, it is four fifths of what the host may use, and elsewhere a limit on the address
// space would break programs that reserve terabytes, as the race detector does.
var Defaults = Limits{
	Wall:      120 * time.Second, // bash_timeout_seconds of the Spec
	Output:    32 << 10,
	Processes: 512,
	OpenFiles: 4096,
	FileBytes: 8 << 30,
}

func (l Limits) withDefaults() Limits {
	if l.Wall == 0 {
		l.Wall = Defaults.Wall
	}
	if l.Output == 0 {
		l.Output = Defaults.Output
	}
	if l.Processes == 0 {
		l.Processes = Defaults.Processes
	}
	if l.OpenFiles == 0 {
		l.OpenFiles = Defaults.OpenFiles
	}
	if l.FileBytes == 0 {
		l.FileBytes = Defaults.FileBytes
	}
	return l
}

// noWall stands for a negative Limits.Wall: no limit of its own (bash_timeout_seconds = 0 in the Spec).
const noWall = 365 * 24 * time.Hour

// wallFor is the shorter of the policy's and the command's limit; a command may only tighten.
func wallFor(l Limits, c Command) time.Duration {
	if l.Wall < 0 {
		l.Wall = noWall
	}
	if c.Wall > 0 && c.Wall < l.Wall {
		return c.Wall
	}
	return l.Wall
}

// limited wraps argv so that the limits are set inside the box: the number of processes is then counted there and not over
// everything the host's user runs. -p is dash's and busybox's letter for it, -u is bash's. first is what the shell does before.
func limited(first string, l Limits, argv []string) []string {
	script := first + "{ ulimit -p $1 || ulimit -u $1; ulimit -n $2; ulimit -f $3; ulimit -c 0; "
	if l.MemoryBytes > 0 {
		script += "ulimit -d " + strconv.FormatInt(l.MemoryBytes>>10, 10) + "; "
	}
	if l.CPUSeconds > 0 {
		script += "ulimit -t " + strconv.Itoa(l.CPUSeconds) + "; "
	}
	script += `} 2>/dev/null; shift 3; exec "$@"`
	return slices.Concat([]string{"/bin/sh", "-c", script, "sh", strconv.Itoa(l.Processes), strconv.Itoa(l.OpenFiles),
		strconv.FormatInt(l.FileBytes/512, 10)}, argv)
}
