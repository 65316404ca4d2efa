package netclient

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

func client(t *testing.T, o Options) *http.Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, c *http.Client, address string) (string, error) {
	t.Helper()
	resp, err := c.Get(address)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func TestPrivateAddressesAreReachedOnlyWhenTheConfigurationNamesThem(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "inside") })
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	strict := client(t, Options{Proxy: "none"})
	for _, address := range []string{
		s.URL, "http://localhost" + port, "http://LOCALHOST." + port, "http://[::ffff:127.0.0.1]" + port, "http://0.0.0.0" + port,
		"http://2130706433" + port, "http://x.localhost" + port, "http://169.254.169.254/latest/meta-data", "http://10.0.0.1/", "http://[::1]" + port,
	} {
		if got, err := get(t, strict, address); err == nil {
			t.Errorf("%s was reached: %q", address, got)
		}
	}
	if _, err := get(t, strict, s.URL); !errors.Is(err, ErrPrivate) || !strings.Contains(err.Error(), "configuration does not name it") {
		t.Errorf("the refusal: %v", err)
	}
	for _, entry := range []string{s.URL + "/v1", strings.TrimPrefix(s.URL, "http://")} {
		if got, err := get(t, client(t, Options{Trusted: []string{"", entry}, Proxy: "none"}), s.URL); err != nil || got != "inside" {
			t.Errorf("trusted as %s: %q %v", entry, got, err)
		}
	}
	other := client(t, Options{Trusted: []string{"127.0.0.1:1", "127.0.0.1"}, Proxy: "none"})
	if _, err := get(t, other, s.URL); !errors.Is(err, ErrPrivate) {
		t.Errorf("another port of a trusted host: %v", err)
	}
}

func TestANameThatResolvesToAPrivateAddressIsRefusedAtDialTime(t *testing.T) {
	g := &guard{trusted: map[string]bool{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_, err = g.dial(t.Context(), "tcp", net.JoinHostPort("localhost", port)) // the one name that resolves without a network
	if !errors.Is(err, ErrPrivate) {
		t.Fatalf("dial by name: %v", err)
	}
}

func TestWhichAddressesArePrivate(t *testing.T) {
	for _, a := range []string{
		"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200", "0.0.0.0", "0.1.2.3",
		"255.255.255.255", "224.0.0.1", "192.0.2.1", "198.18.0.1", "168.63.129.16", "::1", "::", "fe80::1", "fd00:ec2::254", "::ffff:10.0.0.1",
		"::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:c0a8:101::1", "ff02::1", "2001:db8::1", "fe80::1%eth0", "64:ff9b:1::1",
	} {
		if !private(netip.MustParseAddr(a)) {
			t.Errorf("%s counts as public", a)
		}
	}
	for _, a := range []string{"8.8.8.8", "140.82.112.3", "2606:4700::1111", "64:ff9b::808:808", "172.32.0.1", "100.128.0.1"} {
		if private(netip.MustParseAddr(a)) {
			t.Errorf("%s counts as private", a)
		}
	}
}

func TestARedirectIsCheckedLikeAnyAddress(t *testing.T) {
	inside := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "inside") })
	door := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inside.URL, http.StatusFound) })
	if got, err := get(t, client(t, Options{Trusted: []string{door.URL}, Proxy: "none"}), door.URL); !errors.Is(err, ErrPrivate) {
		t.Errorf("%q %v", got, err)
	}
	loop := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) })
	if _, err := get(t, client(t, Options{Trusted: []string{loop.URL}, Proxy: "none"}), loop.URL); !errors.Is(err, ErrRedirect) {
		t.Errorf("a loop: %v", err)
	}
}

