package sandbox

import (
	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// reducedDenied stands in for the namespaces that the reduced box lacks: every way to a socket but socketpair, since Landlock knows
// neither UDP nor file sockets; System V IPC and message queues, which every process of the machine shares; and a look at which files others change.
var reducedDenied = []string{
	"socket", "connect", "bind", "listen", "accept", "accept4",
	"shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl",
	"mq_open", "mq_unlink", "inotify_init", "inotify_init1", "fanotify_mark", "migrate_pages", "process_mrelease",
}

// reducedConditions keep the limits and the scheduling of other processes out of reach, and sockets to connected pairs: a datagram
// socket of a pair could be pointed at any socket file.
var reducedConditions = []seccomp.NameWithConditions{
	{Name: "socketpair", Conditions: noneOf(0, unix.AF_UNIX)},
	{Name: "socketpair", Conditions: anyBit(1, unix.SOCK_DGRAM)}, // the bit of SOCK_DGRAM and SOCK_RAW; streams lack it
	{Name: "prlimit64", Conditions: noneOf(0, 0)},
	{Name: "sched_setaffinity", Conditions: noneOf(0, 0)},
	{Name: "sched_setscheduler", Conditions: noneOf(0, 0)},
	{Name: "sched_setparam", Conditions: noneOf(0, 0)},
	{Name: "sched_setattr", Conditions: noneOf(0, 0)},
	{Name: "move_pages", Conditions: noneOf(0, 0)},
	{Name: "setpriority", Conditions: noneOf(0, unix.PRIO_PROCESS)},
	{Name: "setpriority", Conditions: noneOf(1, 0)},
	{Name: "ioprio_set", Conditions: noneOf(0, 1)}, // IOPRIO_WHO_PROCESS
	{Name: "ioprio_set", Conditions: noneOf(1, 0)},
}

// reducedFilter is the filter of a reduced box; root tells that it runs as root.
func reducedFilter(root bool) ([]byte, error) {
	return assembleFilter(specialModes(root), reducedDenied, reducedConditions)
}
