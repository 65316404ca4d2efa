package sandbox

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// names is a DNS double: each name answers with its addresses in turn, the last one for good.
type names struct {
	mu   sync.Mutex
	list map[string][]string
}

func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go n.serve(server)
		return client, nil
	}}
}

func (n *names) serve(c net.Conn) {
	defer c.Close()
	for {
		var size uint16
		if binary.Read(c, binary.BigEndian, &size) != nil {
			return
		}
		buf := make([]byte, size)
		if _, err := io.ReadFull(c, buf); err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf) != nil {
			return
		}
		answer := n.answer(m)
		out, err := answer.Pack()
		if err != nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)); err != nil {
			return
		}
	}
}

func (n *names) answer(m dnsmessage.Message) dnsmessage.Message {
	n.mu.Lock()
	defer n.mu.Unlock()
	q := m.Questions[0]
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	name := strings.TrimSuffix(q.Name.String(), ".")
	addresses := n.list[name]
	if len(addresses) == 0 {
		m.RCode = dnsmessage.RCodeNameError
		return m
	}
	if q.Type != dnsmessage.TypeA {
		return m
	}
	if len(addresses) > 1 {
		n.list[name] = addresses[1:]
	}
	m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
		Body: &dnsmessage.AResource{A: [4]byte(net.ParseIP(addresses[0]).To4())}}}
	return m
}

// online is a room whose box has a network in which registry.test is a server on the host's loopback that the test allows.
func online(t *testing.T, h http.Handler) (*room, string) {
	t.Helper()
	mustLook(t, "curl")
	r := newRoom(t)
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	origin := "registry.test:" + s.URL[strings.LastIndex(s.URL, ":")+1:]
	dns := &names{list: map[string][]string{"registry.test": {"127.0.0.1"}}}
	r.policy.Network = &Network{Trusted: []string{origin}, resolver: dns.resolver()}
	return r, origin
}

func TestABoxReachesAnOriginThroughTheProxyAlone(t *testing.T) {
	r, origin := online(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		b, _ := io.ReadAll(q.Body)
		fmt.Fprintf(w, "%s %s %s %s", q.Method, q.Host, q.URL, b)
	}))
	var mu sync.Mutex
	var told []string
	r.policy.Network.Reached = func(target, refused string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, target+refused)
	}
	res := r.bash("curl -sS -d hello http://" + origin + "/a?b=c && curl -sS http://" + origin + "/ >/dev/null")
	if want := "POST " + origin + " /a?b=c hello"; string(res.Output) != want || res.ExitCode != 0 {
		t.Fatalf("exit %d: %q, want %q", res.ExitCode, res.Output, want)
	}
	if got := strings.Join(res.Reached, ","); got != origin {
		t.Errorf("reached: %s", got)
	}
	if strings.Join(told, ",") != origin {
		t.Errorf("told: %v", told)
	}
	// Nothing goes past the proxy, and names are not resolved in the box.
	r.refused("curl -sS --noproxy '*' -m 3 http://" + origin + "/")
	r.refused("getent hosts registry.test")
	r.refused("exec 3<>/dev/tcp/1.1.1.1/443")
	if res := r.bash("ls -A /run /run/reasonix; ls /proc | grep -c '^[0-9]'"); strings.Contains(string(res.Output), "sock") {
		t.Errorf("a socket of the host is in the box:\n%s", res.Output)
	}
	r.policy.Network = nil
	r.refused("curl -sS -m 3 http://" + origin + "/")
}

func TestATunnelCarriesTLSAndNothingElse(t *testing.T) {
	mustLook(t, "curl")
	r := newRoom(t)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "secure") }))
	defer s.Close()
	r.policy.Network = &Network{Trusted: []string{s.URL}}
	at := strings.TrimPrefix(s.URL, "https://")
	line := "NO_PROXY= no_proxy= curl -sS -k https://" + at + "/"
	if res := r.bash(line); string(res.Output) != "secure" {
		t.Errorf("exit %d: %s", res.ExitCode, res.Output)
	}
	res := r.bash(`exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT ` + at + ` HTTP/1.1\r\n\r\nSSH-2.0-x\r\n' >&3; timeout 5 cat <&3`)
	if strings.Contains(string(res.Output), "400") || !strings.Contains(strings.Join(res.Reached, ","), "only TLS") {
		t.Errorf("%q, reached %v", res.Output, res.Reached)
	}
}

// spellings are ways to write "this machine" or a place that only this machine reaches.
func spellings(port string) []string {
	out := []string{"169.254.169.254", "metadata.test", "127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port, "0.0.0.0:" + port, "[::]:" + port, "2130706433:" + port,
		"0x7f000001:" + port, "127.1:" + port, "[::ffff:127.0.0.1]:" + port, "loop.test:" + port, "LOOP.test.:" + port, "10.0.0.1", "[fd00:ec2::254]"}
	if name, err := os.Hostname(); err == nil {
		out = append(out, name+":"+port)
	}
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok {
			out = append(out, net.JoinHostPort(n.IP.String(), port))
		}
	}
	return out
}

