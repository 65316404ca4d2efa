package github

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/go-github/v66/github"

	"reasonix/internal/chat"
)

func (in *inbound) issueComment(ctx context.Context, p *github.IssueCommentEvent) (func(context.Context), error) {
	issue, c := p.GetIssue(), p.GetComment()
	if issue == nil || c == nil {
		return nil, &refusal{http.StatusBadRequest, "payload lacks its issue or comment"}
	}
	s := subject{repo: p.GetRepo().GetFullName(), number: issue.GetNumber(), url: c.GetHTMLURL(), author: c.GetUser(), sender: p.GetSender(), body: c.GetBody(),
		key: "comment:" + strconv.FormatInt(c.GetID(), 10), reactTo: reactable{comment: c.GetID()},
		context: []chat.Source{issueSource(issue)}}
	s.target = func(ctx context.Context) (*chat.Target, error) { return in.targetOf(ctx, s.repo, issue) }
	switch p.GetAction() {
	case "created":
		return in.take(ctx, s)
	case "edited":
		return in.edited(ctx, s)
	}
	return nil, in.ignore("comment " + clip(p.GetAction(), 20))
}

func (in *inbound) reviewComment(ctx context.Context, p *github.PullRequestReviewCommentEvent) (func(context.Context), error) {
	pr, c := p.GetPullRequest(), p.GetComment()
	if pr == nil || c == nil {
		return nil, &refusal{http.StatusBadRequest, "payload lacks its pull request or comment"}
	}
	s := subject{repo: p.GetRepo().GetFullName(), number: pr.GetNumber(), url: c.GetHTMLURL(), author: c.GetUser(), sender: p.GetSender(), body: c.GetBody(),
		key: "review:" + strconv.FormatInt(c.GetID(), 10), reactTo: reactable{review: c.GetID()}, target: fixed(pullTarget(pr)),
		context: []chat.Source{pullSource(pr), {Title: fmt.Sprintf("commented lines of %s:%d", c.GetPath(), c.GetLine()),
			Author: pr.GetUser().GetLogin(), Text: c.GetDiffHunk(), URL: c.GetHTMLURL()}}}
	switch p.GetAction() {
	case "created":
		return in.take(ctx, s)
	case "edited":
		return in.edited(ctx, s)
	}
	return nil, in.ignore("review comment " + clip(p.GetAction(), 20))
}

func (in *inbound) issue(ctx context.Context, p *github.IssuesEvent) (func(context.Context), error) {
	i := p.GetIssue()
	if i == nil {
		return nil, &refusal{http.StatusBadRequest, "payload lacks its issue"}
	}
	s := subject{repo: p.GetRepo().GetFullName(), number: i.GetNumber(), url: i.GetHTMLURL(), author: i.GetUser(), sender: p.GetSender(), body: i.GetBody(),
		key: "issue:" + strconv.FormatInt(i.GetID(), 10), reactTo: reactable{issue: i.GetNumber()}, context: []chat.Source{issueSource(i)},
		target: fixed(&chat.Target{Number: i.GetNumber()})}
	switch p.GetAction() {
	case "opened":
		return in.take(ctx, s)
	case "labeled":
		s.key += ":" + i.GetUpdatedAt().UTC().Format("20060102T150405Z")
		return in.labeled(ctx, s, p.GetLabel().GetName())
	}
	return nil, in.ignore("issue " + clip(p.GetAction(), 20))
}

func (in *inbound) pullRequest(ctx context.Context, p *github.PullRequestEvent) (func(context.Context), error) {
	pr := p.GetPullRequest()
	if pr == nil {
		return nil, &refusal{http.StatusBadRequest, "payload lacks its pull request"}
	}
	s := subject{repo: p.GetRepo().GetFullName(), number: pr.GetNumber(), url: pr.GetHTMLURL(), author: pr.GetUser(), sender: p.GetSender(), body: pr.GetBody(),
		key: "pull:" + strconv.FormatInt(pr.GetID(), 10), reactTo: reactable{issue: pr.GetNumber()}, context: []chat.Source{pullSource(pr)},
		target: fixed(pullTarget(pr))}
	switch p.GetAction() {
	case "opened":
		return in.take(ctx, s)
	case "labeled":
		s.key += ":" + pr.GetUpdatedAt().UTC().Format("20060102T150405Z")
		return in.labeled(ctx, s, p.GetLabel().GetName())
	}
	return nil, in.ignore("pull request " + clip(p.GetAction(), 20))
}

