package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"reasonix/internal/config"
	"reasonix/internal/flow"
)

func (a *app) botCommand() *cobra.Command {
	c := &cobra.Command{Use: "bot", Short: "Run the host and look at its tasks", Args: exactly(0, "a subcommand"), RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(a.botStart(), a.botStop(), a.botDoctor(), a.tasksCommand(), a.asksCommand(), a.budgetCommand(), a.workspaceCommand())
	return c
}

func (a *app) botStart() *cobra.Command {
	return &cobra.Command{
		Use:   "start",
		Short: "Run the host in the foreground until it is stopped",
		Long:  "start opens every configured door and works on tasks until SIGINT, SIGTERM or `reasonix bot stop`. Attempts stop at their next turn boundary; a second signal stops at once. Nothing is lost either way.",
		Args:  exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, env, err := a.settings("")
			if err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(a.errs, nil))
			host, err := a.assemble(c.Context(), cfg, env, log)
			if err != nil {
				return err
			}
			defer host.close()
			return a.serve(c.Context(), host)
		},
	}
}

// serve runs an assembled host until ctx ends, then drains it.
func (a *app) serve(ctx context.Context, h *house) error {
	release, err := h.writePid()
	if err != nil {
		return err
	}
	defer release()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, running := errgroup.WithContext(running)
	g.Go(func() error { return h.flow.Run(running) })
	g.Go(func() error { return h.webhooks(running) })
	g.Go(func() error {
		h.keepTidy(running)
		return nil
	})
	g.Go(func() error {
		h.announce(running, a.out)
		select {
		case <-ctx.Done():
		case <-running.Done():
			return nil
		}
		h.flow.Drain()
		h.log.Info("draining: attempts stop at their next turn boundary")
		h.flow.WaitIdle(running, drainTime)
		stop()
		return nil
	})
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("host: %w", err)
	}
	return nil
}

// drainTime is how long attempts may take to reach a turn boundary after a stop; then they are cut and continued at the next start.
const drainTime = 20 * time.Second

// webhooks serves the doors' handlers below /hooks/<connection>/; without any it only waits.
func (h *house) webhooks(ctx context.Context) error {
	mux := http.NewServeMux()
	n := 0
	for name, door := range h.doors {
		if handler := door.Handler(h.flow.DoorHost()); handler != nil {
			mux.Handle("/hooks/"+name+"/", http.StripPrefix("/hooks/"+name, handler))
			n++
		}
	}
	if n == 0 {
		<-ctx.Done()
		return nil
	}
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	ln, err := net.Listen("tcp", h.cfg.Bot.Listen)
	if err != nil {
		return fmt.Errorf("listen for webhooks: %w (set [bot].listen to a free address)", err)
	}
	h.log.Info("webhooks", "address", ln.Addr().String())
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 60 * time.Second, IdleTimeout: 2 * time.Minute}
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = srv.Shutdown(grace)
	}()
	if err := srv.Serve(ln); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve webhooks: %w", err)
	}
	return nil
}

func pidFile(cfg config.Config) string {
	return filepath.Join(config.ExpandHome(cfg.Bot.Data), "host.pid")
}

// writePid leaves this process's id for `bot stop`.
func (h *house) writePid() (func(), error) {
	path := pidFile(h.cfg)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("start host: %w", err)
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return nil, fmt.Errorf("start host: %w", err)
	}
	return func() { _ = os.Remove(path) }, nil
}

func (a *app) botStop() *cobra.Command {
	return &cobra.Command{
		Use:   "stop",
		Short: "Stop the host that runs with this configuration",
		Args:  exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, _, err := a.settings("")
			if err != nil {
				return err
			}
			return a.stopHost(c.Context(), pidFile(cfg))
		},
	}
}

func (a *app) stopHost(ctx context.Context, path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(a.out, "No host is running with this configuration.")
		return nil
	}
	if err != nil {
		return fmt.Errorf("stop host: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || pid <= 1 {
		return fmt.Errorf("stop host: %s holds no process id; remove it if no host runs", path)
	}
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Signal(syscall.SIGTERM)
	}
	if err != nil {
		_ = os.Remove(path)
		fmt.Fprintf(a.out, "The host (process %d) had ended without cleaning up; its tasks continue at the next start.\n", pid)
		return nil
	}
	deadline := time.Now().Add(drainTime + 10*time.Second)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(deadline) {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintln(a.out, "Stopped.")
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return fmt.Errorf("stop host: process %d did not end in time; it is still draining", pid)
}

// withDesk opens the state for a command that looks at it, or answers, beside a running host.
func (a *app) withDesk(ctx context.Context, f func(*flow.Host) error) error {
	cfg, env, err := a.settings("")
	if err != nil {
		return err
	}
	h, err := a.desk(ctx, cfg, env)
	if err != nil {
		return err
	}
	defer h.close()
	return f(h.flow)
}
