package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"reasonix/internal/chat"
)

const closeWait = 3 * time.Second

// Run listens until ctx ends. It returns an error only when it cannot listen, or cannot go on listening.
func (d *Door) Run(ctx context.Context, h chat.Host) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", d.settings.Listen)
	if err != nil {
		return fmt.Errorf("console %s: listen on %s: %w (another console running? change listen)", d.name, d.settings.Listen, err)
	}
	if err := d.start(l.Addr().String(), h); err != nil {
		return errors.Join(err, l.Close())
	}
	srv := &http.Server{
		Handler:           d.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx }, // ends the live feeds with us
	}
	stopped := make(chan error, 1)
	go func() { stopped <- srv.Serve(l) }()
	close(d.ready)
	select {
	case err := <-stopped:
		return fmt.Errorf("console %s: serve: %w", d.name, err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
	defer cancel()
	if srv.Shutdown(grace) != nil {
		_ = srv.Close() // a client that does not hang up in time is cut
	}
	<-stopped
	return nil
}

func (d *Door) start(addr string, h chat.Host) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.addr != "" {
		return fmt.Errorf("console %s: runs already on %s", d.name, d.addr)
	}
	if h.Log == nil {
		h.Log = slog.New(slog.DiscardHandler)
	}
	d.addr, d.host, d.ours = addr, h, ownHosts(addr, d.settings)
	return nil
}

// ownHosts lists the Host headers that are answered. A name that an attacker points at this machine is not among them.
func ownHosts(addr string, s settings) map[string]bool {
	hosts := map[string]bool{}
	host, port, _ := net.SplitHostPort(addr)
	if isLoopback(host) {
		for _, h := range []string{"127.0.0.1", "localhost", "::1", host} {
			hosts[net.JoinHostPort(h, port)] = true
		}
	}
	if s.public != nil {
		hosts[withPort(s.public.Host, s.public.Scheme)] = true
	}
	return hosts
}

// withPort adds the port that browsers leave out.
func withPort(host, scheme string) string {
	host = strings.ToLower(host)
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	if scheme == "https" {
		return net.JoinHostPort(strings.Trim(host, "[]"), "443")
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "80")
}

func (d *Door) isOurs(host string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ours[withPort(host, "http")] || d.ours[withPort(host, "https")]
}

// sees is the host that Run was given; it never changes afterwards.
func (d *Door) sees() chat.Host {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.host
}

func (d *Door) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /static/{file...}", serveStatic)
	mux.HandleFunc("GET /login", d.loginPage)
	mux.HandleFunc("POST /login", d.login)
	mux.HandleFunc("POST /logout", d.logout)

	page := func(pattern string, h func(http.ResponseWriter, *http.Request, viewer)) {
		mux.HandleFunc(pattern, d.signedIn(h))
	}
	page("GET /{$}", d.home)
	page("GET /health", d.health)
	page("GET /tasks", d.taskList)
	page("GET /asks", d.asks)
	page("GET /asks/list", d.askList)
	page("GET /asks/count", d.askCount)
	page("GET /tasks/{id}", d.task)
	page("GET /tasks/{id}/panel", d.panel)
	page("GET /tasks/{id}/feed", d.feed)
	page("GET /tasks/{id}/changes.diff", d.diffFile)
	page("POST /requests", d.request)
	page("POST /tasks/{id}/reply", d.reply)
	page("POST /tasks/{id}/stop", d.stop)
	page("POST /tasks/{id}/posture", d.posture)
	page("POST /asks/{id}/press", d.press)
	page("/", d.nothing)

	api := func(pattern string, h func(http.ResponseWriter, *http.Request, viewer)) {
		mux.HandleFunc(pattern, d.bearer(h))
	}
	mux.HandleFunc("POST /api/session", d.apiSession)
	api("POST /api/login-link", d.apiLoginLink)
	api("GET /api/me", d.apiMe)
	api("GET /api/tasks", d.apiTasks)
	api("GET /api/tasks/{id}", d.apiTask)
	api("GET /api/tasks/{id}/feed", d.apiFeed)
	api("GET /api/asks", d.apiAsks)
	api("GET /api/health", d.apiHealth)
	api("POST /api/events", d.apiEvents)
	api("/api/", d.apiNothing)
	return d.guarded(mux)
}
