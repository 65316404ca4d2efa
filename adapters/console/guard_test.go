package console

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"reasonix/internal/chat"
)

// doors lists every address of the console but the sign-in and the static files.
var doors = []string{
	"GET /", "GET /health", "GET /tasks", "GET /asks", "GET /asks/list", "GET /asks/count", "GET /tasks/task_1", "GET /tasks/task_1/panel",
	"GET /tasks/task_1/feed", "GET /tasks/task_1/changes.diff", "GET /nothing", "POST /requests", "POST /tasks/task_1/reply",
	"POST /tasks/task_1/stop", "POST /tasks/task_1/posture", "POST /asks/" + askID + "/press",
	"GET /api/me", "GET /api/tasks", "GET /api/tasks/task_1", "GET /api/tasks/task_1/feed", "GET /api/asks", "GET /api/health",
	"POST /api/events", "POST /api/login-link", "GET /api/nothing",
}

func parkedWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld()
	park(t, w)
	return w
}

// park opens a task and brings it to its question.
func park(t *testing.T, w *world) {
	t.Helper()
	w.opened = dress
	_, err := w.Accept(context.Background(), chat.Event{Key: "first", On: Kind, Actor: chat.Actor{Kind: Kind, ID: "visitor-1", Name: "visitor"}, Place: chat.Place{Connection: "web", Kind: Kind, Channel: "room-1"}, Text: "Fix it"})
	if err != nil {
		t.Fatal(err)
	}
	begin(w, "task_1")
	w.mu.Lock()
	w.events = nil
	w.mu.Unlock()
}

func pressForm(choice string) url.Values {
	return url.Values{"nonce": {"n-" + choice}, "choice": {choice}, "digest": {commandAsk("", zero).Digest}}
}

func TestInvariant13_NothingIsSeenOrDoneWithoutAToken(t *testing.T) {
	w := parkedWorld(t)
	r := run(t, w, Config{})
	forged := []string{"", r.cookieName() + "=v1.eyJpZCI6ImxlYWQtMSIsImV4cCI6OTk5OTk5OTk5OTl9.AAAA", r.cookieName() + "=lead-1"}
	for _, door := range doors {
		method, path, _ := strings.Cut(door, " ")
		for _, cookie := range forged {
			req, _ := http.NewRequest(method, "http://"+r.Addr()+path, strings.NewReader(pressForm("allow").Encode()))
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Origin", "http://"+r.Addr())
			req.Header.Set("Authorization", "Bearer ") // an empty token is no token
			if cookie != "" {
				req.Header.Set("Cookie", cookie)
			}
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusTooManyRequests {
				t.Errorf("%s with cookie %q: %d, want 401", door, cookie, resp.StatusCode)
			}
		}
	}
	if n := len(w.events); n != 0 {
		t.Errorf("%d events reached the host without a token", n)
	}
}

