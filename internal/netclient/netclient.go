// Package netclient makes the HTTP clients of the host: bounded, through the configured proxy, and unable to reach private
// addresses that the host's own configuration does not name.
package netclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Promised errors; they arrive inside the *url.Error of the client.
var (
	ErrPrivate  = errors.New("private address refused")
	ErrTooLarge = errors.New("response body over the limit")
	ErrRedirect = errors.New("redirect refused")
)

// DefaultMaxBody is the limit of a response body in bytes when Options names none.
const DefaultMaxBody = 32 << 20

const maxRedirects = 5

// Options of a client. The zero value is a strict client.
type Options struct {
	// Trusted are addresses from the host's own configuration: a URL, host:port, or a host (then ports 80 and 443). Only these
	// may be private. Nothing that came from a repository, a model or a platform's text belongs here.
	Trusted []string
	// Timeout bounds a whole exchange, body included; 0 leaves it to the request's context (streams).
	Timeout time.Duration
	// HeaderTimeout bounds the wait for response headers; 0 leaves it to the context.
	HeaderTimeout time.Duration
	// MaxBody bounds a response body in bytes after decompression; 0 means DefaultMaxBody, negative no limit.
	MaxBody int64
	// Proxy is a proxy URL; empty takes HTTPS_PROXY, HTTP_PROXY and NO_PROXY, "none" goes direct.
	Proxy string
}

// New builds a client. It fails for a Trusted entry or a Proxy that cannot be read.
func New(o Options) (*http.Client, error) {
	g := &guard{trusted: map[string]bool{}}
	for _, t := range o.Trusted {
		if err := g.trust(t); err != nil {
			return nil, err
		}
	}
	proxy, err := g.proxy(o.Proxy)
	if err != nil {
		return nil, err
	}
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	transport := &http.Transport{
		Proxy:                 proxy,
		DialContext:           g.dial,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: o.HeaderTimeout,
	}
	return &http.Client{
		Transport:     &bounded{transport, g, o.MaxBody},
		CheckRedirect: checkRedirect,
		Timeout:       o.Timeout,
	}, nil
}

// guard decides what may be dialled.
type guard struct {
	mu      sync.RWMutex
	trusted map[string]bool // host:port
}

func (g *guard) trust(entry string) error {
	entry = strings.ToLower(strings.TrimSpace(entry))
	if entry == "" {
		return nil // an address that is not configured
	}
	if strings.Contains(entry, "://") {
		u, err := url.Parse(entry)
		if err != nil || u.Hostname() == "" {
			return fmt.Errorf("trusted address %q: not a URL with a host", entry)
		}
		g.add(hostPort(u))
		return nil
	}
	if host, port, err := net.SplitHostPort(entry); err == nil {
		if host == "" || port == "" {
			return fmt.Errorf("trusted address %q: needs host:port", entry)
		}
		g.add(net.JoinHostPort(strings.TrimSuffix(host, "."), port))
		return nil
	}
	host := strings.TrimSuffix(strings.Trim(entry, "[]"), ".")
	g.add(net.JoinHostPort(host, "80"))
	g.add(net.JoinHostPort(host, "443"))
	return nil
}

func (g *guard) add(address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trusted[address] = true
}

func (g *guard) trusts(address string) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.trusted[strings.ToLower(address)]
}

// proxy trusts the address of whatever proxy is used: it comes from the configuration or the host's environment.
func (g *guard) proxy(setting string) (func(*http.Request) (*url.URL, error), error) {
	choose := http.ProxyFromEnvironment
	switch setting {
	case "":
	case "none":
		return nil, nil
	default:
		u, err := url.Parse(setting)
		if err != nil || u.Hostname() == "" {
			return nil, errors.New("proxy: not a URL with a host") // the setting may hold a password
		}
		choose = http.ProxyURL(u)
	}
	return func(r *http.Request) (*url.URL, error) {
		if writtenPrivate(r.URL) { // a trusted one: RoundTrip refused the others
			return nil, nil
		}
		u, err := choose(r)
		if err == nil && u != nil {
			g.add(hostPort(u))
		}
		return u, err
	}, nil
}

// dial checks the address that the connection really goes to, after the name was resolved: a name that answers differently the
// second time gains nothing.
func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	if !g.trusts(address) {
		d.Control = func(_, real string, _ syscall.RawConn) error { return refuse(address, real, nil) }
	}
	return d.DialContext(ctx, network, address)
}

// bounded checks each request, redirected ones too, before a proxy could be asked to reach the address, and bounds the answer.
type bounded struct {
	next *http.Transport
	g    *guard
	max  int64
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := b.g.literal(r.URL); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	resp, err := b.next.RoundTrip(r)
	if err != nil || b.max < 0 || resp.StatusCode == http.StatusSwitchingProtocols {
		return resp, err
	}
	resp.Body = &limited{resp.Body, b.max}
	return resp, nil
}

// CloseIdleConnections lets http.Client.CloseIdleConnections work.
func (b *bounded) CloseIdleConnections() { b.next.CloseIdleConnections() }

// literal refuses private addresses that are written out, and names of this machine.
func (g *guard) literal(u *url.URL) error {
	address := hostPort(u)
	if g.trusts(address) {
		return nil
	}
	if writtenPrivate(u) {
		return fmt.Errorf("%w: %s, and the configuration does not name it", ErrPrivate, address)
	}
	return nil
}

// writtenPrivate tells whether the URL itself spells a private address, without asking any resolver.
func writtenPrivate(u *url.URL) bool {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && private(ip)
}

// limited fails a body that is longer than it may be, instead of cutting it in silence.
type limited struct {
	io.ReadCloser
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.ReadCloser.Read(p)
	if int64(n) > l.left {
		n = int(l.left)
		l.left = 0
		return n, ErrTooLarge
	}
	l.left -= int64(n)
	return n, err
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	return net.JoinHostPort(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), port)
}
