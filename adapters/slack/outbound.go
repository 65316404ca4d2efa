package slack

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"reasonix/internal/chat"
)

// Send makes or edits one post. Files go up first, so that a button is never live before what it approves can be read whole.
func (d *Door) Send(ctx context.Context, p chat.Post) (chat.Ref, error) {
	out, err := render(p.Message)
	if err != nil {
		return chat.Ref{}, fmt.Errorf("render slack post: %w", err)
	}
	if p.Edits != nil {
		return d.edit(ctx, p, out)
	}
	thread, err := d.threadTS(ctx, p.Place)
	if err != nil {
		return chat.Ref{}, err
	}
	if thread == "" && strings.HasPrefix(p.Place.Thread, commandPrefix) {
		d.threads.make.Lock()
		defer d.threads.make.Unlock()
		if thread, err = d.threadTS(ctx, p.Place); err != nil {
			return chat.Ref{}, err
		}
	}
	if err := d.upload(ctx, p.Key, p.Place.Channel, thread, out.files); err != nil {
		return chat.Ref{}, err
	}
	return d.post(ctx, p, thread, out)
}

func (d *Door) post(ctx context.Context, p chat.Post, thread string, out rendered) (chat.Ref, error) {
	isRoot := thread == "" && strings.HasPrefix(p.Place.Thread, commandPrefix)
	opts := append(out.options(), metadata(p, isRoot))
	if thread != "" {
		opts = append(opts, slack.MsgOptionTS(thread))
	}
	channel, ts, err := d.api.PostMessageContext(ctx, p.Place.Channel, opts...)
	if err != nil {
		return chat.Ref{}, sendError("post to slack", err, false)
	}
	if isRoot {
		d.threads.put(channel, p.Place.Thread, ts)
	}
	return d.ref(p, channel, ts), nil
}

// metadata carries the digest of the key and, on the root of a command's conversation, its name; people can read it.
func metadata(p chat.Post, isRoot bool) slack.MsgOption {
	payload := map[string]any{metaKey: chat.KeyDigest(p.Key)}
	if isRoot {
		payload[metaThread] = p.Place.Thread
	}
	return slack.MsgOptionMetadata(slack.SlackMetadata{EventType: metaType, EventPayload: payload})
}

// edit replaces a post's content. Files that the new content needs go into the thread of the post.
func (d *Door) edit(ctx context.Context, p chat.Post, out rendered) (chat.Ref, error) {
	thread, err := d.threadTS(ctx, p.Place)
	if err != nil {
		return chat.Ref{}, err
	}
	if thread == "" {
		thread = p.Edits.ID
	}
	// an edit shows how the post stands now; what an ask showed whole went up with the ask itself
	if !p.Message.Settled {
		if err := d.upload(ctx, p.Key, p.Edits.Channel, thread, out.files); err != nil {
			return chat.Ref{}, err
		}
	}
	isRoot := strings.HasPrefix(p.Place.Thread, commandPrefix) && thread == p.Edits.ID
	opts := append(out.options(), metadata(p, isRoot))
	if _, _, _, err := d.api.UpdateMessageContext(ctx, p.Edits.Channel, p.Edits.ID, opts...); err != nil {
		return chat.Ref{}, sendError("edit a slack post", err, true)
	}
	return *p.Edits, nil
}

func (d *Door) ref(p chat.Post, channel, ts string) chat.Ref {
	return chat.Ref{Connection: d.name, Channel: channel, Thread: p.Place.Thread, ID: ts,
		URL: "https://slack.com/archives/" + channel + "/p" + strings.ReplaceAll(ts, ".", "")}
}

// Lookup finds a post of the bot by the digest of its key, which its metadata carries.
func (d *Door) Lookup(ctx context.Context, p chat.Post) (chat.Ref, bool, error) {
	if p.Edits != nil {
		return *p.Edits, false, nil // an edit may be repeated
	}
	if _, err := d.identity(ctx); err != nil {
		return chat.Ref{}, false, lookError("look up a slack post", err)
	}
	thread, err := d.threadTS(ctx, p.Place)
	if err != nil {
		return chat.Ref{}, false, err
	}
	want := chat.KeyDigest(p.Key)
	// the clocks of the host and of Slack may differ
	m, err := d.scan(ctx, p.Place.Channel, thread, p.Created.Add(-10*time.Minute), d.now().Add(10*time.Minute),
		func(m slack.Message) bool { return metaOf(m)[metaKey] == want })
	if err != nil || m == nil {
		return chat.Ref{}, false, err
	}
	return d.ref(p, p.Place.Channel, m.Timestamp), true, nil
}
