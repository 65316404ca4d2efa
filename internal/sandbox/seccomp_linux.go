package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// denied are kernel surfaces that escapes use and that building or testing software does not need.
var denied = []string{
	"keyctl", "add_key", "request_key",
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
	"mount", "umount2", "umount", "pivot_root", "chroot", "setns",
	"open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
	"bpf", "userfaultfd", "perf_event_open", "open_by_handle_at", "fanotify_init",
	"kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
	"reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog", "lookup_dcookie",
	"settimeofday", "clock_settime", "stime", "sethostname", "setdomainname", "iopl", "ioperm", "vhangup",
	"modify_ldt", "nfsservctl", "vm86", "vm86old", "uselib",
}

// unsupported answers ENOSYS, so that programs take their older path: io_uring has its own way around filters, and the flags of
// clone3 and the mode of openat2 are behind pointers that a filter cannot read.
var unsupported = []string{"io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "openat2"}

const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// filterProgram is the filter in the form bubblewrap loads from a descriptor; the machine's architecture never changes.
// root tells that the box runs as root.
func filterProgram(root bool) ([]byte, error) {
	if root {
		return filterOfRoot()
	}
	return filterOfOthers()
}

var (
	filterOfRoot   = sync.OnceValues(func() ([]byte, error) { return assembleFilter(specialModes(true), nil, nil) })
	filterOfOthers = sync.OnceValues(func() ([]byte, error) { return assembleFilter(specialModes(false), nil, nil) })
)

// specialModes are the mode bits that nothing in a box may set. What a box of root makes belongs to root's group too; elsewhere folders may
// hand their group down.
func specialModes(root bool) uint64 {
	if root {
		return unix.S_ISUID | unix.S_ISGID
	}
	return unix.S_ISUID
}

// assembleFilter makes the filter of every box, which refuses the mode bits in special; a box that lacks namespaces adds what these would have held.
func assembleFilter(special uint64, more []string, moreConditions []seccomp.NameWithConditions) ([]byte, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("seccomp filter for %s: %w", runtime.GOARCH, err)
	}
	policy := seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{
		{Names: known(info, unsupported), Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)},
		{Names: known(info, slices.Concat(denied, more)), NamesWithCondtions: conditional(info, special, more, moreConditions), Action: seccomp.ActionErrno | seccomp.Action(unix.EPERM)},
	}}
	rules, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("seccomp filter: %w", err)
	}
	// A foreign system call table (32-bit on amd64) would otherwise pass unfiltered.
	program := append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 4, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(seccomp.ActionErrno) | uint32(unix.ENOSYS)},
	}, rules...)
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("seccomp filter: %w", err)
	}
	var out bytes.Buffer
	for _, ins := range raw { // struct sock_filter
		if err := binary.Write(&out, binary.NativeEndian, ins); err != nil {
			return nil, fmt.Errorf("seccomp filter: %w", err)
		}
	}
	return out.Bytes(), nil
}

func known(info *arch.Info, names []string) []string {
	var out []string
	for _, n := range names {
		if _, ok := info.SyscallNames[n]; ok {
			out = append(out, n)
		}
	}
	return out
}

// conditional leaves out what is denied altogether.
func conditional(info *arch.Info, special uint64, never []string, more []seccomp.NameWithConditions) []seccomp.NameWithConditions {
	rules := slices.Concat(more, []seccomp.NameWithConditions{
		{Name: "unshare", Conditions: anyBit(0, newNamespaces)},
		{Name: "clone", Conditions: anyBit(0, newNamespaces)},
		{Name: "ioctl", Conditions: low32(1, unix.TIOCSTI)},
		{Name: "ioctl", Conditions: low32(1, 0x541C)}, // TIOCLINUX pastes like TIOCSTI
		{Name: "socket", Conditions: noneOf(0, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)},
		{Name: "socketpair", Conditions: noneOf(0, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)}, // asking for a family loads its module
		{Name: "chmod", Conditions: anyBit(1, special)},
		{Name: "fchmod", Conditions: anyBit(1, special)},
		{Name: "fchmodat", Conditions: anyBit(2, special)},
		{Name: "fchmodat2", Conditions: anyBit(2, special)},
		{Name: "open", Conditions: born(1)},
		{Name: "openat", Conditions: born(2)},
		{Name: "creat", Conditions: anyBit(1, setID)},
		{Name: "mknod", Conditions: anyBit(1, setID)},
		{Name: "mknodat", Conditions: anyBit(2, setID)},
	})
	var out []seccomp.NameWithConditions
	for _, r := range rules {
		if _, ok := info.SyscallNames[r.Name]; ok && !slices.Contains(never, r.Name) {
			out = append(out, r)
		}
	}
	return out
}

// setID are the mode bits of programs that run as their owner or group; a file may be born with them, without a chmod.
const setID = unix.S_ISUID | unix.S_ISGID

// born matches the creation of such a file: the mode, which follows the flags, counts only then.
func born(flags uint32) seccomp.ArgumentConditions {
	return slices.Concat(anyBit(flags, unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY), anyBit(flags+1, setID))
}

func anyBit(arg uint32, mask uint64) seccomp.ArgumentConditions {
	return seccomp.ArgumentConditions{{Argument: arg, Operation: seccomp.BitsSet, Value: mask}}
}

// noneOf matches every value but these; junk in the upper half matches too, which is the safe side.
func noneOf(arg uint32, values ...uint64) (out seccomp.ArgumentConditions) {
	for _, v := range values {
		out = append(out, seccomp.Condition{Argument: arg, Operation: seccomp.NotEqual, Value: v})
	}
	return out
}

// low32 matches a value by its low half alone: the kernel ignores the upper half of these arguments, so an equality over 64 bits
// could be stepped around.
func low32(arg uint32, value uint32) (out seccomp.ArgumentConditions) {
	for bit := uint32(1); bit != 0; bit <<= 1 {
		if value&bit != 0 {
			out = append(out, seccomp.Condition{Argument: arg, Operation: seccomp.BitsSet, Value: uint64(bit)})
		}
	}
	return append(out, seccomp.Condition{Argument: arg, Operation: seccomp.BitsNotSet, Value: uint64(^value)})
}
