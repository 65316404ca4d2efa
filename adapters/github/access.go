package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v66/github"
)

// access gives clients and tokens for a repository; the two ways are a token and an App.
type access interface {
	client(ctx context.Context, repo string) (*github.Client, error)
	secret(ctx context.Context, repo string) (string, error)
	login(ctx context.Context) (string, error)
	mend() string
}

// tokenAccess uses one token for everything.
type tokenAccess struct {
	*github.Client
	token string
}

func (a *tokenAccess) client(context.Context, string) (*github.Client, error) { return a.Client, nil }
func (a *tokenAccess) secret(context.Context, string) (string, error)         { return a.token, nil }
func (a *tokenAccess) mend() string                                           { return "check the token and the way to " + a.BaseURL.String() }

func (a *tokenAccess) login(ctx context.Context) (string, error) {
	u, _, err := a.Users.Get(ctx, "")
	if err != nil {
		return "", lookError("read the token's user", err)
	}
	return u.GetLogin(), nil
}

// appAccess acts as an App: a client per installation, a token per repository.
type appAccess struct {
	app  App
	base *url.URL
	http *http.Client
	jwt  *ghinstallation.AppsTransport
	self *github.Client

	mu            sync.Mutex
	installations map[string]int64 // owner/repo → installation
	clients       map[int64]*github.Client
}

func newAppAccess(app App, client *http.Client, base *url.URL) (*appAccess, error) {
	if app.ID <= 0 {
		return nil, errors.New("app.id is missing")
	}
	key, err := readKey(app.PrivateKeyFile)
	if err != nil {
		return nil, err
	}
	tr := client.Transport
	if tr == nil {
		tr = http.DefaultTransport
	}
	jwt, err := ghinstallation.NewAppsTransport(tr, app.ID, key)
	if err != nil {
		return nil, fmt.Errorf("app.private_key_file holds no RSA key in PEM: %w", err)
	}
	jwt.BaseURL = strings.TrimSuffix(base.String(), "/")
	self := github.NewClient(&http.Client{Transport: jwt, Timeout: client.Timeout, CheckRedirect: client.CheckRedirect})
	self.BaseURL = base
	return &appAccess{app: app, base: base, http: client, jwt: jwt, self: self,
		installations: map[string]int64{}, clients: map[int64]*github.Client{}}, nil
}

func (a *appAccess) mend() string {
	return "check app.id, app.private_key_file, the clock of the host and the way to " + a.base.String()
}

func (a *appAccess) login(ctx context.Context) (string, error) {
	me, _, err := a.self.Apps.Get(ctx, "")
	if err != nil {
		return "", lookError("read the app", err)
	}
	return me.GetSlug() + "[bot]", nil
}

func (a *appAccess) installation(ctx context.Context, repo string) (int64, error) {
	if a.app.InstallationID != 0 {
		return a.app.InstallationID, nil
	}
	a.mu.Lock()
	id := a.installations[repo]
	a.mu.Unlock()
	if id != 0 {
		return id, nil
	}
	owner, name, err := splitRepo(repo)
	if err != nil {
		return 0, err
	}
	inst, _, err := a.self.Apps.FindRepositoryInstallation(ctx, owner, name)
	if err != nil {
		return 0, lookError("find the app's installation for "+repo, err)
	}
	a.mu.Lock()
	a.installations[repo] = inst.GetID()
	a.mu.Unlock()
	return inst.GetID(), nil
}

func (a *appAccess) client(ctx context.Context, repo string) (*github.Client, error) {
	id, err := a.installation(ctx, repo)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.clients[id]; c != nil {
		return c, nil
	}
	tr := ghinstallation.NewFromAppsTransport(a.jwt, id)
	tr.Client = a.http
	c := github.NewClient(&http.Client{Transport: tr, Timeout: a.http.Timeout, CheckRedirect: a.http.CheckRedirect})
	c.BaseURL = a.base
	a.clients[id] = c
	return c, nil
}

// secret is an installation token for this repository alone; it lives one hour.
func (a *appAccess) secret(ctx context.Context, repo string) (string, error) {
	id, err := a.installation(ctx, repo)
	if err != nil {
		return "", err
	}
	_, name, err := splitRepo(repo)
	if err != nil {
		return "", err
	}
	token, _, err := a.self.Apps.CreateInstallationToken(ctx, id, &github.InstallationTokenOptions{Repositories: []string{name}})
	if err != nil {
		return "", lookError("get a token for "+repo, err)
	}
	return token.GetToken(), nil
}

func splitRepo(repo string) (owner, name string, err error) {
	owner, name, ok := strings.Cut(repo, "/")
	if !ok || owner == "" || name == "" || strings.ContainsAny(repo, " ?#%\\") || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q is no owner/name of a repository", repo)
	}
	return owner, name, nil
}
