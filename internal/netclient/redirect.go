package netclient

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// harmless headers may follow to another host; any other may be a credential under a name that nobody listed.
var harmless = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Accept-Language": true, "Content-Type": true, "User-Agent": true, "Range": true,
	"If-None-Match": true, "If-Modified-Since": true,
}

// checkRedirect runs before a redirect is followed; the transport checks the address once more.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("%w: more than %d in a row", ErrRedirect, maxRedirects)
	}
	if req.URL.Scheme != "https" && via[len(via)-1].URL.Scheme == "https" {
		return fmt.Errorf("%w: from https to %s", ErrRedirect, req.URL.Scheme)
	}
	if !leftHome(req, via) {
		return nil
	}
	if req.Body != nil && req.Body != http.NoBody {
		return fmt.Errorf("%w: it would carry the request's body to another host", ErrRedirect)
	}
	for name := range req.Header {
		if !harmless[http.CanonicalHeaderKey(name)] {
			req.Header.Del(name)
		}
	}
	return nil
}

// leftHome tells whether any hop of the chain was at another place than the first; once left, the credentials stay behind.
func leftHome(req *http.Request, via []*http.Request) bool {
	home := origin(via[0].URL)
	for _, r := range via[1:] {
		if origin(r.URL) != home {
			return true
		}
	}
	return origin(req.URL) != home
}

// origin counts http and https of the usual ports as one place, so that an upgrade keeps working.
func origin(u *url.URL) string {
	host := strings.ToLower(u.Hostname())
	if u.Port() == "" {
		return host
	}
	return hostPort(u)
}
