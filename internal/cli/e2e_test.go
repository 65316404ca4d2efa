package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "reasonix/adapters/console"
	_ "reasonix/adapters/github"
	_ "reasonix/adapters/slack"
	"reasonix/internal/cli"
	_ "reasonix/internal/provider/openai"
	_ "reasonix/internal/provider/script"
	"reasonix/internal/sandbox"
	"reasonix/internal/testkit/githubd"
	"reasonix/internal/testkit/modeld"
	"reasonix/internal/testkit/slackd"
	_ "reasonix/internal/tool/builtin"
)

// asChild makes the test binary the product: the stories below run it as a process of its own, so that it can be killed.
const asChild = "REASONIX_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" || (len(os.Args) > 1 && (os.Args[1] == sandbox.RelayCommand || os.Args[1] == sandbox.StageCommand)) {
		ctx, stop := signalContext()
		code := cli.Main(ctx, "test", os.Args[1:])
		stop()
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// world is a host with real doors against platforms and a model on loopback.
type world struct {
	t       testing.TB
	home    string // REASONIX_HOME
	repo    string // bare upstream
	effects string // folder that boxes may write, counted by tests
	addr    string
	github  *githubd.Server
	slack   *slackd.Server
	model   *modeld.Server
	posture string
	mode    string // of both routes; empty: run
	allow   string // TOML list of allow rules; empty: ["Edit"]
	publish string
	console string
	more    []string // of the host's environment
	extra   string   // more of the configuration
	process *exec.Cmd
	log     *lockedBuffer
	stopped chan struct{}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func need(t testing.TB, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is missing: apt-get install -y %s", program, map[string]string{"bwrap": "bubblewrap"}[program])
	}
}

func newWorld(t testing.TB, brain modeld.Brain, change ...func(*world)) *world {
	t.Helper()
	need(t, "bwrap")
	w := &world{t: t, home: t.TempDir(), effects: filepath.Join(t.TempDir(), "effects"), github: githubd.New(t), slack: slackd.New(t), posture: "auto", console: "off", log: &lockedBuffer{}}
	if err := os.MkdirAll(w.effects, 0o777); err != nil {
		t.Fatal(err)
	}
	_ = os.Chmod(w.effects, 0o777)
	model, err := modeld.Start(brain)
	if err != nil {
		t.Fatal(err)
	}
	w.model = model
	t.Cleanup(model.Close)
	for _, c := range change {
		c(w)
	}
	if w.repo == "" {
		w.repo = bareRepo(t, map[string]string{"README.md": "hello\n"})
	}
	w.github.Grant("acme/api", "dev", "write")
	w.github.Grant("acme/api", "lead", "write")
	w.github.Grant("acme/api", "boss", "admin")
	w.addr = freeAddr(t)
	w.configure()
	w.start()
	t.Cleanup(func() {
		w.kill()
		if t.Failed() {
			t.Logf("the host said:\n%s", w.log)
		}
	})
	return w
}

func freeAddr(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func (w *world) configure() {
	w.t.Helper()
	text := fmt.Sprintf(`default_model = "double"
[[providers]]
name = "double"
kind = "openai"
base_url = %[1]q
model = "double"
[permissions]
allow = %[11]s
[sandbox]
allow_write = [%[2]q]
[bot]
state = "sqlite:%[3]s/state.db"
data = "%[3]s/data"
listen = %[4]q
console = %[13]q
lease = "2s"
[[people]]
name = "lead"
role = "approver"
github = "lead"
slack = "ULEAD"
[[people]]
name = "dev"
role = "user"
github = "dev"
slack = "UDEV"
[[people]]
name = "boss"
role = "admin"
github = "boss"
[[repos]]
name = "api"
url = %[5]q
base = "main"
slug = "acme/api"
[[connections]]
name = "hub"
kind = "github"
api_url = %[6]q
token_env = "HUB_TOKEN"
webhook_secret_env = "HUB_SECRET"
bot_login = %[7]q
[[connections]]
name = "team"
kind = "slack"
api_url = %[8]q
bot_token_env = "TEAM_TOKEN"
signing_secret_env = "TEAM_SECRET"
[[routes]]
name = "fix"
on = "github.comment"
match = { command = "/reasonix fix" }
posture = %[9]q
mode = %[12]q
repo = "api"
asks = { approvers = ["lead"] }
%[10]s
[[routes]]
name = "chat"
on = "slack.command"
match = { command = "/reasonix fix" }
posture = %[9]q
mode = %[12]q
repo = "api"
asks = { approvers = ["lead"] }
%[14]s`, w.model.URL, w.effects, w.home, w.addr, w.repo, w.github.URL, w.github.Bot, w.slack.URL, w.posture, w.publish, cmp.Or(w.allow, `["Edit"]`), cmp.Or(w.mode, "run"), w.console, w.extra)
	if err := os.WriteFile(filepath.Join(w.home, "config.toml"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) env() []string {
	return append([]string{
		asChild + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "REASONIX_HOME=" + w.home, "TMPDIR=" + os.TempDir(),
		"HUB_TOKEN=" + w.github.Token, "HUB_SECRET=" + w.github.Secret, "TEAM_TOKEN=" + w.slack.Token, "TEAM_SECRET=" + w.slack.SigningSecret,
	}, w.more...)
}

// start runs `reasonix bot start` and waits until the webhooks listen.
func (w *world) start() {
	w.t.Helper()
	w.process = exec.Command(os.Args[0], "bot", "start")
	w.process.Env, w.process.Stderr, w.process.Stdout = w.env(), w.log, w.log
	if err := w.process.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.stopped = make(chan struct{})
	go func(p *exec.Cmd, done chan struct{}) {
		_ = p.Wait()
		close(done)
	}(w.process, w.stopped)
	w.eventually("the webhooks listen", func() bool {
		select {
		case <-w.stopped:
			w.t.Fatalf("the host ended:\n%s", w.log)
		default:
		}
		res, err := http.Get("http://" + w.addr + "/healthz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusNoContent
	})
}

// kill is kill -9: nothing of the process gets a chance to clean up.
func (w *world) kill() {
	_ = w.process.Process.Signal(syscall.SIGKILL)
	<-w.stopped
}

// cli runs another subcommand beside the host.
func (w *world) cli(args ...string) (string, int) {
	w.t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = w.env()
	out, err := cmd.CombinedOutput()
	code := 0
	if err != nil {
		code = cmd.ProcessState.ExitCode()
	}
	return string(out), code
}

func (w *world) hook(name string) string { return "http://" + w.addr + "/hooks/" + name + "/" }

// eventually looks until the condition holds: what it waits for happens in other processes, which give no signal.
func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	limit := time.Now().Add(3 * time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(limit) {
			w.t.Fatalf("waited in vain: %s\ncomments: %+v\nhost: %s", what, w.github.BotComments(), w.log)
		}
		<-tick.C
	}
}

func (w *world) comment(user, body string) {
	w.t.Helper()
	if a := w.github.Deliver(w.t, w.hook("hub"), w.github.Comment("acme/api", 7, user, body)); a.Status/100 != 2 {
		w.t.Fatalf("the comment was answered %d: %s", a.Status, a.Body)
	}
}

// said counts the bot's comments that contain the text.
func (w *world) said(text string) int {
	n := 0
	for _, c := range w.github.BotComments() {
		if strings.Contains(c.Body, text) {
			n++
		}
	}
	return n
}

func (w *world) runs() int {
	data, err := os.ReadFile(filepath.Join(w.effects, "runs"))
	if err != nil {
		return 0
	}
	return strings.Count(string(data), "\n")
}

var askIn = regexp.MustCompile(`\bask_[a-z2-7]{16,40}`) // not the end of a task's id

func (w *world) askID() string {
	w.t.Helper()
	id := ""
	w.eventually("an ask is posted", func() bool {
		for _, c := range w.github.BotComments() {
			if m := askIn.FindString(c.Body); m != "" {
				id = m
			}
		}
		return id != ""
	})
	return id
}

func bareRepo(t testing.TB, files map[string]string) string {
	t.Helper()
	src := t.TempDir()
	for name, text := range files {
		path := filepath.Join(src, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return bareOf(t, src)
}

func bareOf(t testing.TB, src string) string {
	t.Helper()
	bare := filepath.Join(t.TempDir(), "upstream.git")
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "first"}, {"clone", "-q", "--bare", ".", bare},
	} {
		gitIn(t, src, args...)
	}
	return bare
}

func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "safe.directory=*"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// counter is a brain that runs one command with an effect outside the workspace and reports what came back.
func counter(effects *string, wait string) modeld.Brain {
	return func(r modeld.Request) modeld.Turn {
		if results := r.Results(); len(results) > 0 {
			return modeld.Turn{Text: "Done: " + strings.Join(results, " ")}
		}
		return modeld.Turn{Text: "I run it.", Calls: []modeld.Call{{Name: "bash", Args: map[string]any{"command": "echo run >> " + *effects + "/runs; " + wait}}}}
	}
}

func signalContext() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}