func TestInvariant13_OtherSitesAndOtherNamesAreTurnedAway(t *testing.T) {
	w := parkedWorld(t)
	r := run(t, w, Config{})
	b := r.as("lead")
	cookies := b.Jar.Cookies(&url.URL{Scheme: "http", Host: r.Addr()})
	try := func(method, path, host string, header ...string) int {
		req, _ := http.NewRequest(method, "http://"+r.Addr()+path, strings.NewReader(pressForm("allow").Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, c := range cookies {
			req.AddCookie(c)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		if host != "" {
			req.Host = host
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	_, port, _ := strings.Cut(r.Addr(), ":")
	own, press := "http://"+r.Addr(), "/asks/"+askID+"/press"
	for _, c := range []struct {
		name, method, path, host string
		header                   []string
		want                     int
	}{
		{"a name that points at this machine", "GET", "/", "evil.example:" + port, nil, 421},
		{"the same for a change", "POST", press, "evil.example:" + port, []string{"Origin", "http://evil.example:" + port}, 421},
		{"the right name, another port", "GET", "/", "localhost:1", nil, 421},
		{"no name", "GET", "/", "-", nil, 421},
		{"another site's form", "POST", press, "", []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, 403},
		{"another site's form in an old browser", "POST", press, "", []string{"Origin", "https://evil.example"}, 403},
		{"a sandboxed frame", "POST", press, "", []string{"Origin", "null"}, 403},
		{"another port of this machine", "POST", press, "", []string{"Origin", "http://127.0.0.1:3000", "Sec-Fetch-Site", "same-site"}, 403},
		{"another port reads", "GET", "/tasks/task_1", "", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"}, 403},
		{"another site frames", "GET", "/", "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"a cookie without a word on where it comes from", "POST", press, "", nil, 403},
		{"the page itself", "GET", "/", "", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"localhost", "GET", "/", "localhost:" + port, nil, 200},
		{"a link that a person follows", "GET", "/", "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
	} {
		if got := try(c.method, c.path, c.host, c.header...); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if n := len(w.events); n != 0 {
		t.Fatalf("%d events came through", n)
	}
	if got := try("POST", press, "", "Origin", own); got != 200 || len(w.seen(chat.VerbPress)) != 1 {
		t.Errorf("the page's own press: %d, %d events", got, len(w.events))
	}
}

func TestInvariant13_ListensApartAndOnLoopbackAlone(t *testing.T) {
	d, err := configured(Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d.Handler(chat.Host{}) != nil {
		t.Error("the console offers itself to the webhooks' listener")
	}
	for _, listen := range []string{"0.0.0.0:8787", ":8787", "[::]:8787", "192.168.1.5:80", "example.org:80", "127.0.0.1.evil:80"} {
		if _, err := configured(Config{Listen: listen}, nil); err == nil || !strings.Contains(err.Error(), "allow_remote") {
			t.Errorf("listen = %q: %v, want a refusal that names allow_remote", listen, err)
		}
	}
}

func TestALinkFromAnotherSiteOpensThePage(t *testing.T) {
	r := run(t, parkedWorld(t), Config{})
	req, _ := http.NewRequest("GET", "http://"+r.Addr()+"/tasks/task_1", nil) // a strict cookie is not sent along
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	req.Header.Set("Sec-Fetch-Mode", "navigate")
	req.Header.Set("Sec-Fetch-Dest", "document")
	b := r.browser()
	req.Header.Set("Accept", "text/html")
	resp, err := b.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body := make([]byte, 4096)
	n, _ := resp.Body.Read(body)
	if !strings.Contains(string(body[:n]), `content="0;url=/tasks/task_1"`) {
		t.Errorf("the page does not go on by itself:\n%s", body[:n])
	}
}

var inline = regexp.MustCompile(`(?i)\sstyle\s*=|<style|\son[a-z]+\s*=|javascript:|hx-on|hx-vals|(src|href|action)="(https?:)?//`)

func TestPagesNeedNothingInlineAndNothingFromElsewhere(t *testing.T) {
	w := parkedWorld(t)
	w.health = wellHost()
	r := run(t, w, Config{Suggest: "Do it"})
	b := r.as("lead")
	check := func(path string) {
		status, body := b.get(path)
		if found := inline.FindString(body); found != "" || status != 200 {
			t.Errorf("%s: %d, inline or foreign: %q", path, status, found)
		}
		if strings.Count(body, "<script") != strings.Count(body, "<script src=\"/static/") {
			t.Errorf("%s has a script that is no file of ours", path)
		}
	}
	for _, path := range []string{"/", "/health", "/asks", "/tasks/task_1", "/tasks/task_1/panel"} {
		check(path)
	}
	conclude(w, "task_1")
	check("/tasks/task_1")
	resp, err := http.Get("http://" + r.Addr() + "/login")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for name, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	csp := resp.Header.Get("Content-Security-Policy")
	if strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "default-src 'none'") {
		t.Errorf("policy: %s", csp)
	}
}
