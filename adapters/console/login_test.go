package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reasonix/internal/chat"
)

var zero = time.Date(2026, 3, 4, 15, 4, 5, 0, time.UTC)

// clock is a time that the test moves.
type clock struct{ at time.Time }

func (c *clock) set(d *Door) { d.now = func() time.Time { return c.at } }

func codeOf(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil || u.Path != "/login" {
		t.Fatalf("link %q: %v", link, err)
	}
	return u.Query().Get("code")
}

func TestALoginLinkSignsInOnce(t *testing.T) {
	r := run(t, newWorld(), Config{})
	link, err := r.LoginLink("lead")
	if err != nil {
		t.Fatal(err)
	}
	code := codeOf(t, link)
	if len(code) < 43 {
		t.Errorf("a code of %d characters holds less than 256 bits", len(code))
	}
	b := r.browser()
	for range 2 { // previews may open the link as often as they like
		if status, body := b.get("/login?code=" + code); status != 200 || !strings.Contains(body, "Continue") {
			t.Fatalf("link page: %d\n%s", status, body)
		}
	}
	resp, err := b.noFollow().PostForm("http://"+r.Addr()+"/login", url.Values{"code": {code}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	c := resp.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.MaxAge <= 0 {
		t.Errorf("cookie: %+v", c)
	}
	if status, body := b.get("/"); status != 200 || !strings.Contains(body, "Signed in as lead") {
		t.Errorf("after signing in: %d\n%s", status, body)
	}
	status, body := r.browser().post("/login", url.Values{"code": {code}})
	if status != 401 || !strings.Contains(body, "was used or is too old") {
		t.Errorf("second use: %d\n%s", status, body)
	}
	if status, body := r.browser().get("/login?code=" + code); status != 410 || !strings.Contains(body, "ask the host for a new one") {
		t.Errorf("link page of a used code: %d\n%s", status, body)
	}
}

func (b *browser) noFollow() *http.Client {
	c := *b.Client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

func TestALoginLinkGrowsOld(t *testing.T) {
	c := &clock{zero}
	r := run(t, newWorld(), Config{}, c.set)
	link, _ := r.LoginLink("lead-1")
	c.at = zero.Add(codeLife)
	if status, _ := r.browser().post("/login", url.Values{"code": {codeOf(t, link)}}); status != 401 {
		t.Errorf("an old link: %d, want 401", status)
	}
}

func TestLoginLinksAreForPeopleOfThisConsole(t *testing.T) {
	d, _ := configured(Config{}, nil)
	if _, err := d.LoginLink("lead"); !errors.Is(err, ErrNotListening) {
		t.Errorf("before it listens: %v", err)
	}
	r := run(t, newWorld(), Config{})
	for _, who := range []string{"nobody", "slacker", ""} {
		if _, err := r.LoginLink(who); !errors.Is(err, ErrNobody) {
			t.Errorf("link for %q: %v", who, err)
		}
	}
	for range maxCodes {
		if _, err := r.LoginLink("lead"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.LoginLink("lead"); err == nil {
		t.Error("login links are not bounded")
	}
}

func TestGuessingIsSlowedDownAndTheRightTokenWorksAgain(t *testing.T) {
	c := &clock{zero}
	r := run(t, newWorld(), Config{TokenEnv: "TOKEN", TokenPerson: "lead"}, c.set)
	b := r.browser()
	for range freeAttempts {
		if status, body := b.post("/login", url.Values{"token": {"a guess"}}); status != 401 || !strings.Contains(body, "not the access token") {
			t.Fatalf("guess: %d\n%s", status, body)
		}
	}
	if status, body := b.post("/login", url.Values{"token": {accessToken}}); status != 429 || !strings.Contains(body, "Too many failed attempts") {
		t.Errorf("eleventh attempt: %d\n%s", status, body)
	}
	if status, _ := r.api("POST", "/api/session", accessToken, `{"token":"x"}`); status != 429 {
		t.Errorf("the JSON interface has a limit of its own: %d", status)
	}
	c.at = zero.Add(attemptEvery)
	if status, body := b.post("/login", url.Values{"token": {accessToken}}); status != 200 || !strings.Contains(body, "Signed in as lead") {
		t.Errorf("after waiting: %d\n%s", status, body)
	}
}

func TestABrowserStaysSignedInAcrossARestart(t *testing.T) {
	key := filepath.Join(t.TempDir(), "deep", "console.key")
	first := run(t, newWorld(), Config{SessionKeyFile: key})
	b := first.as("lead")
	info, err := os.Stat(key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("key file: %v %v", info.Mode(), err)
	}
	addr := first.Addr()
	first.stop()
	second := run(t, newWorld(), Config{SessionKeyFile: key, Listen: addr})
	if status, body := b.get("/"); status != 200 || !strings.Contains(body, "Signed in as lead") {
		t.Errorf("after the restart: %d\n%s", status, body)
	}
	second.stop()
	run(t, newWorld(), Config{Listen: addr})
	if _, body := b.get("/"); !strings.Contains(body, "Open the login link") {
		t.Errorf("another key accepts the session:\n%s", body)
	}
}

func TestASessionEndsInTimeAndWithItsPerson(t *testing.T) {
	c := &clock{zero}
	r := run(t, newWorld(), Config{Session: "1h"}, c.set)
	b := r.as("lead")
	c.at = zero.Add(time.Hour)
	if _, body := b.get("/"); !strings.Contains(body, "Open the login link") {
		t.Error("the session did not end")
	}
	c.at = zero
	token := r.signer.seal(pass{"gone-1", zero.Add(time.Hour).Unix()})
	if _, ok := r.sessionViewer(token); ok {
		t.Error("a person who is not configured is signed in")
	}
}

func TestSigningOutForgetsTheCookie(t *testing.T) {
	r := run(t, newWorld(), Config{})
	b := r.as("lead")
	b.post("/logout", nil)
	if _, body := b.get("/"); !strings.Contains(body, "Open the login link") {
		t.Error("still signed in")
	}
}

func TestASessionKeyThatOthersCanReadIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, bytes.Repeat([]byte{1}, keySize), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := configured(Config{SessionKeyFile: path}, nil); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a readable key: %v", err)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, fs.FileMode(0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := configured(Config{SessionKeyFile: path}, nil); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("a short key: %v", err)
	}
}

func TestConfigurationsThatCouldNotBeSafeAreRefused(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := os.WriteFile(open, []byte(accessToken), 0o644); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"SHORT": "hunter2", "TOKEN": accessToken}
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Listen: "8787"}, "host:port"},
		{Config{Listen: "0.0.0.0:1", AllowRemote: true}, "public_url"},
		{Config{PublicURL: "http://console.example.org"}, "use https"},
		{Config{PublicURL: "console.example.org"}, "https://host"},
		{Config{PublicURL: "https://console.example.org/path"}, "without a path"},
		{Config{TokenEnv: "SHORT", TokenPerson: "lead"}, "at least 24"},
		{Config{TokenEnv: "MISSING", TokenPerson: "lead"}, "at least 24"},
		{Config{TokenEnv: "TOKEN"}, "token_person"},
		{Config{TokenEnv: "TOKEN", TokenFile: "x", TokenPerson: "lead"}, "keep one"},
		{Config{TokenFile: filepath.Join(dir, "none"), TokenPerson: "lead"}, "read token_file"},
		{Config{TokenFile: open, TokenPerson: "lead"}, "chmod 600"},
		{Config{Session: "forever"}, "session ="},
		{Config{Session: "1s"}, "session ="},
	} {
		if _, err := configured(c.config, env); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.want)
		}
	}
	remote := Config{Listen: "127.0.0.1:0", AllowRemote: true, PublicURL: "https://Console.example.org"}
	r := run(t, newWorld(), remote)
	if link, _ := r.LoginLink("lead"); !strings.HasPrefix(link, "https://console.example.org/login?code=") {
		t.Errorf("link: %s", link)
	}
	if !r.isOurs("console.example.org") || !r.cookie("x").Secure {
		t.Error("the public name is not ours, or its cookie is not secure")
	}
}

// api sends a request as a program does.
func (r running) api(method, path, token, body string) (int, map[string]any) {
	r.t.Helper()
	req, _ := http.NewRequest(method, "http://"+r.Addr()+path, strings.NewReader(body))
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, out
}

func TestADoorIsOpenedByItsKind(t *testing.T) {
	d, err := chat.Open(Kind, chat.DoorConfig{Name: "web", Decode: func(any) error { return nil }, Getenv: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	if !d.Capabilities().Buttons {
		t.Error("no buttons")
	}
	if _, err := chat.Open(Kind, chat.DoorConfig{Name: "web", Decode: func(any) error { return errors.New("line 3: unknown key lisen") }}); err == nil || !strings.Contains(err.Error(), "lisen") {
		t.Errorf("an unreadable block: %v", err)
	}
}
