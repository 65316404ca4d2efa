package sandbox

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// gateScript stands at the beginning of the script that begins every box. bubblewrap binds a box to its host late in the making; a host that
// is killed before that would leave a box behind which nobody ends. So the script waits until the box's first process is
// bound, which is when it sleeps, and then knocks at the socket whose other end only a living bubblewrap holds. A box without
// one fails there and ends by itself. Nothing of this gets into the command.
const gateScript = `i=0; until read -r s </proc/1/stat; case $s in *") S "*) :;; *) [ $((i=i+1)) -gt 5000 ];; esac; do :; done; ` +
	"echo >&3 || exit 126; exec 3>&-; "

// ends are the host's ends of what it shares with a box.
type ends struct {
	stat   *net.UnixConn // bubblewrap's status; the box has this end too, to knock
	statFD string        // where bubblewrap writes it
	out    *os.File      // output of the command
	outW   *os.File      // the box's end of it, closed after the start
}

// connect makes them. The end to knock at has to be descriptor 3, so nothing is passed before. That the box holds it also keeps a bubblewrap
// whose host is dead from ending by a broken pipe, half-way and with the box's first process waiting for it.
func (x *execution) connect() (*ends, error) {
	stat, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	e := &ends{stat: stat}
	knock, err := stat.File()
	if err != nil {
		theirs.Close()
		e.close()
		return nil, fmt.Errorf("status of the box: %w", err)
	}
	x.pass(knock)
	e.statFD = x.pass(theirs)
	if e.out, e.outW, err = os.Pipe(); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// started makes the host's reads waitable again: handing the same socket to a child took that from it.
func (e *ends) started() error {
	raw, err := e.stat.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.SetNonblock(int(fd), true) }); err != nil {
		return err
	}
	return failed
}

func (e *ends) close() {
	e.stat.Close()
	for _, f := range []*os.File{e.out, e.outW} {
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
