package sandbox

import "slices"

// Gap is something that the full box holds and the reduced one does not.
type Gap struct {
	ID   string // short and stable: docs and tests name it
	What string // one sentence for people
	// Below is the first version of Landlock that holds it; 0: none does.
	Below int
}

// ReducedGaps is everything that the reduced box does not hold. doctor prints it, docs/SANDBOX.md repeats it, and each entry has a
// test in which the attempt succeeds.
var ReducedGaps = []Gap{
	{ID: "protected-files", What: "Protected files of the workspace (.git/config, hooks, .reasonix, reasonix.toml and the like) can be changed while a command runs; " +
		"the host puts them back when the command has ended, also when the host itself is killed, but not after a loss of power."},
	{ID: "file-names", What: "Whether a file exists anywhere on the machine, with its size, times, owner and attributes, and where a link leads can be seen; folders outside " +
		"cannot be listed and files not read."},
	{ID: "file-modes", What: "Mode, times and extended attributes of files outside can be changed where the account of the box owns them: the host user's own " +
		"files, and nothing when a host that runs as root gives the workspace an account of its own."},
	{ID: "process-numbers", What: "Which process numbers exist on the host, and who owns them, can be seen; their command lines, environments and memory cannot."},
	{ID: "host-identity", What: "The host's name, its list of accounts (/etc/passwd) and its kernel settings (/proc/sys) can be read."},
	{ID: "forbidden-later", What: "A forbid_read path that comes into being while a command runs can be read until that command ends."},
	{ID: "forbidden-names", What: "The names inside a forbidden folder can be listed, its files not read."},
	{ID: "signals", What: "Processes of the same user outside the box can be signalled, the host among them when it is not root.", Below: 6},
}

// GapsOf are the gaps on a kernel with this version of Landlock.
func GapsOf(abi int) []Gap {
	return slices.DeleteFunc(slices.Clone(ReducedGaps), func(g Gap) bool { return g.Below > 0 && abi >= g.Below })
}
