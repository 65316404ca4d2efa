// Package github is the door to GitHub: it verifies and translates webhooks, posts comments, opens pull requests and gives the host access to repositories.
package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v66/github"

	"reasonix/internal/chat"
)

func init() { chat.Register("github", Open) }

// Config is the door's own block of a connection.
type Config struct {
	WebhookSecretEnv string   `toml:"webhook_secret_env" json:"webhook_secret_env"` // variable that holds the webhook's secret
	TokenEnv         string   `toml:"token_env" json:"token_env"`                   // variable that holds a token; or app
	App              *App     `toml:"app" json:"app"`                               // act as a GitHub App
	APIURL           string   `toml:"api_url" json:"api_url"`                       // API of an Enterprise Server, or a test
	BotLogin         string   `toml:"bot_login" json:"bot_login"`                   // login that the bot comments as; empty: asked
	Labels           []string `toml:"labels" json:"labels"`                         // labels that ask for work, besides reasonix and reasonix:…
}

// App names a GitHub App and its key.
type App struct {
	ID             int64  `toml:"id" json:"id"`
	PrivateKeyFile string `toml:"private_key_file" json:"private_key_file"`
	InstallationID int64  `toml:"installation_id" json:"installation_id"` // 0: asked per repository
}

// Door is one GitHub account or App.
type Door struct {
	name    string
	cfg     Config
	secret  []byte
	access  access
	now     func() time.Time
	ignored chat.Tally

	mu    sync.Mutex
	login string
}

// Open builds the door; without a webhook secret it refuses, because it could not tell GitHub from a stranger.
func Open(dc chat.DoorConfig) (chat.Door, error) {
	var cfg Config
	if err := dc.Decode(&cfg); err != nil {
		return nil, fmt.Errorf("connection %q: %w", dc.Name, err)
	}
	if cfg.WebhookSecretEnv == "" {
		return nil, fmt.Errorf("connection %q: webhook_secret_env is missing: without a secret anybody could send events", dc.Name)
	}
	secret := strings.TrimSpace(dc.Getenv(cfg.WebhookSecretEnv))
	if secret == "" {
		return nil, fmt.Errorf("connection %q: webhook_secret_env names %s, which is empty: set it to the secret of the webhook", dc.Name, cfg.WebhookSecretEnv)
	}
	acc, err := newAccess(dc, cfg)
	if err != nil {
		return nil, fmt.Errorf("connection %q: %w", dc.Name, err)
	}
	if cfg.App != nil && cfg.BotLogin != "" && !strings.HasSuffix(cfg.BotLogin, "[bot]") {
		cfg.BotLogin += "[bot]" // how GitHub names an App's comments
	}
	return &Door{name: dc.Name, cfg: cfg, secret: []byte(secret), access: acc, now: time.Now, login: cfg.BotLogin}, nil
}

// sameHost keeps the token from following a redirect to another host.
func sameHost(c *http.Client) *http.Client {
	own := http.Client{Timeout: 30 * time.Second}
	if c != nil {
		own = *c
	}
	own.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if len(via) > 5 || r.URL.Host != via[0].URL.Host {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return &own
}

func newAccess(dc chat.DoorConfig, cfg Config) (access, error) {
	base := cfg.APIURL
	if base == "" {
		base = "https://api.github.com/"
	}
	u, err := url.Parse(strings.TrimSuffix(base, "/") + "/")
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("api_url %q is no address", cfg.APIURL)
	}
	client := sameHost(dc.Client)
	switch {
	case cfg.App != nil && cfg.TokenEnv != "":
		return nil, errors.New("token_env and app are both set: keep one")
	case cfg.App != nil:
		return newAppAccess(*cfg.App, client, u)
	case cfg.TokenEnv == "":
		return nil, errors.New("neither token_env nor app is set: the bot could not answer")
	}
	token := strings.TrimSpace(dc.Getenv(cfg.TokenEnv))
	if token == "" {
		return nil, fmt.Errorf("token_env names %s, which is empty: set it in the environment of the host", cfg.TokenEnv)
	}
	gh := github.NewClient(client).WithAuthToken(token)
	gh.BaseURL = u
	return &tokenAccess{Client: gh, token: token}, nil
}

// Capabilities says what GitHub can do. Text of any length is taken: what does not fit into one comment goes into further
// comments before it.
func (d *Door) Capabilities() chat.Capabilities {
	return chat.Capabilities{Edit: true, Lookup: true, Answer: "/approve %s"}
}

// botLogin is the login that the bot comments as, asked once.
func (d *Door) botLogin(ctx context.Context) (string, error) {
	d.mu.Lock()
	login := d.login
	d.mu.Unlock()
	if login != "" {
		return login, nil
	}
	login, err := d.access.login(ctx)
	if err != nil {
		return "", fmt.Errorf("ask GitHub who the bot is: %w", err)
	}
	d.mu.Lock()
	d.login = login
	d.mu.Unlock()
	return login, nil
}

// Run waits for the end: GitHub calls the handler.
func (d *Door) Run(ctx context.Context, h chat.Host) error {
	login, err := d.botLogin(ctx)
	if err != nil && ctx.Err() == nil {
		h.Log.Warn("github door does not know its login yet", "connection", d.name, "err", err)
	} else if err == nil {
		h.Log.Info("github door is up", "connection", d.name, "bot", login)
	}
	<-ctx.Done()
	return nil
}

// Check asks GitHub whether the credentials work.
func (d *Door) Check(ctx context.Context) []chat.HealthItem {
	name := "github " + d.name
	login, err := d.access.login(ctx)
	if err != nil {
		return []chat.HealthItem{{Name: name, Text: err.Error(), Mend: d.access.mend()}}
	}
	items := []chat.HealthItem{{Name: name, OK: true, Text: "signed in as " + login + "; comments by it are never commands"}}
	if d.cfg.BotLogin != "" && !strings.EqualFold(d.cfg.BotLogin, login) {
		items = append(items, chat.HealthItem{Name: name + " bot_login", Text: "bot_login says " + d.cfg.BotLogin + ", GitHub says " + login,
			Mend: "set bot_login to " + login + " or remove it"})
	}
	return append(items, chat.HealthItem{Name: name + " ignored", OK: true, Text: d.ignored.String()})
}

func readKey(path string) ([]byte, error) {
	if path == "" {
		return nil, errors.New("app.private_key_file is missing")
	}
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read app.private_key_file: %w", err)
	}
	return key, nil
}
