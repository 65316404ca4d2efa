package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"reasonix/internal/chat"
)

const (
	maxBody    = 256 << 10 // bytes of a request body
	cookieBase = "reasonix_console"
	policy     = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

// viewer is the person behind a request.
type viewer struct {
	person  chat.Person
	expires time.Time // of the session; zero for the configured access token
}

func (v viewer) actor() chat.Actor {
	return chat.Actor{Kind: Kind, ID: v.person.Identities[Kind], Name: v.person.Name}
}

// guarded checks every request before any page sees it: our Host, no foreign Origin, a bounded body.
func (d *Door) guarded(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	if d.settings.public != nil {
		_ = cross.AddTrustedOrigin(d.settings.public.String()) // was parsed from a URL with scheme and host
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		if !d.isOurs(r.Host) {
			d.refuse(w, r, http.StatusMisdirectedRequest, "This console does not answer to the name "+line(r.Host, 80)+". Open it under the address that the host printed.")
			return
		}
		if foreign(r) || cross.Check(r) != nil {
			d.refuse(w, r, http.StatusForbidden, "Another site sent this request. Open the console itself and try there.")
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
	h.Set("Cache-Control", "no-store")
}

// foreign tells whether another site's page reads from us. "same-site" is foreign too: all ports of this machine are one
// site, and cookies do not tell them apart. Following a link is allowed.
func foreign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	if site != "cross-site" && site != "same-site" {
		return false
	}
	return r.Method != http.MethodGet || r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}

// signedIn lets a page be seen only with a session cookie. A change needs a browser's word on where it comes from as well.
func (d *Door) signedIn(h func(http.ResponseWriter, *http.Request, viewer)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, ok := d.cookieViewer(r)
		if !ok {
			d.sendToLogin(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "" {
			d.refuse(w, r, http.StatusForbidden, "The browser did not say which page sent this. Programs use the JSON interface with a bearer token.")
			return
		}
		h(w, r, v)
	}
}

func (d *Door) sendToLogin(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("HX-Request") != "" {
		w.Header().Set("HX-Redirect", "/login")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
		if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
			// A strict cookie stays away from a link on another site, but not from our own page that goes on to it.
			d.render(w, r, http.StatusOK, "refused", page{Title: "One moment", Refresh: r.URL.RequestURI(), Body: "Opening the page…"})
			return
		}
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return
	}
	http.Error(w, "Sign in first: open the login link that the host printed.", http.StatusUnauthorized)
}

func (d *Door) cookieViewer(r *http.Request) (viewer, bool) {
	c, err := r.Cookie(d.cookieName())
	if err != nil {
		return viewer{}, false
	}
	return d.sessionViewer(c.Value)
}

func (d *Door) sessionViewer(token string) (viewer, bool) {
	p, ok := d.signer.open(token, d.now())
	if !ok {
		return viewer{}, false
	}
	person, ok := d.identity(p.ID) // a person taken out of the configuration is signed out with that
	return viewer{person, time.Unix(p.Expires, 0)}, ok
}

// cookieName carries the port, because browsers share cookies between all ports of a machine.
func (d *Door) cookieName() string {
	_, port, _ := net.SplitHostPort(d.Addr())
	return cookieBase + "_" + port
}

// bearer lets a program in with the access token or a session token, and never looks at cookies.
func (d *Door) bearer(h func(http.ResponseWriter, *http.Request, viewer)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if wait, ok := d.limits.free(r, d.now()); !ok {
			tooMany(w, wait)
			apiError(w, http.StatusTooManyRequests, "rate_limited", "Too many failed attempts. Wait and try again.")
			return
		}
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if ok {
			if v, known := d.tokenViewer(token); known {
				h(w, r, v)
				return
			}
			d.limits.failed(r, d.now())
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="reasonix console"`)
		apiError(w, http.StatusUnauthorized, "unauthorized", "Send Authorization: Bearer <token>, with the access token of the configuration or a token from POST /api/session.")
	}
}

func (d *Door) tokenViewer(token string) (viewer, bool) {
	token = strings.TrimSpace(token)
	if v, ok := d.sessionViewer(token); ok {
		return v, true
	}
	if !d.isAccessToken(token) {
		return viewer{}, false
	}
	p, ok := d.person(d.settings.TokenPerson)
	return viewer{person: p}, ok
}

func (d *Door) isAccessToken(token string) bool {
	if d.settings.token == "" {
		return false
	}
	want, got := sha256.Sum256([]byte(d.settings.token)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

func tooMany(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(wait.Seconds()+0.5))))
}

const (
	freeAttempts  = 10
	attemptEvery  = 6 * time.Second
	maxRemembered = 1024
)

// attempts limits failed sign-ins per address: ten at once, then one every six seconds. Successes cost nothing.
type attempts struct {
	mu   sync.Mutex
	from map[string]*rate.Limiter
}

// free tells whether the address has an attempt left, and otherwise how long it has to wait.
func (a *attempts) free(r *http.Request, now time.Time) (time.Duration, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l, ok := a.from[sender(r)]
	if !ok || l.TokensAt(now) >= 1 {
		return 0, true
	}
	return attemptEvery, false
}

func (a *attempts) failed(r *http.Request, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := sender(r)
	l, ok := a.from[key]
	if !ok {
		if a.from == nil || len(a.from) >= maxRemembered {
			a.from = map[string]*rate.Limiter{} // forgetting all is safe: a token has 192 bits or more
		}
		l = rate.NewLimiter(rate.Every(attemptEvery), freeAttempts)
		a.from[key] = l
	}
	l.AllowN(now, 1)
}

// sender is the peer's address, for IPv6 its /64.
func sender(r *http.Request) string {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	ip := ap.Addr().Unmap()
	if ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.Prefix(64)
	if err != nil {
		return ip.String()
	}
	return prefix.String()
}
