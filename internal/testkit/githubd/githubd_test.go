package githubd_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v66/github"

	"reasonix/internal/testkit/githubd"
)

func client(t *testing.T, s *githubd.Server) *github.Client {
	t.Helper()
	gh := github.NewClient(nil).WithAuthToken(s.Token)
	base, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	gh.BaseURL = base
	return gh
}

// The client library is the judge of whether the double speaks GitHub.
func TestTheClientLibraryGetsAlong(t *testing.T) {
	s := githubd.New(t)
	gh, ctx := client(t, s), t.Context()
	if me, _, err := gh.Users.Get(ctx, ""); err != nil || me.GetLogin() != s.Bot {
		t.Fatalf("user: %v", err)
	}
	for _, text := range []string{"one", "two", "three"} {
		if _, _, err := gh.Issues.CreateComment(ctx, "o", "r", 7, &github.IssueComment{Body: &text}); err != nil {
			t.Fatal(err)
		}
	}
	list, _, err := gh.Issues.ListComments(ctx, "o", "r", 7, &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 2, Page: 2}})
	if err != nil || len(list) != 1 || list[0].GetBody() != "three" || list[0].GetUser().GetLogin() != s.Bot {
		t.Fatalf("page 2: %+v, %v", list, err)
	}
	if c, _, err := gh.Issues.EditComment(ctx, "o", "r", list[0].GetID(), &github.IssueComment{Body: github.String("3")}); err != nil || c.GetBody() != "3" {
		t.Fatalf("edit: %v", err)
	}
	if _, _, err := gh.Reactions.CreateIssueCommentReaction(ctx, "o", "r", list[0].GetID(), "eyes"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := gh.Reactions.CreateIssueCommentReaction(ctx, "o", "r", list[0].GetID(), "shrug"); err == nil {
		t.Fatal("an unknown reaction is taken")
	}
	s.Grant("o/r", "Dev", "maintain")
	if p, _, err := gh.Repositories.GetPermissionLevel(ctx, "o", "r", "dev"); err != nil || p.GetPermission() != "write" || p.GetRoleName() != "maintain" {
		t.Fatalf("permission: %+v, %v", p, err)
	}
	pull := &github.NewPullRequest{Title: github.String("t"), Head: github.String("b"), Base: github.String("main")}
	made, _, err := gh.PullRequests.Create(ctx, "o", "r", pull)
	if err != nil {
		t.Fatal(err)
	}
	var said *github.ErrorResponse
	if _, _, err := gh.PullRequests.Create(ctx, "o", "r", pull); !errors.As(err, &said) || said.Response.StatusCode != 422 {
		t.Fatalf("the same again: %v", err)
	}
	if got, _, err := gh.PullRequests.Get(ctx, "o", "r", made.GetNumber()); err != nil || got.GetHead().GetRef() != "b" {
		t.Fatalf("pull: %v", err)
	}
	if found, _, err := gh.PullRequests.List(ctx, "o", "r", &github.PullRequestListOptions{Head: "o:b"}); err != nil || len(found) != 1 {
		t.Fatalf("pulls: %v", err)
	}
}

func TestFaultsLookLikeGitHub(t *testing.T) {
	s := githubd.New(t)
	s.Fail("GET user", githubd.Fault{ResetIn: 60})
	var primary *github.RateLimitError
	if _, _, err := client(t, s).Users.Get(t.Context(), ""); !errors.As(err, &primary) {
		t.Fatalf("got %v", err)
	}
	s.Fail("GET user", githubd.Fault{RetryAfter: 9})
	var secondary *github.AbuseRateLimitError
	if _, _, err := client(t, s).Users.Get(t.Context(), ""); !errors.As(err, &secondary) || secondary.RetryAfter.Seconds() != 9 {
		t.Fatalf("got %v", err)
	}
}

func TestAppsGetTokens(t *testing.T) {
	s := githubd.New(t)
	s.UseApp(t)
	tr, err := ghinstallation.NewKeyFromFile(http.DefaultTransport, s.AppID, s.InstallationID, s.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	tr.BaseURL = s.URL
	if token, err := tr.Token(t.Context()); err != nil || token == "" {
		t.Fatalf("token: %v", err)
	}
	if _, _, err := client(t, s).Users.Get(t.Context(), ""); err == nil {
		t.Fatal("the personal token works although the bot is an app")
	}
}

func TestDeliveriesAreSignedAsGitHubSigns(t *testing.T) {
	s := githubd.New(t)
	var problem error
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := github.ValidatePayload(r, []byte(s.Secret))
		if err == nil {
			_, err = github.ParseWebHook(github.WebHookType(r), body)
		}
		problem = err
	}))
	defer hook.Close()
	form := s.Comment("o/r", 7, "dev", "hi")
	form.Form = true
	pull := githubd.Pull{Repo: "o/r", Number: 3, HeadSHA: "a", Base: "main"}
	for _, d := range []githubd.Delivery{form, s.Comment("o/r", 7, "dev", "hi"), s.Opened("o/r", 8, "dev", "t", "b"), s.Labeled("o/r", 8, "dev", "x"), s.ReviewComment(pull, "dev", "hm")} {
		s.Deliver(t, hook.URL, d)
		if problem != nil {
			t.Fatalf("%s: %v", d.Event, problem)
		}
	}
}
