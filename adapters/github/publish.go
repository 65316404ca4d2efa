package github

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/go-github/v66/github"

	"reasonix/internal/chat"
)

// The door opens pull requests and gives the host access for clone and push.
var (
	_ chat.Publisher   = (*Door)(nil)
	_ chat.Credentials = (*Door)(nil)
)

// GitCredentials returns a user and a token for git over HTTPS. An App's token is narrowed to this repository and lives one
// hour, so it is asked for anew before each use.
func (d *Door) GitCredentials(ctx context.Context, repo string) (user, secret string, err error) {
	if _, _, err := splitRepo(repo); err != nil {
		return "", "", err
	}
	token, err := d.access.secret(ctx, repo)
	if err != nil {
		return "", "", err
	}
	return "x-access-token", token, nil
}

// FindPullRequest finds the open pull request of the branch, or the one that carries the key's mark, open or not.
func (d *Door) FindPullRequest(ctx context.Context, pr chat.PullRequest) (chat.Ref, bool, error) {
	owner, name, err := splitRepo(pr.Repo)
	if err != nil {
		return chat.Ref{}, false, err
	}
	gh, err := d.access.client(ctx, pr.Repo)
	if err != nil {
		return chat.Ref{}, false, err
	}
	list, _, err := gh.PullRequests.List(ctx, owner, name, &github.PullRequestListOptions{State: "all", Head: owner + ":" + pr.Branch, Base: pr.Base,
		ListOptions: github.ListOptions{PerPage: pageSize}})
	if err != nil {
		return chat.Ref{}, false, lookError("look for the pull request", err)
	}
	for _, p := range list {
		mine := p.GetHead().GetRef() == pr.Branch && (pr.Base == "" || p.GetBase().GetRef() == pr.Base)
		if mine && (p.GetState() == "open" || markOf(strings.TrimSpace(p.GetBody())) == chat.KeyDigest(pr.Key)) {
			return d.pullRef(pr.Repo, p), true, nil
		}
	}
	return chat.Ref{}, false, nil
}

// OpenPullRequest opens it. One that is there already is found and returned; where drafts are unknown it is opened without.
func (d *Door) OpenPullRequest(ctx context.Context, pr chat.PullRequest) (chat.Ref, error) {
	owner, name, err := splitRepo(pr.Repo)
	if err != nil {
		return chat.Ref{}, err
	}
	gh, err := d.access.client(ctx, pr.Repo)
	if err != nil {
		return chat.Ref{}, err
	}
	body, err := pullBody(pr)
	if err != nil {
		return chat.Ref{}, err
	}
	title := clip(oneLine(pr.Title), 250)
	want := &github.NewPullRequest{Title: &title, Head: &pr.Branch, Base: &pr.Base, Body: &body, Draft: &pr.Draft}
	p, _, err := gh.PullRequests.Create(ctx, owner, name, want)
	if says(err, "draft pull requests are not supported") {
		want.Draft = github.Bool(false)
		p, _, err = gh.PullRequests.Create(ctx, owner, name, want)
	}
	if says(err, "already exists") {
		ref, found, lookErr := d.FindPullRequest(ctx, pr)
		if lookErr != nil || found {
			return ref, lookErr
		}
	}
	if err != nil {
		return chat.Ref{}, sendError("open a pull request", err, false)
	}
	return d.pullRef(pr.Repo, p), nil
}

// pullBody is the text with the key's mark; a text over the limit ends with a note, because a pull request has no parts.
func pullBody(pr chat.PullRequest) (string, error) {
	if pr.Branch == "" || pr.Base == "" || strings.TrimSpace(pr.Title) == "" {
		return "", errors.New("open a pull request: branch, base and title are needed")
	}
	body := prose(chat.Visible(pr.Body))
	if pr.IssueNumber > 0 {
		body = fmt.Sprintf("For #%d.\n\n%s", pr.IssueNumber, body)
	}
	if r := []rune(body); len(r) > commentLimit {
		body = prose(string(r[:commentLimit])) + "\n\n_The rest of this text does not fit here._"
	}
	return body + marker(pr.Key), nil
}

func says(err error, words string) bool {
	var said *github.ErrorResponse
	if !errors.As(err, &said) || said.Response == nil || said.Response.StatusCode != 422 {
		return false
	}
	all := said.Message
	for _, e := range said.Errors {
		all += "\n" + e.Message
	}
	return strings.Contains(strings.ToLower(all), words)
}

func (d *Door) pullRef(repo string, p *github.PullRequest) chat.Ref {
	n := strconv.Itoa(p.GetNumber())
	return chat.Ref{Connection: d.name, Channel: repo, Thread: n, ID: n, URL: p.GetHTMLURL()}
}
