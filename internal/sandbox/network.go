package sandbox

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Network is what a box may reach: HTTP and HTTPS through the host's proxy, and nothing else. The zero value is the public
// internet; a Policy without one has no network at all.
type Network struct {
	AllowHosts []string // empty: every public host; else names, "*.name" for what lies below, and host:port for other ports than 80 and 443
	Trusted    []string // host:port that may be private, from the host's own configuration
	// Reached is told of every new target of a command, refused ones with the reason; may be nil. It is called from several goroutines.
	Reached func(target, refused string) `json:"-"`

	resolver *net.Resolver // of tests
}

// CheckHost says what is wrong with an entry of AllowHosts.
func CheckHost(entry string) error {
	host, port := splitEntry(entry)
	_, err := netip.ParseAddr(host)
	if (err != nil && !hostName.MatchString(host)) || strings.Contains(port, "/") {
		return fmt.Errorf("%q: write a host name, \"*.\" before one for everything below it, or host:port", entry)
	}
	if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
		return fmt.Errorf("%q: the port is not a number from 1 to 65535", entry)
	}
	return nil
}

var hostName = regexp.MustCompile(`^(\*\.)?([a-zA-Z0-9_]([a-zA-Z0-9_-]*[a-zA-Z0-9_])?\.)*[a-zA-Z0-9_]([a-zA-Z0-9_-]*[a-zA-Z0-9_])?$`)

func splitEntry(entry string) (host, port string) {
	if host, port, err := net.SplitHostPort(entry); err == nil {
		return host, port
	}
	return strings.Trim(entry, "[]"), ""
}

// refuses says why a target is out of bounds before anything is resolved; usual is the scheme's own port.
func (n *Network) refuses(host, port, usual string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	named := func(entry string) bool {
		h, p := splitEntry(strings.ToLower(entry))
		below, wild := strings.CutPrefix(h, "*")
		if h != host && !(wild && strings.HasSuffix(host, below) && host != below) {
			return false
		}
		return p == port || (p == "" && port == usual)
	}
	switch {
	case slices.ContainsFunc(n.AllowHosts, named):
		return ""
	case len(n.AllowHosts) > 0:
		return "not among [sandbox].allow_hosts"
	case port != usual:
		return "only port " + usual + " is open for it; another one has to be named as host:port in [sandbox].allow_hosts"
	}
	return ""
}

// proxyAddress is where the proxy listens, on the loopback of the box.
const proxyAddress = "127.0.0.1:3128"

// proxyEnv points every common program at the proxy; what runs in the box itself is reached without it.
func proxyEnv() []string {
	const direct = "localhost,127.0.0.1,::1"
	env := []string{"NO_PROXY=" + direct, "no_proxy=" + direct, "NODE_USE_ENV_PROXY=1"}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		env = append(env, name+"=http://"+proxyAddress)
	}
	return env
}
