package flow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"reasonix/internal/chat"
)

const (
	deliverHold  = 60 * time.Second // a post that its sender took and never settled comes back after this
	deliverTries = 20               // then it is dead and visible
	deliverMax   = 15 * time.Minute // longest pause between two tries
)

// deliver brings posts to their platforms, one sender per connection so that a slow one holds nobody up.
func (h *Host) deliver(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	bells := make(map[string]chan struct{}, len(h.Doors))
	for name, door := range h.Doors {
		bell := make(chan struct{}, 1)
		bells[name] = bell
		g.Go(func() error { return h.deliverTo(ctx, name, door, bell) })
	}
	g.Go(func() error { return h.ringBells(ctx, bells) })
	return quiet(ctx, g.Wait())
}

func (h *Host) ringBells(ctx context.Context, bells map[string]chan struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.Ledger.Woken():
		}
		for _, b := range bells {
			select {
			case b <- struct{}{}:
			default:
			}
		}
	}
}

func (h *Host) deliverTo(ctx context.Context, name string, door chat.Door, bell <-chan struct{}) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		due, err := h.Ledger.Due(ctx, []string{name}, 10, deliverHold)
		if err != nil && ctx.Err() == nil {
			h.Log.Warn("outbox cannot be read; tried again", "connection", name, "error", err)
		}
		for _, q := range due {
			if err := h.send(ctx, door, q); err != nil && ctx.Err() == nil {
				h.Log.Warn("post could not be settled; it comes back", "post", q.Key, "error", err)
			}
		}
		if len(due) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-bell:
		case <-tick.C:
		}
	}
}

// send makes one post, or finds that it was made before, and stores what became of it.
func (h *Host) send(ctx context.Context, door chat.Door, q Queued) error {
	post := chat.Post{Key: q.Key, Place: q.Place, Message: q.Message, Edits: q.EditRef, Created: q.Created}
	if q.Uncertain && q.EditRef == nil { // an edit may be repeated, a new post may not
		if !door.Capabilities().Lookup {
			return h.Ledger.Dead(ctx, q.Key, "unknown whether it was posted, and this platform cannot be asked: "+q.Cause)
		}
		ref, found, err := door.Lookup(ctx, post)
		if err != nil {
			return h.delay(ctx, q, err, true)
		}
		if found {
			return h.Ledger.Sent(ctx, q.Key, ref)
		}
	}
	ref, err := door.Send(ctx, post)
	switch {
	case err == nil:
		return h.Ledger.Sent(context.WithoutCancel(ctx), q.Key, ref)
	case ctx.Err() != nil:
		return err // the hold runs out and the post comes back as uncertain
	case errors.Is(err, chat.ErrGone):
		return h.Ledger.Dead(ctx, q.Key, err.Error())
	case q.Tries+1 >= deliverTries:
		return h.Ledger.Dead(ctx, q.Key, fmt.Sprintf("gave up after %d tries: %v", q.Tries+1, err))
	}
	return h.delay(ctx, q, err, errors.Is(err, chat.ErrUncertain))
}

func (h *Host) delay(ctx context.Context, q Queued, cause error, uncertain bool) error {
	pause := min(time.Second<<min(q.Tries, 10), deliverMax)
	var retry *chat.RetryError
	if errors.As(cause, &retry) {
		pause = max(retry.After, 100*time.Millisecond)
	}
	return h.Ledger.Delay(ctx, q.Key, h.Now().Add(pause), cause.Error(), uncertain)
}

// feed carries live happenings to the surfaces of this process; a slow reader loses some and finds the durable ones in the transcript.
type feed struct {
	mu   sync.Mutex
	subs map[string]map[chan chat.FeedItem]struct{}
}

func newFeed() *feed { return &feed{subs: map[string]map[chan chat.FeedItem]struct{}{}} }

func (f *feed) subscribe(taskID string) (<-chan chat.FeedItem, func()) {
	ch := make(chan chat.FeedItem, 256)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subs[taskID] == nil {
		f.subs[taskID] = map[chan chat.FeedItem]struct{}{}
	}
	f.subs[taskID][ch] = struct{}{}
	return ch, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subs[taskID], ch)
		if len(f.subs[taskID]) == 0 {
			delete(f.subs, taskID)
		}
	}
}

func (f *feed) publish(taskID string, item chat.FeedItem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ch := range f.subs[taskID] {
		select {
		case ch <- item:
		default:
		}
	}
}