func TestInvariant13_ATaskWithNetworkCannotReachTheConsole(t *testing.T) {
	mustLook(t, "curl")
	r := newRoom(t)
	l, err := net.Listen("tcp", ":0") // as open as a console can be
	if err != nil {
		t.Fatal(err)
	}
	hits := make(chan string, 100)
	console := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { hits <- q.RemoteAddr + " " + q.Host })}
	go func() { _ = console.Serve(l) }()
	defer console.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, "http://127.0.0.1:"+port+"/", http.StatusFound)
	}))
	defer door.Close()
	_, doorPort, _ := net.SplitHostPort(strings.TrimPrefix(door.URL, "http://"))
	dns := &names{list: map[string][]string{"loop.test": {"127.0.0.1"}, "metadata.test": {"169.254.169.254"}, "door.test": {"127.0.0.1"}}}
	r.policy.Network = &Network{AllowHosts: []string{"127.0.0.1:" + port, "localhost:" + port, "*.test:" + port, "*.test", "169.254.169.254"},
		Trusted: []string{"door.test:" + doorPort}, resolver: dns.resolver()}
	for _, open := range []bool{false, true} {
		if open {
			r.policy.Network.AllowHosts = nil
		}
		script, n := "", 0
		for _, at := range spellings(port) {
			for _, how := range []string{"--noproxy '' -x $HTTP_PROXY http://", "--noproxy '' -p -x $HTTP_PROXY http://", "-k --noproxy '' -x $HTTP_PROXY https://", "--noproxy '*' http://"} {
				script += "{ curl -sf -m 5 -o /dev/null " + how + at + "/ && echo REACHED " + at + " || echo refused; } &\n"
				n++
			}
		}
		if out := r.must(script + "wait"); strings.Contains(out, "REACHED") || strings.Count(out, "refused\n") != n {
			t.Errorf("of %d attempts:\n%s", n, out)
		}
	}
	r.refused("curl -sSf -m 5 --noproxy '' -x $HTTP_PROXY -L http://door.test:" + doorPort + "/") // a redirect is a new request
	r.must("curl -sSf -m 5 http://door.test:" + doorPort + "/")
	if len(hits) > 0 {
		t.Errorf("the console was reached: %s", <-hits)
	}
	resp, err := http.Get("http://127.0.0.1:" + port + "/")
	if err != nil || len(hits) == 0 {
		t.Fatalf("control: the console cannot be reached from the host: %v", err)
	}
	resp.Body.Close()
}

func TestANameThatAnswersDifferentlyTheSecondTimeGainsNothing(t *testing.T) {
	r, _ := online(t, http.NotFoundHandler())
	l, err := net.Listen("tcp", "127.0.0.1:80")
	if err != nil {
		t.Skipf("port 80 cannot be opened: %v", err)
	}
	hits := make(chan struct{}, 10)
	s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits <- struct{}{} })}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	dns := &names{list: map[string][]string{"twice.test": {"203.0.113.1", "127.0.0.1"}}} // a documentation address first
	r.policy.Network = &Network{resolver: dns.resolver()}
	for range 3 {
		res := r.bash("curl -sSf -m 5 http://twice.test/")
		if res.ExitCode == 0 || !strings.Contains(strings.Join(res.Reached, ","), "twice.test:80 (refused: private address)") {
			t.Errorf("exit %d: %s, %v", res.ExitCode, res.Output, res.Reached)
		}
	}
	if len(hits) > 0 {
		t.Error("the host's own port was reached")
	}
}

func TestAllowHostsNarrowsTheNetwork(t *testing.T) {
	n := &Network{AllowHosts: []string{"proxy.golang.org", "*.npmjs.org", "git.example:8443"}}
	for target, open := range map[string]bool{
		"proxy.golang.org:443": true, "PROXY.golang.org.:443": true, "proxy.golang.org:8080": false, "registry.npmjs.org:443": true, "npmjs.org:443": false,
		"evilnpmjs.org:443": false, "a.b.npmjs.org:443": true, "git.example:8443": true, "git.example:443": false, "example.com:443": false, "x.proxy.golang.org:443": false,
	} {
		host, port, _ := net.SplitHostPort(target)
		if why := n.refuses(host, port, "443"); (why == "") != open {
			t.Errorf("%s: %q", target, why)
		}
	}
	if (&Network{}).refuses("example.com", "22", "443") == "" || (&Network{}).refuses("example.com", "80", "80") != "" {
		t.Error("without a list the schemes' own ports are open, and only these")
	}
	for entry, good := range map[string]bool{"a.b": true, "*.a.b": true, "a.b:80": true, "::1": true, "[::1]:80": true, "1.2.3.4": true, "*": false, "": false, "http://a": false,
		"a b": false, "a:0": false, "a:x": false, "a/b": false, "*.": false, "a..b": false, "*a.b": false} {
		if err := CheckHost(entry); (err == nil) != good {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

func TestABoxWithANetworkStillEndsAndLeavesNothing(t *testing.T) {
	r, origin := online(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-q.Context().Done() // an origin that never finishes
	}))
	before := openDescriptors(t)
	for range 5 {
		r.policy.Limits.Wall = 1e9
		if res := r.bash("curl -sS http://" + origin + "/ & sleep 60"); !res.TimedOut {
			t.Errorf("ended with %d: %s", res.ExitCode, res.Output)
		}
	}
	if after := openDescriptors(t); after > before+4 { // the origin's own connections may linger for a moment
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
