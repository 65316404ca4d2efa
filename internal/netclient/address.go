package netclient

import "net/netip"

// special are ranges beside those that netip knows: shared and carrier addresses, tests and documentation, the future, and
// the fixed address of one cloud's metadata service.
var special = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"240.0.0.0/4", "168.63.129.16/32", "::/96", "100::/64", "2001::/23", "2001:db8::/32", "fec0::/10")

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, p := range list {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}

var (
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
	nat64Lo = netip.MustParsePrefix("64:ff9b:1::/48")
	sixTo4  = netip.MustParsePrefix("2002::/16")
)

// private tells whether an address belongs to this machine, its networks or no network at all.
func private(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if !ip.IsGlobalUnicast() || ip.IsPrivate() { // loopback, link-local (with the metadata services), multicast, unspecified
		return true
	}
	for _, p := range special {
		if p.Contains(ip) {
			return true
		}
	}
	if !ip.Is6() {
		return false
	}
	b := ip.As16()
	switch { // an IPv4 address in an IPv6 coat
	case nat64Lo.Contains(ip):
		return true
	case nat64.Contains(ip):
		return private(netip.AddrFrom4([4]byte(b[12:16])))
	case sixTo4.Contains(ip):
		return private(netip.AddrFrom4([4]byte(b[2:6])))
	}
	return false
}
