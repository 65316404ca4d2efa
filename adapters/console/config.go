package console

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Config is the connection's own block.
type Config struct {
	Listen         string `toml:"listen"`           // host:port, default 127.0.0.1:8787; port 0 takes a free one
	AllowRemote    bool   `toml:"allow_remote"`     // permits a listen address that is not loopback; needs PublicURL
	PublicURL      string `toml:"public_url"`       // how browsers reach the console when that differs from listen
	TokenEnv       string `toml:"token_env"`        // environment variable with the access token, at least 24 characters
	TokenFile      string `toml:"token_file"`       // file with the access token, readable by its owner only
	TokenPerson    string `toml:"token_person"`     // console identity or name of the person whose token it is
	SessionKeyFile string `toml:"session_key_file"` // signing key of sessions, made with mode 0600 when missing
	Session        string `toml:"session"`          // how long a browser stays signed in, default 168h, at most 2160h
	Suggest        string `toml:"suggest"`          // request that the form is filled with
}

const (
	defaultListen  = "127.0.0.1:8787"
	defaultSession = 7 * 24 * time.Hour
	maxSession     = 90 * 24 * time.Hour
	minToken       = 24
)

// settings is a Config that was found safe.
type settings struct {
	Config
	session time.Duration
	public  *url.URL // nil when not configured
	token   string   // empty: no access token, login links only
}

func (c Config) check(getenv func(string) string) (settings, error) {
	s := settings{Config: c, session: defaultSession}
	if s.Listen == "" {
		s.Listen = defaultListen
	}
	var err error
	if s.session, err = sessionLength(c.Session); err != nil {
		return s, err
	}
	if s.public, err = publicURL(c.PublicURL); err != nil {
		return s, err
	}
	if err := s.checkListen(); err != nil {
		return s, err
	}
	if s.SessionKeyFile, err = expandHome(c.SessionKeyFile); err != nil {
		return s, err
	}
	s.token, err = c.readToken(getenv)
	return s, err
}

func (s settings) checkListen() error {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return fmt.Errorf("listen = %q: write it as host:port, e.g. %q", s.Listen, defaultListen)
	}
	if isLoopback(host) {
		return nil
	}
	if !s.AllowRemote {
		return fmt.Errorf("listen = %q is reachable from other machines: use %q, or set allow_remote = true and public_url", s.Listen, defaultListen)
	}
	if s.public == nil {
		return errors.New("allow_remote = true needs public_url, the address that browsers use: the Host header is checked against it")
	}
	return nil
}

func (c Config) readToken(getenv func(string) string) (string, error) {
	if c.TokenEnv != "" && c.TokenFile != "" {
		return "", errors.New("token_env and token_file are both set: keep one")
	}
	if c.TokenEnv == "" && c.TokenFile == "" {
		return "", nil
	}
	if c.TokenPerson == "" {
		return "", errors.New("the access token needs token_person: whose token it is")
	}
	source := "token_env " + c.TokenEnv
	token := ""
	if c.TokenEnv != "" {
		token = getenv(c.TokenEnv)
	} else {
		source = "token_file " + c.TokenFile
		raw, err := readPrivate(c.TokenFile)
		if err != nil {
			return "", fmt.Errorf("read token_file: %w", err)
		}
		token = string(raw)
	}
	if token = strings.TrimSpace(token); len(token) < minToken {
		return "", fmt.Errorf("%s holds %d characters, an access token needs at least %d (openssl rand -hex 32)", source, len(token), minToken)
	}
	return token, nil
}

func sessionLength(text string) (time.Duration, error) {
	if text == "" {
		return defaultSession, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Minute || d > maxSession {
		return 0, fmt.Errorf("session = %q: write a duration from 1m to %s, e.g. \"168h\"", text, maxSession)
	}
	return d, nil
}

// publicURL accepts http for loopback alone: a session cookie must not cross a network in the clear.
func publicURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("public_url = %q: write it as https://host, without a path", text)
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return nil, fmt.Errorf("public_url = %q sends the session in the clear: use https, with a TLS proxy in front", text)
	}
	return &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host)}, nil
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func expandHome(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("expand %s: %w", path, err)
	}
	return filepath.Join(home, rest), nil
}

// readPrivate reads a small secret file and refuses one that others can read.
func readPrivate(path string) ([]byte, error) {
	path, err := expandHome(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !ownerOnly(info) {
		return nil, fmt.Errorf("%s can be read by others: chmod 600 %s", path, path)
	}
	if info.Size() > 4096 {
		return nil, fmt.Errorf("%s is larger than 4096 bytes: no secret of ours", path)
	}
	return os.ReadFile(path)
}
