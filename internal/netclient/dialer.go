package netclient

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Dialer connects for somebody who is not trusted: a task. It goes direct, and never to this machine or a private address.
type Dialer struct {
	g        guard
	resolver *net.Resolver
}

// NewDialer builds one. trusted is as in Options; resolver may be nil for the system's. It fails for an entry that cannot be read.
func NewDialer(trusted []string, resolver *net.Resolver) (*Dialer, error) {
	d := &Dialer{g: guard{trusted: map[string]bool{}}, resolver: resolver}
	for _, t := range trusted {
		if err := d.g.trust(t); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Trusts tells whether the configuration names this host:port.
func (d *Dialer) Trusts(address string) bool { return d.g.trusts(address) }

// Dial checks the address that the connection really goes to, after the name was resolved. An address of one of this machine's own
// interfaces is refused even when it is public: the host's ports are no place for a task. The error wraps ErrPrivate.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Resolver: d.resolver}
	if !d.g.trusts(address) {
		own, err := net.InterfaceAddrs()
		if err != nil {
			return nil, fmt.Errorf("addresses of this machine: %w", err)
		}
		dialer.Control = func(_, real string, _ syscall.RawConn) error { return refuse(address, real, own) }
	}
	return dialer.DialContext(ctx, network, address)
}

// refuse judges the address real that address resolved to.
func refuse(address, real string, own []net.Addr) error {
	ap, err := netip.ParseAddrPort(real)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrPrivate, real)
	}
	ip := ap.Addr().Unmap().WithZone("")
	if private(ip) {
		return fmt.Errorf("%w: %s is %s, and the configuration does not name it", ErrPrivate, address, ip)
	}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok {
			if mine, ok := netip.AddrFromSlice(n.IP); ok && mine.Unmap() == ip {
				return fmt.Errorf("%w: %s is this machine", ErrPrivate, address)
			}
		}
	}
	return nil
}
