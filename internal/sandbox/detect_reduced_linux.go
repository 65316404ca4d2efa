package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// minLandlock is the first version that keeps files from being truncated (Linux 6.2); without that, everything the account owns could
// be emptied.
const minLandlock = 3

// detectReduced really runs a command in the reduced box.
func detectReduced(ctx context.Context, r Report) (Box, Report, error) {
	abi, reason, mend := landlockVersion()
	if reason != "" {
		r.Reason, r.Mend = reason, mend
		return unavailable(r)
	}
	box := reduced{abi: abi, noMounts: os.Geteuid() == 0 && !mayMount()}
	r.Program, r.Version = "Landlock", fmt.Sprintf("version %d", abi)
	if err := probe(ctx, box); err != nil {
		r.Reason, r.Mend = "a command did not run in the reduced box: "+firstLine(err.Error()), explainReduced(err)
		return unavailable(r)
	}
	r.Backend, r.Gaps = box.Name(), GapsOf(abi)
	r.Limits = []string{"wall time", "output", "open files", "file size", "memory and CPU time per process", "disk (sampled)", "processes"}
	if os.Geteuid() == 0 {
		r.Warnings = append(r.Warnings, "the host runs as root: the limit on processes holds in workspaces that belong to another user, as those of bot tasks do")
	} else {
		r.Warnings = append(r.Warnings, "the limit on processes counts from what the host's user runs when a command starts")
	}
	return box, r, nil
}

// mayMount tries it on a thread that is thrown away.
func mayMount() bool {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		done <- err
	}()
	return <-done == nil
}

// landlockVersion asks the kernel, and says why it has none that will do.
func landlockVersion() (abi int, reason, mend string) {
	abi, err := ll.LandlockGetABIVersion()
	switch {
	case errors.Is(err, unix.ENOSYS):
		return 0, "the kernel has no Landlock, or something around the host refuses its system calls", "a kernel of 6.2 or newer with CONFIG_SECURITY_LANDLOCK, and a container profile that allows landlock_create_ruleset"
	case errors.Is(err, unix.EOPNOTSUPP):
		return 0, "Landlock was switched off when the machine started", "add landlock to the lsm= list of the kernel's command line (/sys/kernel/security/lsm shows it)"
	case err != nil:
		return 0, "the kernel refuses Landlock: " + err.Error(), "allow landlock_create_ruleset in the container's seccomp profile"
	case abi < minLandlock:
		return 0, fmt.Sprintf("the kernel has version %d of Landlock, and %d is needed", abi, minLandlock), "a kernel of 6.2 or newer"
	}
	return min(abi, len(landlocks)-1), "", ""
}

// explainReduced reads the reason that the stage sent over.
func explainReduced(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, noFilter):
		return "allow seccomp filters in the profile of the container around the host"
	case strings.Contains(text, noPrivileges):
		return "run the host as an ordinary user, or leave CAP_SETPCAP, CAP_SETUID, CAP_SETGID and CAP_CHOWN to root in its container"
	}
	return "the reason says what to mend; `reasonix doctor` tries again"
}
