package flow

import (
	"context"
	"errors"
	"fmt"

	"reasonix/internal/chat"
	"reasonix/internal/task"
	"reasonix/internal/workspace"
)

// publish pushes the branch and opens the pull request: the intent is stored first, and every step is looked up before it is
// made again, so that a crash between two steps repeats neither.
func (a *attempt) publish(ctx context.Context, hv workspace.Harvest) (string, error) {
	want := a.t.Spec.Publish
	if want == nil || hv.Empty() {
		return "", nil
	}
	pub := task.Published{Branch: a.t.Branch, HeadSHA: hv.Head}
	if err := a.Ledger.Publish(ctx, a.held, pub); err != nil {
		return "", fmt.Errorf("store the intent: %w", err)
	}
	if err := a.bench.Push(ctx, hv, a.t.Branch); err != nil {
		return "", fmt.Errorf("push branch %s: %w", a.t.Branch, err)
	}
	pub.Pushed = true
	if want.PR {
		ref, err := a.openPR(ctx, hv)
		if err != nil {
			return "", err
		}
		pub.PR = ref
	}
	pub.Done = true
	if err := a.Ledger.Publish(ctx, a.held, pub); err != nil {
		return "", fmt.Errorf("store the outcome: %w", err)
	}
	return pub.PR.URL, nil
}

func (a *attempt) openPR(ctx context.Context, hv workspace.Harvest) (chat.Ref, error) {
	door, ok := a.Doors[a.t.Spec.Publish.Connection]
	if !ok {
		return chat.Ref{}, fmt.Errorf("connection %q of the route is not open: add it under [[connections]]", a.t.Spec.Publish.Connection)
	}
	publisher, ok := door.(chat.Publisher)
	if !ok {
		return chat.Ref{}, errors.New("this connection cannot open pull requests: set publish.connection to a github connection")
	}
	pr := chat.PullRequest{
		Key: "pr:" + a.t.ID, Repo: a.t.Spec.RepoSlug, Branch: a.t.Branch, Base: a.t.Spec.Base, Title: a.t.Title,
		Body: prBody(a.t), Draft: a.t.Spec.Publish.Draft, HeadSHA: hv.Head,
	}
	if a.t.Target != nil {
		pr.IssueNumber = a.t.Target.Number
	}
	if ref, found, err := publisher.FindPullRequest(ctx, pr); err != nil || found {
		return ref, err
	}
	ref, err := publisher.OpenPullRequest(ctx, pr)
	if err != nil {
		return chat.Ref{}, fmt.Errorf("open pull request: %w", err)
	}
	return ref, nil
}

func prBody(t task.Task) string {
	body := fmt.Sprintf("Asked for by %s.\n\n> %s\n\nTask `%s`.", t.Spec.Asks.Requester, t.Title, t.ID)
	if t.Target != nil && !t.Target.IsPR {
		body += fmt.Sprintf("\n\nRefs #%d.", t.Target.Number)
	}
	return body
}
