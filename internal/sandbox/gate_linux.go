package sandbox

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// gateScript stands at the beginning of the script that begins every box: knock, wait for the answer, and let nothing of this get into the
// command. bubblewrap binds the box to its host late in the making; a host that is killed before that would leave a box
// behind which nobody ends. At the gate such a box finds the other end closed, and ends by itself.
const gateScript = "echo >&3; read -r go <&3 || exit 126; exec 3>&- 4<&-; "

// ends are the host's ends of what it shares with a box.
type ends struct {
	gate   *net.UnixConn
	stat   *os.File // bubblewrap's status
	statFD string   // where bubblewrap writes it
	out    *os.File // output of the command
	outW   *os.File // the box's end of it, closed after the start

	gateEnd chan struct{} // closed when nobody serves the gate any more; nil before it is served
}

// connect makes them. The gate has to be descriptor 3 and the status's reading end 4, so nothing is passed before: that end goes along because a
// host that is dead must not end bubblewrap by a broken pipe, half-way and with the box's first process waiting for it.
func (x *execution) connect() (*ends, error) {
	gate, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	x.pass(theirs)
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

// fdOf is the number of f's descriptor, which Fd would switch to blocking reads.
func fdOf(f *os.File) (fd uintptr) {
	c, err := f.SyscallConn()
	if err == nil {
		_ = c.Control(func(n uintptr) { fd = n })
	}
	return fd
}

// openGate serves the knock.
func (e *ends) openGate() {
	e.gateEnd = make(chan struct{})
	go func() {
		defer close(e.gateEnd)
		if n, err := e.gate.Read(make([]byte, 1)); n == 1 && err == nil {
			_, _ = e.gate.Write([]byte{'\n'})
		}
	}()
}

func (e *ends) close() {
	_ = e.gate.SetDeadline(time.Unix(1, 0))
	if e.gateEnd != nil {
		<-e.gateEnd
	}
	e.gate.Close()
	for _, f := range []*os.File{e.stat, e.out, e.outW} {
		if f != nil {
			f.Close()
		}
	}
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
