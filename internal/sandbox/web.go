package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"reasonix/internal/netclient"
)

// ErrHost: the network of the task does not reach that host.
var ErrHost = errors.New("refused by the sandbox")

const webRedirects = 5

// Client is what tools of the host use on a task's behalf: it reaches what the boxes of n reach and nothing else, each redirect
// included. A whole exchange takes at most 30 s. It fails for a Trusted entry that cannot be read.
func (n *Network) Client() (*http.Client, error) {
	d, err := netclient.NewDialer(n.Trusted, n.resolver)
	if err != nil {
		return nil, err
	}
	t := &http.Transport{DialContext: d.Dial, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 10 * time.Second}
	return &http.Client{Timeout: 30 * time.Second, Transport: &narrowed{n: n, dialer: d, next: t},
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) >= webRedirects {
				return fmt.Errorf("%w: more than %d redirects", netclient.ErrRedirect, webRedirects)
			}
			return nil
		}}, nil
}

// narrowed judges every request, redirected ones too.
type narrowed struct {
	n      *Network
	dialer *netclient.Dialer
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c *narrowed) RoundTrip(r *http.Request) (*http.Response, error) {
	usual := map[string]string{"http": "80", "https": "443"}[r.URL.Scheme]
	if usual == "" || r.URL.Host == "" {
		return nil, fmt.Errorf("%w: only http and https addresses can be fetched", ErrHost)
	}
	host, port := r.URL.Hostname(), r.URL.Port()
	if port == "" {
		port = usual
	}
	target := net.JoinHostPort(host, port)
	if why := c.n.refuses(host, port, usual); why != "" && !c.dialer.Trusts(target) {
		c.told(target, why)
		return nil, fmt.Errorf("%w: %s: %s", ErrHost, target, why)
	}
	resp, err := c.next.RoundTrip(r)
	switch {
	case errors.Is(err, netclient.ErrPrivate):
		c.told(target, "private address")
	case err != nil && !errors.Is(err, context.Canceled):
		c.told(target, "not reachable")
	case err == nil:
		c.told(target, "")
	}
	return resp, err
}

func (c *narrowed) told(target, refused string) {
	if c.n.Reached != nil {
		c.n.Reached(clip(target), refused)
	}
}

// CloseIdleConnections lets http.Client.CloseIdleConnections work.
func (c *narrowed) CloseIdleConnections() { c.next.(*http.Transport).CloseIdleConnections() }