func TestCredentialsNeverFollowToAnotherHost(t *testing.T) {
	seen := make(chan http.Header, 8)
	var back *httptest.Server
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		if r.URL.Path == "/return" {
			http.Redirect(w, r, back.URL+"/end", http.StatusFound)
		}
	})
	back = serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/same":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/out":
			http.Redirect(w, r, other.URL+"/", http.StatusFound)
		case "/out-and-back":
			http.Redirect(w, r, other.URL+"/return", http.StatusFound)
		case "/post":
			http.Redirect(w, r, other.URL+"/", http.StatusTemporaryRedirect)
		default:
			seen <- r.Header.Clone()
		}
	})
	c := client(t, Options{Trusted: []string{other.URL, back.URL}, Proxy: "none"})
	send := func(method, path, body string) error {
		req, err := http.NewRequest(method, back.URL+path+"?token=in-query", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range []string{"Authorization", "Cookie", "X-Api-Key", "Private-Token"} {
			req.Header.Set(h, "credential")
		}
		req.Header.Set("Accept", "text/plain")
		resp, err := c.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	holds := func(h http.Header) bool {
		for name, v := range h {
			if strings.Contains(strings.Join(v, " "), "credential") || strings.Contains(strings.Join(v, " "), "in-query") {
				t.Log(name, v)
				return true
			}
		}
		return false
	}
	if err := send("GET", "/same", ""); err != nil {
		t.Fatal(err)
	}
	if h := <-seen; h.Get("X-Api-Key") == "" {
		t.Error("a redirect on the same host lost its credentials")
	}
	if err := send("GET", "/out", ""); err != nil {
		t.Fatal(err)
	}
	if h := <-seen; holds(h) || h.Get("Accept") == "" {
		t.Errorf("the other host saw %v", h)
	}
	if err := send("GET", "/out-and-back", ""); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if h := <-seen; holds(h) {
			t.Errorf("after leaving: %v", h)
		}
	}
	if err := send("POST", "/post", "client_secret=1"); !errors.Is(err, ErrRedirect) {
		t.Errorf("a body to another host: %v", err)
	}
}

func TestADowngradeIsRefused(t *testing.T) {
	req := &http.Request{URL: &url.URL{Scheme: "http", Host: "a"}, Header: http.Header{}}
	via := []*http.Request{{URL: &url.URL{Scheme: "https", Host: "a"}}}
	if err := checkRedirect(req, via); !errors.Is(err, ErrRedirect) {
		t.Errorf("https to http: %v", err)
	}
}

func TestBodiesAreBoundedAfterDecompression(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/exact" {
			w.Write(make([]byte, 1000))
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		z.Write(bytes.Repeat([]byte("a"), 1<<20))
		z.Close()
	})
	c := client(t, Options{Trusted: []string{s.URL}, MaxBody: 1000, Proxy: "none"})
	if got, err := get(t, c, s.URL); !errors.Is(err, ErrTooLarge) || len(got) != 1000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if got, err := get(t, c, s.URL+"/exact"); err != nil || len(got) != 1000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if got, err := get(t, client(t, Options{Trusted: []string{s.URL}, MaxBody: -1, Proxy: "none"}), s.URL); err != nil || len(got) != 1<<20 {
		t.Errorf("no limit: %d bytes, %v", len(got), err)
	}
}

func TestTimeoutsEndAHangingServer(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	for name, o := range map[string]Options{
		"whole":   {Trusted: []string{s.URL}, Timeout: 50 * time.Millisecond, Proxy: "none"},
		"headers": {Trusted: []string{s.URL}, HeaderTimeout: 50 * time.Millisecond, Proxy: "none"},
	} {
		_, err := get(t, client(t, o), s.URL)
		var ne net.Error
		if !errors.As(err, &ne) || !ne.Timeout() {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
	if _, err := client(t, Options{Trusted: []string{s.URL}, Proxy: "none"}).Do(req); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestAProxyIsUsedButNotToReachPrivateAddresses(t *testing.T) {
	asked := make(chan string, 4)
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.String()
		io.WriteString(w, "through the proxy")
	})
	local := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "direct") })
	c := client(t, Options{Trusted: []string{local.URL, "https://model.test/v1", "http://model.test"}, Proxy: proxy.URL})
	if got, err := get(t, c, "http://model.test/v1"); err != nil || got != "through the proxy" {
		t.Errorf("a trusted public name goes through the proxy: %q %v", got, err)
	}
	<-asked
	if got, err := get(t, c, "http://example.test/x"); err != nil || got != "through the proxy" || <-asked != "http://example.test/x" {
		t.Errorf("%q %v", got, err)
	}
	if got, err := get(t, c, local.URL); err != nil || got != "direct" {
		t.Errorf("a trusted local address goes direct: %q %v", got, err)
	}
	if _, err := get(t, c, "http://169.254.169.254/latest"); !errors.Is(err, ErrPrivate) {
		t.Errorf("metadata through the proxy: %v", err)
	}
}

func TestBrokenOptionsAreNamedWithoutTheirSecrets(t *testing.T) {
	for _, o := range []Options{{Trusted: []string{"http://"}}, {Trusted: []string{":80"}}, {Proxy: "user:hunter2@proxy"}} {
		if _, err := New(o); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