func fixed(t *chat.Target) func(context.Context) (*chat.Target, error) {
	return func(context.Context) (*chat.Target, error) { return t, nil }
}

func issueSource(i *github.Issue) chat.Source {
	kind := "issue"
	if i.IsPullRequest() {
		kind = "pull request"
	}
	return chat.Source{Title: fmt.Sprintf("%s #%d: %s", kind, i.GetNumber(), i.GetTitle()), Author: i.GetUser().GetLogin(), Text: i.GetBody(), URL: i.GetHTMLURL()}
}

func pullSource(pr *github.PullRequest) chat.Source {
	return chat.Source{Title: fmt.Sprintf("pull request #%d: %s", pr.GetNumber(), pr.GetTitle()), Author: pr.GetUser().GetLogin(), Text: pr.GetBody(), URL: pr.GetHTMLURL()}
}

// edited has no effect, because what was approved or asked must not change under people; where the new text holds a
// command, its author sees a reaction.
func (in *inbound) edited(ctx context.Context, s subject) (func(context.Context), error) {
	reason, err := in.unheard(ctx, s)
	if err != nil {
		return nil, err
	}
	bot, err := in.botLogin(ctx)
	if err != nil {
		return nil, err
	}
	if reason != "" || len(commands(s.body, bot)) == 0 {
		return nil, in.ignore("edited comment")
	}
	_ = in.ignore("edited command")
	return func(ctx context.Context) { in.react(ctx, s, "confused") }, nil
}

// labeled takes a label as a command by the person who put it there; the issue's text only informs.
func (in *inbound) labeled(ctx context.Context, s subject, label string) (func(context.Context), error) {
	s.author = s.sender
	if !in.workLabel(label) {
		return nil, in.ignore("label without meaning here")
	}
	if reason, err := in.unheard(ctx, s); err != nil || reason != "" {
		return nil, joined(err, in.ignoreIf(reason))
	}
	facts, err := in.facts(ctx, s)
	if err != nil {
		return nil, err
	}
	e := in.event(s, facts)
	e.Key += ":label:" + label
	e.On, e.Command, e.Text = "github.label", label, fmt.Sprintf("Work on #%d as it describes.", s.number)
	out, err := in.accept(ctx, e)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) { in.tell(ctx, s, []saying{{event: e, outcome: out}}) }, nil
}

func (in *inbound) workLabel(label string) bool {
	name := strings.ToLower(label)
	if name == "reasonix" || strings.HasPrefix(name, "reasonix:") {
		return true
	}
	for _, l := range in.cfg.Labels {
		if strings.EqualFold(l, label) {
			return true
		}
	}
	return false
}

func joined(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

func (in *inbound) takeCommand(ctx context.Context, s subject, f facts, i int, c command) (saying, error) {
	if c.odd != "" {
		_ = in.ignore(c.odd)
		return saying{odd: true}, nil
	}
	e := in.event(s, f)
	e.Key += ":" + strconv.Itoa(i)
	e.On, e.Verb, e.Command, e.Text, e.Press = "github.comment", c.verb, c.words, c.text, c.press
	if e.Verb == chat.VerbWork && e.Text == "" && e.Command != ownCommand {
		e.Text = fmt.Sprintf("Work on #%d as it describes.", s.number)
	}
	out, err := in.accept(ctx, e)
	return saying{event: e, outcome: out}, err
}

func (in *inbound) event(s subject, f facts) chat.Event {
	return chat.Event{
		Key:   strings.Join([]string{"github", in.name, s.repo, s.key}, ":"),
		Actor: chat.Actor{Kind: "github", ID: s.author.GetLogin(), Name: s.author.GetLogin(), Access: f.access},
		Place: chat.Place{Connection: in.name, Kind: "github", Channel: s.repo, Thread: strconv.Itoa(s.number), URL: s.url},
		Repo:  s.repo, Target: f.target, Context: s.context, Received: in.now(),
	}
}

func (in *inbound) accept(ctx context.Context, e chat.Event) (chat.Outcome, error) {
	return in.host.Sink.Accept(ctx, e)
}
