package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"reasonix/internal/netclient"
)

const (
	proxyConns  = 128 // open at once, per command
	proxyHeader = 64 << 10
	proxyIdle   = 5 * time.Minute
	proxySeen   = 200 // targets remembered per command
)

// proxy serves one command's network. It speaks HTTP with absolute URLs and CONNECT, dials itself, and checks each address
// after the name was resolved: a redirect comes back as a new request, and a name that answers differently gains nothing.
type proxy struct {
	net    *Network
	dialer *netclient.Dialer
	plain  *httputil.ReverseProxy
	server *http.Server
	life   context.Context
	end    context.CancelFunc
	ended  sync.WaitGroup

	mu      sync.Mutex
	closing bool
	seen    map[string]string // target → reason of a refusal
	list    []string
}

// newProxy serves l until close.
func newProxy(l net.Listener, n *Network) (*proxy, error) {
	d, err := netclient.NewDialer(n.Trusted, n.resolver)
	if err != nil {
		return nil, err
	}
	p := &proxy{net: n, dialer: d, seen: map[string]string{}}
	p.life, p.end = context.WithCancel(context.Background())
	quiet := log.New(io.Discard, "", 0) // what a task sends is no news of the host
	p.plain = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.Host = r.In.URL.Host; r.Out.Header.Del("Proxy-Authorization") },
		Transport: &http.Transport{DialContext: d.Dial, DisableCompression: true, MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second,
			ResponseHeaderTimeout: proxyIdle},
		FlushInterval: -1, ErrorLog: quiet, ErrorHandler: p.failed,
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: proxyIdle, MaxHeaderBytes: proxyHeader, ErrorLog: quiet,
		BaseContext: func(net.Listener) context.Context { return p.life }}
	p.ended.Add(1)
	go func() {
		defer p.ended.Done()
		_ = p.server.Serve(netutil.LimitListener(l, proxyConns))
	}()
	return p, nil
}

// close ends every connection and waits for all of them; it returns what was reached, in order, one line each.
func (p *proxy) close() []string {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	p.end()
	_ = p.server.Close()
	p.ended.Wait()
	p.plain.Transport.(*http.Transport).CloseIdleConnections()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list
}

func (p *proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closing {
		p.ended.Add(1)
	}
	return !p.closing
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		return
	}
	defer p.ended.Done()
	target, usual := r.Host, "443"
	if r.Method != http.MethodConnect {
		if r.URL.Scheme != "http" || r.URL.Host == "" {
			http.Error(w, "this is a proxy for HTTP and HTTPS: send an absolute http URL or CONNECT", http.StatusBadRequest)
			return
		}
		target, usual = r.URL.Host, "80"
	}
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		host, port = strings.Trim(target, "[]"), usual
	}
	if host == "" {
		http.Error(w, "the target has no host", http.StatusBadRequest)
		return
	}
	target = net.JoinHostPort(host, port)
	if why := p.net.refuses(host, port, usual); why != "" && !p.dialer.Trusts(target) {
		p.note(target, why)
		http.Error(w, "refused by the sandbox: "+target+": "+why, http.StatusForbidden)
		return
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, r, target)
		return
	}
	p.plain.ServeHTTP(&noted{w, p, target}, r)
}

// noted notes a target when its answer begins.
type noted struct {
	http.ResponseWriter
	proxy  *proxy
	target string
}

// WriteHeader implements http.ResponseWriter.
func (n *noted) WriteHeader(code int) {
	n.proxy.note(n.target, "")
	n.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController through.
func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// failed answers when the origin could not be reached.
func (p *proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	target := r.URL.Host
	if n, ok := w.(*noted); ok {
		w, target = n.ResponseWriter, n.target
	}
	p.fail(w, target, err)
}

func (p *proxy) fail(w http.ResponseWriter, target string, err error) {
	if errors.Is(err, netclient.ErrPrivate) {
		p.note(target, "private address")
		http.Error(w, "refused by the sandbox: "+target+" is a private address or this machine", http.StatusForbidden)
		return
	}
	p.note(target, "not reachable")
	http.Error(w, fmt.Sprintf("the sandbox could not reach %s: %v", target, err), http.StatusBadGateway)
}

// tunnel carries TLS and nothing else.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request, target string) {
	out, err := p.dialer.Dial(r.Context(), "tcp", target)
	if err != nil {
		p.fail(w, target, err)
		return
	}
	defer out.Close()
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "no tunnel", http.StatusInternalServerError)
		return
	}
	defer in.Close()
	stop := context.AfterFunc(p.life, func() { in.Close(); out.Close() })
	defer stop()
	_ = in.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	if first, err := buffered.Reader.Peek(1); err != nil || first[0] != tlsHandshake {
		p.note(target, "only TLS passes a tunnel")
		return
	}
	p.note(target, "")
	_ = in.SetDeadline(time.Time{})
	done := make(chan struct{})
	go func() { defer close(done); pass(out, in, buffered.Reader) }()
	pass(in, out, out)
	<-done
}

const tlsHandshake = 0x16 // content type of a ClientHello's record

// pass copies one direction and then says so to the other side. A silent tunnel stays: the end of the command ends it.
func pass(to, from net.Conn, r io.Reader) {
	_, err := io.Copy(to, r)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	to.Close()
	from.Close()
}

// note remembers a target once per outcome.
func (p *proxy) note(target, refused string) {
	target = clip(target)
	p.mu.Lock()
	last, known := p.seen[target]
	fresh := (!known || last != refused) && len(p.list) < proxySeen
	if fresh {
		p.seen[target] = refused
		line := target
		if refused != "" {
			line += " (refused: " + refused + ")"
		}
		p.list = append(p.list, line)
	}
	p.mu.Unlock()
	if fresh && p.net.Reached != nil {
		p.net.Reached(target, refused)
	}
}

// clip keeps a name that a task chose short and printable.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), 260)]
}
