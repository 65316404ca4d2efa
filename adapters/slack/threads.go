package slack

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"reasonix/internal/chat"
)

const (
	commandPrefix = "cmd-"                  // marks the thread of a slash command, which has no message of its own
	metaType      = "reasonix_post"         // metadata.event_type of the host's posts
	metaKey       = "key"                   // digest of the post's idempotency key
	metaThread    = "thread"                // on a root post: the slash command's conversation
	bookSize      = 4096                    // threads remembered; past that the book starts anew
	lookupLimit   = 1200 * time.Millisecond // for a look at a thread's root within Slack's 3 s
	rootWindow    = time.Hour               // a command's first post is looked for this long after the command
)

// threadBook remembers which message is the root of a command's conversation, in both directions.
type threadBook struct {
	mu    sync.Mutex
	roots map[string]string // channel + conversation → ts of its root
	names map[string]string // channel + ts → conversation
	make  sync.Mutex        // held while a root is being made, so that two posts do not make two
}

func (b *threadBook) put(channel, name, ts string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.roots == nil || len(b.names) >= bookSize {
		b.roots, b.names = map[string]string{}, map[string]string{}
	}
	b.names[channel+"\x1f"+ts] = name
	if strings.HasPrefix(name, commandPrefix) {
		b.roots[channel+"\x1f"+name] = ts
	}
}

func (b *threadBook) name(channel, ts string) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, ok := b.names[channel+"\x1f"+ts]
	return n, ok
}

func (b *threadBook) root(channel, name string) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ts, ok := b.roots[channel+"\x1f"+name]
	return ts, ok
}

// commandThread names the conversation of a slash command: when it was, and a digest of its trigger.
func commandThread(stamp, trigger string) string {
	return commandPrefix + stamp + "-" + chat.KeyDigest(trigger)[:16]
}

// conversation names the thread that a message belongs to. A thread below one of the host's own posts may be the
// conversation of a slash command; the post's metadata says so.
func (in *inbound) conversation(ctx context.Context, m message, self identity) (string, error) {
	if m.ThreadTS == "" || m.ThreadTS == m.TS {
		return m.TS, nil
	}
	if m.ParentUserID != "" && m.ParentUserID != self.UserID {
		return m.ThreadTS, nil
	}
	return in.nameOf(ctx, m.Channel, m.ThreadTS)
}

// nameOf looks at a thread's root. What Slack will never show is an ordinary thread; a passing fault is an error.
func (d *Door) nameOf(ctx context.Context, channel, ts string) (string, error) {
	if n, ok := d.threads.name(channel, ts); ok {
		return n, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	if _, err := d.identity(ctx); err != nil {
		return "", err
	}
	msgs, _, _, err := d.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
		ChannelID: channel, Timestamp: ts, Limit: 1, IncludeAllMetadata: true})
	var said slack.SlackErrorResponse
	if errors.As(err, &said) && !passing[said.Err] {
		return ts, nil
	}
	if err != nil {
		return "", fmt.Errorf("look at the root of a thread: %w", err)
	}
	name := ts
	if len(msgs) > 0 && msgs[0].Timestamp == ts && d.isOwn(msgs[0]) {
		if n, ok := metaOf(msgs[0])[metaThread].(string); ok && strings.HasPrefix(n, commandPrefix) {
			name = n
		}
	}
	d.threads.put(channel, name, ts)
	return name, nil
}

// pressThread names the conversation of a button; a press is bound to its ask, so a failed look does not stop it.
func (in *inbound) pressThread(ctx context.Context, v buttonValue) string {
	if v.Thread == "" {
		return ""
	}
	name, err := in.nameOf(ctx, v.Channel, v.Thread)
	if err != nil {
		return v.Thread
	}
	return name
}

// threadTS finds the message to post below; "" means the channel itself or a command's conversation that has no root yet.
func (d *Door) threadTS(ctx context.Context, p chat.Place) (string, error) {
	if !strings.HasPrefix(p.Thread, commandPrefix) {
		return p.Thread, nil
	}
	if ts, ok := d.threads.root(p.Channel, p.Thread); ok {
		return ts, nil
	}
	if _, err := d.identity(ctx); err != nil {
		return "", lookError("find the thread of a command", err)
	}
	stamp, _, _ := strings.Cut(strings.TrimPrefix(p.Thread, commandPrefix), "-")
	sec, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return "", fmt.Errorf("find thread %q: %w", p.Thread, chat.ErrGone)
	}
	from := time.Unix(sec, 0)
	found, err := d.scan(ctx, p.Channel, "", from.Add(-time.Minute), from.Add(rootWindow), func(m slack.Message) bool {
		return metaOf(m)[metaThread] == p.Thread
	})
	if err != nil || found == nil {
		return "", err
	}
	d.threads.put(p.Channel, p.Thread, found.Timestamp)
	return found.Timestamp, nil
}

const (
	scanPage  = 200
	scanPages = 10 // 2,000 messages; a post is looked for soon after it was made
)

// scan reads a thread, or the channel when thread is empty, and returns the host's oldest post that matches.
func (d *Door) scan(ctx context.Context, channel, thread string, from, to time.Time, match func(slack.Message) bool) (*slack.Message, error) {
	oldest, latest := slackTime(from), slackTime(to)
	cursor := ""
	var found *slack.Message
	for range scanPages {
		msgs, next, err := d.page(ctx, channel, thread, oldest, latest, cursor)
		if err != nil {
			return nil, err
		}
		for i := range msgs {
			if d.isOwn(msgs[i]) && match(msgs[i]) && (found == nil || msgs[i].Timestamp < found.Timestamp) {
				found = &msgs[i]
			}
		}
		if next == "" {
			return found, nil
		}
		cursor = next
	}
	return found, nil
}

func (d *Door) page(ctx context.Context, channel, thread, oldest, latest, cursor string) ([]slack.Message, string, error) {
	if thread != "" {
		msgs, _, next, err := d.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{ChannelID: channel,
			Timestamp: thread, Oldest: oldest, Latest: latest, Cursor: cursor, Limit: scanPage, Inclusive: true, IncludeAllMetadata: true})
		return msgs, next, lookError("read a thread", err)
	}
	r, err := d.api.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{ChannelID: channel,
		Oldest: oldest, Latest: latest, Cursor: cursor, Limit: scanPage, Inclusive: true, IncludeAllMetadata: true})
	if err != nil {
		return nil, "", lookError("read a channel", err)
	}
	return r.Messages, r.ResponseMetaData.NextCursor, nil
}

func slackTime(t time.Time) string {
	return fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/1000)
}

// isOwn guards lookups against metadata that another app copied.
func (d *Door) isOwn(m slack.Message) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.self == nil {
		return false
	}
	return m.User == d.self.UserID || m.BotID != "" && m.BotID == d.self.BotID
}

func metaOf(m slack.Message) map[string]any {
	if m.Metadata.EventType != metaType {
		return nil
	}
	return m.Metadata.EventPayload
}
