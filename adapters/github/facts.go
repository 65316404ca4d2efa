package github

import (
	"context"

	"github.com/google/go-github/v66/github"

	"reasonix/internal/chat"
)

// facts are what GitHub itself says about a person and a pull request; nothing of it is taken from the text.
type facts struct {
	access string
	target *chat.Target
}

func (in *inbound) facts(ctx context.Context, s subject) (facts, error) {
	access, err := in.accessOf(ctx, s.repo, s.author.GetLogin())
	if err != nil {
		return facts{}, err
	}
	target, err := s.target(ctx)
	return facts{access: access, target: target}, err
}

// accessOf asks the permission endpoint: the author_association of a payload is no measure, it calls maintainers with a
// private membership CONTRIBUTOR. What cannot be learned for good counts as no access; a passing fault is an error, so that
// the delivery can be repeated.
func (in *inbound) accessOf(ctx context.Context, repo, login string) (string, error) {
	owner, name, err := splitRepo(repo)
	if err != nil {
		return "", nil
	}
	gh, err := in.access.client(ctx, repo)
	if err == nil {
		var level *github.RepositoryPermissionLevel
		level, _, err = gh.Repositories.GetPermissionLevel(ctx, owner, name, login)
		err = lookError("read the permission of "+login, err)
		if err == nil {
			return levelOf(level), nil
		}
	}
	if passing(err) {
		return "", err
	}
	in.host.Log.Warn("permission could not be read; it counts as none", "connection", in.name, "repo", repo, "login", login, "err", err)
	in.ignored.Count("permission unreadable")
	return "", nil
}

func levelOf(l *github.RepositoryPermissionLevel) string {
	if l.GetRoleName() == "maintain" {
		return "maintain"
	}
	switch p := l.GetPermission(); p {
	case "admin", "write", "read", "none":
		return p
	}
	return ""
}

// targetOf pins the head of a pull request as it is now.
func (in *inbound) targetOf(ctx context.Context, repo string, issue *github.Issue) (*chat.Target, error) {
	if !issue.IsPullRequest() {
		return &chat.Target{Number: issue.GetNumber()}, nil
	}
	unknown := &chat.Target{Number: issue.GetNumber(), IsPR: true, Fork: true}
	owner, name, err := splitRepo(repo)
	if err != nil {
		return unknown, nil
	}
	gh, err := in.access.client(ctx, repo)
	if err == nil {
		var pr *github.PullRequest
		pr, _, err = gh.PullRequests.Get(ctx, owner, name, issue.GetNumber())
		err = lookError("read the pull request", err)
		if err == nil {
			return pullTarget(pr), nil
		}
	}
	if passing(err) {
		return nil, err
	}
	in.host.Log.Warn("pull request could not be read; its head counts as foreign", "connection", in.name, "repo", repo, "number", issue.GetNumber(), "err", err)
	return unknown, nil
}

// pullTarget reads a pull request; the head's repository is null after a fork was deleted.
func pullTarget(pr *github.PullRequest) *chat.Target {
	head, base := pr.GetHead().GetRepo().GetFullName(), pr.GetBase().GetRepo().GetFullName()
	return &chat.Target{Number: pr.GetNumber(), IsPR: true, HeadSHA: pr.GetHead().GetSHA(), BaseRef: pr.GetBase().GetRef(), Fork: head == "" || head != base}
}
