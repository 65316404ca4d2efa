package github

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"reasonix/internal/chat"
)

// Send makes or edits one comment. Text that does not fit goes into further comments before it, so that what is asked is
// never cut; those carry marks of their own and are not repeated by a retry.
func (d *Door) Send(ctx context.Context, p chat.Post) (chat.Ref, error) {
	out, err := render(p.Message)
	if err != nil {
		return chat.Ref{}, fmt.Errorf("render github comment: %w", err)
	}
	at, err := d.at(ctx, p.Place)
	if err != nil {
		return chat.Ref{}, err
	}
	if p.Edits != nil {
		return d.edit(ctx, at, p, out)
	}
	if err := d.sendParts(ctx, at, p, out.parts); err != nil {
		return chat.Ref{}, err
	}
	c, err := at.comment(ctx, out.main+marker(p.Key))
	if err != nil {
		return chat.Ref{}, sendError("comment on github", err, false)
	}
	return d.ref(p, c), nil
}

// location is an issue or pull request with the client that may write there.
type location struct {
	gh          *github.Client
	owner, name string
	number      int
}

func (d *Door) at(ctx context.Context, p chat.Place) (location, error) {
	owner, name, err := splitRepo(p.Channel)
	if err != nil {
		return location{}, fmt.Errorf("%w: %w", chat.ErrGone, err)
	}
	number, err := strconv.Atoi(p.Thread)
	if err != nil || number <= 0 {
		return location{}, fmt.Errorf("%w: %q is no number of an issue", chat.ErrGone, p.Thread)
	}
	gh, err := d.access.client(ctx, p.Channel)
	return location{gh, owner, name, number}, err
}

func (l location) comment(ctx context.Context, body string) (*github.IssueComment, error) {
	c, _, err := l.gh.Issues.CreateComment(ctx, l.owner, l.name, l.number, &github.IssueComment{Body: &body})
	return c, err
}

// edit changes the comment; the parts of an ask went before it and stay when it is settled.
func (d *Door) edit(ctx context.Context, at location, p chat.Post, out rendered) (chat.Ref, error) {
	id, err := strconv.ParseInt(p.Edits.ID, 10, 64)
	if err != nil {
		return chat.Ref{}, fmt.Errorf("edit a github comment: %w: %q is no id", chat.ErrGone, p.Edits.ID)
	}
	if !p.Message.Settled {
		if err := d.sendParts(ctx, at, p, out.parts); err != nil {
			return chat.Ref{}, err
		}
	}
	body := out.main + marker(p.Key)
	if _, _, err := at.gh.Issues.EditComment(ctx, at.owner, at.name, id, &github.IssueComment{Body: &body}); err != nil {
		return chat.Ref{}, sendError("edit a github comment", err, true)
	}
	return *p.Edits, nil
}

// sendParts posts what does not fit. A part whose fate is unknown asks for another try, which looks it up first.
func (d *Door) sendParts(ctx context.Context, at location, p chat.Post, parts []string) error {
	if len(parts) == 0 {
		return nil
	}
	there, err := d.marks(ctx, at, p.Created)
	if err != nil {
		return err
	}
	for i, part := range parts {
		key := fmt.Sprintf("%s/part %d", p.Key, i+1)
		if there[chat.KeyDigest(key)] != nil {
			continue
		}
		_, err := at.comment(ctx, part+marker(key))
		if err = sendError("comment on github", err, false); errors.Is(err, chat.ErrUncertain) {
			return &chat.RetryError{After: 5 * time.Second, Err: errors.Unwrap(err)}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *Door) ref(p chat.Post, c *github.IssueComment) chat.Ref {
	return chat.Ref{Connection: d.name, Channel: p.Place.Channel, Thread: p.Place.Thread, ID: strconv.FormatInt(c.GetID(), 10), URL: c.GetHTMLURL()}
}

const (
	markStart = "\n\n<!-- reasonix:key="
	markEnd   = " -->"
	clockSlip = 10 * time.Minute // the clocks of the host and of GitHub may differ
	pageSize  = 100
	maxPages  = 20
)

// marker is what a post is found by again; it stands at the very end, where no text of the model can stand.
func marker(key string) string { return markStart + chat.KeyDigest(key) + markEnd }

func markOf(body string) string {
	i := strings.LastIndex(body, markStart)
	if i < 0 || !strings.HasSuffix(body, markEnd) {
		return ""
	}
	return body[i+len(markStart) : len(body)-len(markEnd)]
}

// marks lists the bot's own comments since a time, by their mark; a mark in another's comment counts for nothing.
func (d *Door) marks(ctx context.Context, at location, since time.Time) (map[string]*github.IssueComment, error) {
	bot, err := d.botLogin(ctx)
	if err != nil {
		return nil, err
	}
	from := since.Add(-clockSlip)
	opts := &github.IssueListCommentsOptions{Since: &from, ListOptions: github.ListOptions{PerPage: pageSize, Page: 1}}
	found := map[string]*github.IssueComment{}
	for range maxPages {
		list, _, err := at.gh.Issues.ListComments(ctx, at.owner, at.name, at.number, opts)
		if err != nil {
			return nil, lookError("read the comments", err)
		}
		for _, c := range list {
			if m := markOf(strings.TrimSpace(c.GetBody())); m != "" && strings.EqualFold(c.GetUser().GetLogin(), bot) {
				found[m] = c
			}
		}
		if len(list) < pageSize {
			break
		}
		opts.Page++
	}
	return found, nil
}

// Lookup finds a comment of the bot by the mark of its key.
func (d *Door) Lookup(ctx context.Context, p chat.Post) (chat.Ref, bool, error) {
	if p.Edits != nil {
		return *p.Edits, false, nil // an edit may be repeated
	}
	at, err := d.at(ctx, p.Place)
	if err != nil {
		return chat.Ref{}, false, err
	}
	there, err := d.marks(ctx, at, p.Created)
	if err != nil {
		return chat.Ref{}, false, err
	}
	c := there[chat.KeyDigest(p.Key)]
	if c == nil {
		return chat.Ref{}, false, nil
	}
	return d.ref(p, c), true, nil
}
