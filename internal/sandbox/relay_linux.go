package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// RelayCommand is the hidden subcommand that a box with a network starts with: this very program, bound into the box.
const RelayCommand = "box-relay"

// relayPath is where the box finds it.
const relayPath = "/run/reasonix/relay"

// Relay opens the proxy's port on the loopback of the box, hands the open port to the host over the inherited socket, and becomes the
// command: args are the socket's descriptor and the command. The host accepts on that port, so no process of ours stays in
// the box and no file of ours on the host. It returns only on failure.
func Relay(args []string) error {
	if len(args) < 2 {
		return errors.New("box relay: this command is started by boxes only")
	}
	fd, err := strconv.Atoi(args[0])
	if err != nil || fd < 3 {
		return fmt.Errorf("box relay: descriptor %q", args[0])
	}
	unix.CloseOnExec(fd)
	l, err := net.Listen("tcp", proxyAddress)
	if err != nil {
		return fmt.Errorf("box relay: open the proxy's port: %w", err)
	}
	port, err := l.(*net.TCPListener).File()
	if err != nil {
		return fmt.Errorf("box relay: %w", err)
	}
	if err := unix.Sendmsg(fd, []byte{1}, unix.UnixRights(int(port.Fd())), nil, 0); err != nil {
		return fmt.Errorf("box relay: hand the port over: %w", err)
	}
	if err := syscall.Exec(args[1], args[1:], os.Environ()); err != nil { // the listener's own descriptors close on exec
		return fmt.Errorf("box relay: start %s: %w", args[1], err)
	}
	return nil
}

// relayed is the host's end: it waits for the port and serves it.
type relayed struct {
	conn  *net.UnixConn
	proxy *proxy
	done  chan struct{}
}

func serveRelay(c *net.UnixConn, n *Network) *relayed {
	r := &relayed{conn: c, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		l, err := receivePort(c)
		if err != nil {
			return // the box ended or says on its own output what failed
		}
		if r.proxy, err = newProxy(l, n); err != nil {
			l.Close()
		}
	}()
	return r
}

// receivePort takes one listening TCP socket, and nothing else, from the box.
func receivePort(c *net.UnixConn) (net.Listener, error) {
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := c.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, err
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(msgs) != 1 {
		return nil, errors.New("no port was handed over")
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.New("no port was handed over")
	}
	f := os.NewFile(uintptr(fds[0]), "port")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	if _, ok := l.(*net.TCPListener); !ok {
		l.Close()
		return nil, errors.New("what was handed over is no TCP port")
	}
	return l, nil
}

// close ends the network of the box and returns what was reached.
func (r *relayed) close() []string {
	r.conn.Close() // a box that never handed its port over
	<-r.done
	if r.proxy == nil {
		return nil
	}
	return r.proxy.close()
}
