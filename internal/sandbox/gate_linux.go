package sandbox

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// gateScript stands at the beginning of the script that begins every box. bubblewrap binds the box to its host late in the making; a host that
// is killed before that would leave a box behind which nobody ends. Such a box fails to knock here, because nobody holds the other
// end of the pipe any more, and ends by itself. Nothing of this gets into the command.
const gateScript = "echo >&3 || exit 126; exec 3>&- 4<&-; "

// ends are the host's ends of what it shares with a box.
type ends struct {
	gate   *os.File // held open as long as the host lives; nobody reads it
	stat   *os.File // bubblewrap's status
	statFD string   // where bubblewrap writes it
	out    *os.File // output of the command
	outW   *os.File // the box's end of it, closed after the start
}

// connect makes them. The gate has to be descriptor 3 and the status's reading end 4, so nothing is passed before: that end goes along because a
// host that is dead must not end bubblewrap by a broken pipe, half-way and with the box's first process waiting for it.
func (x *execution) connect() (*ends, error) {
	gate, gateW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	x.pass(gateW)
	e := &ends{gate: gate}
	stat, statW, err := os.Pipe()
	if err != nil {
		e.close()
		return nil, err
	}
	e.stat = stat
	again, err := os.Open("/proc/self/fd/" + strconv.Itoa(int(fdOf(stat))))
	if err != nil {
		statW.Close()
		e.close()
		return nil, fmt.Errorf("status of the box: %w", err)
	}
	x.pass(again)
	e.statFD = x.pass(statW)
	if e.out, e.outW, err = os.Pipe(); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *ends) close() {
	for _, f := range []*os.File{e.gate, e.stat, e.out, e.outW} {
		if f != nil {
			f.Close()
		}
	}
}

// fdOf is the number of f's descriptor, which Fd would switch to blocking reads.
func fdOf(f *os.File) (fd uintptr) {
	c, err := f.SyscallConn()
	if err == nil {
		_ = c.Control(func(n uintptr) { fd = n })
	}
	return fd
}

// pair makes two connected sockets: one for the host, the other one to be inherited.
func pair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket of the box: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	c, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("socket of the box: %w", err)
	}
	return c.(*net.UnixConn), theirs, nil
}
