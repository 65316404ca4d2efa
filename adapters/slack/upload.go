package slack

import (
	"context"
	"sync"

	"github.com/slack-go/slack"

	"reasonix/internal/chat"
)

// attachment is verbatim text that goes along as a file.
type attachment struct{ name, text string }

// uploadBook remembers the files of posts that were not finished, so that a retry does not upload them again. After a crash
// a file may stand in the thread twice; the post itself never does.
type uploadBook struct {
	mu   sync.Mutex
	done map[string]bool
}

func (b *uploadBook) has(k string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done[k]
}

func (b *uploadBook) add(k string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done == nil || len(b.done) >= bookSize {
		b.done = map[string]bool{}
	}
	b.done[k] = true
}

// upload puts the files into the thread and returns only when Slack completed them.
func (d *Door) upload(ctx context.Context, key, channel, thread string, files []attachment) error {
	for _, f := range files {
		mark := chat.KeyDigest(key + "\x1f" + f.name + "\x1f" + f.text)
		if d.sent.has(mark) {
			continue
		}
		_, err := d.api.UploadFileContext(ctx, slack.UploadFileParameters{Filename: f.name, Title: f.name, FileSize: len(f.text),
			Content: f.text, Channel: channel, ThreadTimestamp: thread})
		if err != nil {
			// another try is harmless: a file that is there twice misleads nobody, a missing one would
			return sendError("upload a file to slack", err, true)
		}
		d.sent.add(mark)
	}
	return nil
}
