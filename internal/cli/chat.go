package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"reasonix/internal/agent"
	"reasonix/internal/budget"
	"reasonix/internal/config"
	"reasonix/internal/permission"
	"reasonix/internal/redact"
	"reasonix/internal/run"
	"reasonix/internal/session"
	"reasonix/internal/task"
	"reasonix/internal/tui"
)

// chatFlags are the switches of a conversation.
type chatFlags struct{ runFlags }

func (a *app) chatCommand() *cobra.Command {
	var f chatFlags
	c := &cobra.Command{
		Use:   "chat [flags] [MESSAGE]",
		Short: "Talk to the model in a folder, and answer what it may do",
		Long: `chat is a conversation in the current folder (or --dir). A call that no rule allows is asked about: once, for this session, or always, which
writes the rule into reasonix.toml of the folder or into your own configuration. /help lists what can be typed; Ctrl-C interrupts the model.
Everything is kept: --continue goes on with the last session of the folder, at an open question if there is one.
With a pipe on standard input every line is a message or an answer.`,
		RunE: func(c *cobra.Command, args []string) error { return a.chat(c.Context(), f, strings.Join(args, " ")) },
	}
	f.addTo(c)
	return c
}

func (f *chatFlags) addTo(c *cobra.Command) {
	c.Flags().StringVar(&f.posture, "permission-mode", "", "ask, auto or yolo (default: that of the session, else ask)")
	c.Flags().StringVar(&f.model, "model", "", "provider, model or provider/model (default: default_model)")
	c.Flags().StringVar(&f.dir, "dir", ".", "folder to work in")
	c.Flags().StringArrayVar(&f.addDirs, "add-dir", nil, "another folder that may be written, beside [sandbox].allow_write; may be repeated")
	c.Flags().BoolVar(&f.last, "continue", false, "go on with the last session of this folder")
	c.Flags().StringVar(&f.resume, "resume", "", "go on with the session of this id")
	c.Flags().BoolVar(&f.plan, "plan", false, "plan first: nothing is changed before you approve a plan")
	c.Flags().StringVar(&f.budget, "budget", "", budgetHelp)
}

func (f *chatFlags) checkChat() error {
	f.format = "text"
	asked := f.posture
	if err := f.check(); err != nil {
		return err
	}
	f.posture = asked // empty: that of the session
	_, err := f.limits(config.Config{}, false)
	if err != nil {
		return err
	}
	f.addDirs, err = addedDirs(f.addDirs)
	return err
}

// chat talks until the person leaves, over as many sessions as they open.
func (a *app) chat(ctx context.Context, f chatFlags, first string) error {
	if err := f.checkChat(); err != nil {
		return err
	}
	b, err := a.openChatBench(ctx, f)
	if err != nil {
		return err
	}
	defer b.station.Close()
	ctx, stops, done := attended(ctx)
	defer done()
	screen, closeScreen, err := a.openScreen(stops)
	if err != nil {
		return err
	}
	defer closeScreen()
	was := "" // the session to go back to
	for {
		log, err := a.openTalk(b.dir, f.runFlags)
		if err != nil && was != "" {
			screen.Print(fmt.Sprintf("%v\nThis session goes on.\n", err))
			f.resume, was = was, ""
			continue
		}
		if err != nil {
			return err
		}
		next, err := a.talk(ctx, f, b, screen, log, first)
		if err != nil || next == (tui.Next{}) {
			return err
		}
		first, f.last, f.resume, f.plan, was = "", false, next.Resume, false, log.ID()
	}
}

// attended takes Ctrl-C over: it interrupts the model, not the conversation. SIGTERM and SIGHUP end it.
func attended(parent context.Context) (context.Context, <-chan struct{}, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	stops := make(chan struct{}, 1)
	go func() {
		defer close(stops)
		for s := range signals {
			if s != os.Interrupt {
				cancel()
				continue
			}
			select {
			case stops <- struct{}{}:
			default:
			}
		}
	}()
	return ctx, stops, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}

// openScreen takes the terminal over where there is one.
func (a *app) openScreen(stops <-chan struct{}) (tui.Screen, func(), error) {
	in, inFile := a.in.(*os.File)
	out, outFile := a.out.(*os.File)
	if inFile && outFile && tui.IsTerminal(in, out, a.getenv) {
		t, err := tui.OpenTerminal(in, out, stops)
		if err != nil {
			return nil, nil, err
		}
		return t, t.Close, nil
	}
	p := tui.NewPlain(a.in, a.out, stops)
	return p, p.Close, nil
}

// openTalk opens the session that the flags name.
func (a *app) openTalk(dir string, f runFlags) (*session.File, error) {
	log, err := a.openSession(dir, f)
	if errors.Is(err, session.ErrFenced) {
		return nil, errors.New("this session is open in another terminal: leave it there first, or begin a new one without --continue")
	}
	return log, err
}

