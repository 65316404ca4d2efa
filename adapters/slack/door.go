// Package slack is the door to Slack over HTTP: it verifies and translates events, commands and presses, and renders what the host wants said.
package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"reasonix/internal/chat"
)

func init() { chat.Register("slack", Open) }

// Config is the door's own block of a connection.
type Config struct {
	BotTokenEnv      string `toml:"bot_token_env" json:"bot_token_env"`           // variable that holds the bot token
	SigningSecretEnv string `toml:"signing_secret_env" json:"signing_secret_env"` // variable that holds the signing secret
	Team             string `toml:"team" json:"team"`                             // workspace id; events of others are ignored; empty: any
	APIURL           string `toml:"api_url" json:"api_url"`                       // another Web API address, for tests and proxies
	BotMessageLimit  int    `toml:"bot_message_limit" json:"bot_message_limit"`   // messages of other bots heard per thread between two by people; 0: none
}

// Door is one Slack app in one workspace.
type Door struct {
	name    string
	cfg     Config
	api     *slack.Client
	secret  string
	http    *http.Client
	apiURL  string
	token   string
	now     func() time.Time
	ignored chat.Tally
	loops   loopGuard
	threads threadBook
	sent    uploadBook

	mu     sync.Mutex
	self   *identity
	scopes string // as the API last reported them
}

// identity is what auth.test says about the bot.
type identity struct{ Team, UserID, BotID, TeamName string }

// Open builds the door; without a token or a signing secret it refuses, because it could not tell Slack from a stranger.
func Open(dc chat.DoorConfig) (chat.Door, error) {
	var cfg Config
	if err := dc.Decode(&cfg); err != nil {
		return nil, fmt.Errorf("connection %q: %w", dc.Name, err)
	}
	token, err := secretFrom(dc, "bot_token_env", cfg.BotTokenEnv)
	if err != nil {
		return nil, err
	}
	secret, err := secretFrom(dc, "signing_secret_env", cfg.SigningSecretEnv)
	if err != nil {
		return nil, err
	}
	if cfg.BotMessageLimit < 0 {
		return nil, fmt.Errorf("connection %q: bot_message_limit is %d, want 0 or more", dc.Name, cfg.BotMessageLimit)
	}
	d := &Door{name: dc.Name, cfg: cfg, secret: secret, token: token, http: sameHost(dc.Client), apiURL: cfg.APIURL, now: time.Now}
	if d.apiURL == "" {
		d.apiURL = slack.APIURL
	}
	u, err := url.Parse(d.apiURL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("connection %q: api_url %q is no address", dc.Name, cfg.APIURL)
	}
	d.apiURL = strings.TrimSuffix(d.apiURL, "/") + "/"
	d.api = slack.New(token, slack.OptionAPIURL(d.apiURL), slack.OptionHTTPClient(d.http),
		slack.OptionOnResponseHeaders(d.noteScopes))
	return d, nil
}

// sameHost keeps the token from following a redirect to another host.
func sameHost(c *http.Client) *http.Client {
	own := http.Client{Timeout: 30 * time.Second}
	if c != nil {
		own = *c
	}
	own.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if len(via) > 2 || r.URL.Host != via[0].URL.Host {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return &own
}

func secretFrom(dc chat.DoorConfig, key, env string) (string, error) {
	if env == "" {
		return "", fmt.Errorf("connection %q: %s is missing: name the environment variable that holds it", dc.Name, key)
	}
	v := strings.TrimSpace(dc.Getenv(env))
	if v == "" {
		return "", fmt.Errorf("connection %q: %s names %s, which is empty: set it in the environment of the host", dc.Name, key, env)
	}
	return v, nil
}

// Capabilities says what Slack can do. Text of any length is taken: what does not fit goes along as a file.
func (d *Door) Capabilities() chat.Capabilities {
	return chat.Capabilities{Buttons: true, Edit: true, Files: true, Lookup: true, Private: true}
}

// identity asks Slack once who the bot is.
func (d *Door) identity(ctx context.Context) (identity, error) {
	d.mu.Lock()
	known := d.self
	d.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	r, err := d.api.AuthTestContext(ctx)
	if err != nil {
		return identity{}, fmt.Errorf("ask Slack who the bot is: %w", err)
	}
	id := identity{Team: r.TeamID, UserID: r.UserID, BotID: r.BotID, TeamName: r.Team}
	d.mu.Lock()
	d.self = &id
	d.mu.Unlock()
	return id, nil
}

func (d *Door) noteScopes(_ string, h http.Header) {
	if s := h.Get("X-OAuth-Scopes"); s != "" {
		d.mu.Lock()
		d.scopes = s
		d.mu.Unlock()
	}
}

// Run learns who the bot is, trying again with a growing pause, and then waits for the end: Slack calls the handler.
func (d *Door) Run(ctx context.Context, h chat.Host) error {
	pause := time.Second
	for {
		id, err := d.identity(ctx)
		if err == nil {
			h.Log.Info("slack door is up", "connection", d.name, "team", id.TeamName, "bot", id.UserID)
			<-ctx.Done()
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		h.Log.Warn("slack door cannot reach its workspace", "connection", d.name, "err", err, "again_in", pause)
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
		pause = min(2*pause, 5*time.Minute)
	}
}

// neededScopes are what the door's calls and events need.
var neededScopes = []string{"chat:write", "files:write", "files:read", "commands", "app_mentions:read", "channels:history", "im:history"}

// Check asks Slack whether the token works and compares the granted scopes with the needed ones.
func (d *Door) Check(ctx context.Context) []chat.HealthItem {
	d.mu.Lock()
	d.self = nil
	d.mu.Unlock()
	id, err := d.identity(ctx)
	if err != nil {
		return []chat.HealthItem{{Name: "slack " + d.name, Text: err.Error(),
			Mend: "check the token in " + d.cfg.BotTokenEnv + " and the way to " + d.apiURL}}
	}
	items := []chat.HealthItem{{Name: "slack " + d.name, OK: true, Text: "signed in to " + id.TeamName + " as " + id.UserID}}
	if d.cfg.Team != "" && d.cfg.Team != id.Team {
		items = append(items, chat.HealthItem{Name: "slack " + d.name + " team", Text: "the token belongs to " + id.Team + ", team says " + d.cfg.Team,
			Mend: "set team to " + id.Team + " or take the token of the other workspace"})
	}
	if missing := d.missingScopes(); len(missing) > 0 {
		items = append(items, chat.HealthItem{Name: "slack " + d.name + " scopes", Text: "not granted: " + strings.Join(missing, ", "),
			Mend: "add these bot token scopes to the app and install it again"})
	}
	return append(items, chat.HealthItem{Name: "slack " + d.name + " ignored", OK: true, Text: d.ignored.String()})
}

func (d *Door) missingScopes() []string {
	d.mu.Lock()
	granted := d.scopes
	d.mu.Unlock()
	if granted == "" {
		return nil
	}
	have := map[string]bool{}
	for s := range strings.SplitSeq(granted, ",") {
		have[strings.TrimSpace(s)] = true
	}
	var missing []string
	for _, s := range neededScopes {
		if !have[s] {
			missing = append(missing, s)
		}
	}
	return missing
}

var errNoPost = errors.New("message has no content")
