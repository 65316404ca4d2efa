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
	"reasonix/internal/store/sqlite"
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
	h.greet(a.out)
	g, running := errgroup.WithContext(running)
	g.Go(func() error { return h.flow.Run(running) })
	g.Go(func() error { return h.webhooks(running) })
	g.Go(func() error {
		h.keepTidy(running)
		return nil
	})
	g.Go(func() error {
		h.announce(running, a.out)
		return nil
	})
	g.Go(func() error {
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
	if held, err := h.state.HostRuns(hostID()); err != nil || held {
		return nil, errors.Join(err, fmt.Errorf("start host: a host already runs on this state%s; stop it with `reasonix bot stop`", pidWords(path)))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("start host: %w", err)
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return nil, fmt.Errorf("start host: %w", err)
	}
	return func() {
		if pid, err := readPid(path); err == nil && pid == os.Getpid() {
			_ = os.Remove(path)
		}
	}, nil
}

func pidWords(path string) string {
	pid, err := readPid(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}

func readPid(path string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("%s holds no process id; remove it if no host runs", path)
	}
	return pid, nil
}

func (a *app) botStop() *cobra.Command {
	return &cobra.Command{
		Use:   "stop",
		Short: "Stop the host that runs with this configuration",
		Args:  exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withHouse(c.Context(), func(h *house) error { return a.stopHost(c.Context(), h.state, pidFile(h.cfg)) })
		},
	}
}

// stopHost ends the host that holds the state's lock. A process id that was left by a crash may belong to anybody by now, so without the lock
// nothing is signalled.
func (a *app) stopHost(ctx context.Context, state *sqlite.Store, path string) error {
	held, err := state.HostRuns(hostID())
	if err != nil {
		return fmt.Errorf("stop host: %w", err)
	}
	pid, err := readPid(path)
	switch {
	case !held && errors.Is(err, fs.ErrNotExist):
		fmt.Fprintln(a.out, "No host is running with this configuration.")
		return nil
	case !held:
		_ = os.Remove(path)
		fmt.Fprintln(a.out, "No host is running: the last one ended without cleaning up. Its tasks continue at the next start.")
		return nil
	case err != nil:
		return fmt.Errorf("stop host: a host runs on this state, and its process is not known: %w", err)
	}
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Signal(syscall.SIGTERM)
	}
	if err != nil {
		return fmt.Errorf("stop host: process %d: %w", pid, err)
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

// withHouse opens the state for a command that works beside a running host.
func (a *app) withHouse(ctx context.Context, f func(*house) error) error {
	cfg, env, err := a.settings("")
	if err != nil {
		return err
	}
	h, err := a.desk(ctx, cfg, env)
	if err != nil {
		return err
	}
	defer h.close()
	return f(h)
}

// withDesk is withHouse for a command that looks at the story, or answers.
func (a *app) withDesk(ctx context.Context, f func(*flow.Host) error) error {
	return a.withHouse(ctx, func(h *house) error { return f(h.flow) })
}