// talk is one session; it closes the log.
func (a *app) talk(ctx context.Context, f chatFlags, b *chatBench, screen tui.Screen, log *session.File, first string) (tui.Next, error) {
	defer log.Close()
	mode := ""
	if f.plan {
		mode = run.ModePlan
	}
	t, err := tui.Open(ctx, tui.Options{
		Session: log, Bench: b, Screen: screen, By: localUser(), NewID: func() string { return task.NewID("said") }, Posture: f.posture, Mode: mode,
		First: first, Redact: b.secrets.String,
	})
	if err != nil {
		return tui.Next{}, err
	}
	screen.Print(fmt.Sprintf("Reasonix %s · %s · %s · session %s\n/help lists what can be typed.\n", a.version, b.model.name, b.station.root, log.ID()))
	next, err := t.Run(ctx)
	if err == nil && t.Asking() {
		return next, exit{ExitQuestion}
	}
	return next, err
}

func localUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "the person at the terminal"
}

// chatBench equips the attempts of a conversation: it implements tui.Bench.
type chatBench struct {
	app     *app
	flags   chatFlags
	dir     string
	station *station
	model   model
	secrets *redact.Redactor
}

var _ tui.Bench = (*chatBench)(nil)

func (a *app) openChatBench(ctx context.Context, f chatFlags) (*chatBench, error) {
	dir, err := folder(f.dir)
	if err != nil {
		return nil, err
	}
	b := &chatBench{app: a, flags: f, dir: dir}
	cfg, env, err := a.settings(b.project())
	if err != nil {
		return nil, err
	}
	a.warn(cfg, b.project())
	cfg.Sandbox.AllowWrite = append(cfg.Sandbox.AllowWrite, f.addDirs...)
	if b.model, err = a.openModel(cfg, env, f.model); err != nil {
		return nil, err
	}
	b.secrets = redact.New(secretsOf(cfg, env))
	b.station, err = a.openStation(ctx, cfg, dir)
	return b, err
}

// project is the folder's own configuration file.
func (b *chatBench) project() string { return filepath.Join(b.dir, "reasonix.toml") }

// Equip implements tui.Bench.
func (b *chatBench) Equip(ctx context.Context, now tui.Now, fresh bool) (run.Spec, error) {
	if fresh {
		cfg, _, err := b.app.settings(b.project())
		if err != nil {
			return run.Spec{}, err
		}
		cfg.Sandbox.AllowWrite = append(cfg.Sandbox.AllowWrite, b.flags.addDirs...)
		b.station.reconfigure(cfg)
	}
	spec, err := b.station.equip(ctx, equipment{log: now.Session, surface: permission.Attended, standing: now.Standing, grants: now.Grants, dirs: now.Dirs, keep: true})
	spec.Provider, spec.MaxTokens = b.model.provider, b.model.entry.MaxTokens
	spec.Redact, spec.LiveRedact = b.secrets.String, func() agent.TextFilter { return b.secrets.Stream() }
	return spec, err
}

// Keep implements tui.Bench.
func (b *chatBench) Keep(ctx context.Context, s tui.Scope, g tui.Grant) (string, error) {
	file, other := b.Files()
	if s == tui.User {
		file = other
	}
	list, text := config.AllowRules, g.Rule
	if g.Dir != "" {
		list, text = config.WriteDirs, g.Dir
	}
	return file, b.app.editor(b.station.home).Add(ctx, list, file, text)
}

// Files implements tui.Bench.
func (b *chatBench) Files() (project, user string) {
	user = b.app.configPath
	if user == "" {
		user = filepath.Join(b.station.home, "config.toml")
	}
	return b.project(), user
}

// Limits implements tui.Bench.
func (b *chatBench) Limits(mode string) budget.Limits {
	l, err := b.flags.limits(b.station.cfg, mode == run.ModeGoal)
	if err != nil {
		return budget.Limits{} // both were checked at the start
	}
	return l
}

// Price implements tui.Bench.
func (b *chatBench) Price() budget.Price { return b.model.price() }

// Describe implements tui.Bench.
func (b *chatBench) Describe(tui.Now) []tui.Line {
	cfg := b.station.cfg
	deny, ask, allow := rulesOf(cfg).Rules()
	return []tui.Line{
		{Label: "permission", Text: fmt.Sprintf("%d deny, %d ask, %d allow rules; what none matches: %s", len(deny), len(ask), len(allow), cfg.Permissions.Mode)},
		{Label: "sandbox", Text: b.station.boxWords()},
		{Label: "model", Text: b.model.name},
	}
}

func (a *app) editor(home string) config.Editor {
	return config.Editor{Locks: filepath.Join(home, "locks")}
}
