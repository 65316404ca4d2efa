package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"reasonix/internal/provider"
)

const (
	firstWait   = 500 * time.Millisecond
	longestWait = 30 * time.Second
	patience    = 2 * time.Minute // a Retry-After beyond it is the caller's to wait for
	maxError    = 64 << 10        // bytes read of an error answer
	maxText     = 500             // bytes shown of it
)

// clock is time as the retries see it.
type clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// turn streams one turn into out and ends it with ChunkDone or ChunkError. It tries again only while nothing was emitted.
func (p *Provider) turn(ctx context.Context, b body, out chan<- provider.Chunk) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = firstWait, longestWait
	for try := 1; ; try++ {
		e := &emitter{ctx: ctx, out: out}
		err := p.once(ctx, b, e)
		if err == nil {
			return
		}
		var failure *provider.Error
		if !errors.As(err, &failure) || !failure.Temporary || e.emitted || try >= p.opts.tries || failure.RetryAfter > patience || ctx.Err() != nil {
			e.fail(p.final(ctx, err, e.emitted))
			return
		}
		if serr := p.clock.Sleep(ctx, max(wait.NextBackOff(), failure.RetryAfter)); serr != nil {
			e.fail(err)
			return
		}
	}
}

// final marks a stream that broke after something was shown.
func (p *Provider) final(ctx context.Context, err error, emitted bool) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var failure *provider.Error
	if errors.As(err, &failure) && emitted {
		failure.Cut = true
	}
	return err
}

// emitter hands chunks on until the reader goes away.
type emitter struct {
	ctx     context.Context
	out     chan<- provider.Chunk
	emitted bool
}

func (e *emitter) send(c provider.Chunk) error {
	select {
	case e.out <- c:
		e.emitted = true
		return nil
	case <-e.ctx.Done():
		return e.ctx.Err()
	}
}

// fail ends the stream; a reader that is gone does not hold it up.
func (e *emitter) fail(err error) {
	select {
	case e.out <- provider.Chunk{Type: provider.ChunkError, Err: err}:
	case <-e.ctx.Done():
		select {
		case e.out <- provider.Chunk{Type: provider.ChunkError, Err: err}:
		default:
		}
	}
}

// once makes one HTTP call.
func (p *Provider) once(ctx context.Context, b body, e *emitter) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, b.reader())
	if err != nil {
		return p.broken("cannot be asked: "+err.Error(), false)
	}
	req.ContentLength = b.size()
	req.GetBody = func() (io.ReadCloser, error) { return b.reader(), nil }
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	if p.key != "" {
		req.Header.Set("Authorization", "Bearer "+p.key)
	}
	for name, value := range p.opts.headers {
		req.Header.Set(name, value)
	}
	watch := time.AfterFunc(p.opts.idle, func() { cancel(errSilent) })
	defer watch.Stop()
	resp, err := p.client.Do(req)
	if err != nil {
		return p.broken("cannot be reached: "+cause(ctx, err).Error(), true)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return p.refusal(resp)
	}
	if kind := resp.Header.Get("Content-Type"); kind != "" && !strings.HasPrefix(kind, "text/event-stream") {
		return p.broken(fmt.Sprintf("answered with %q, not with a stream; is this a chat completions endpoint?", kind), false)
	}
	return p.read(ctx, &watched{resp.Body, watch, p.opts.idle}, e)
}

var errSilent = errors.New("the stream fell silent")

func cause(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// watched pushes the idle limit out with every byte.
type watched struct {
	io.Reader
	watch *time.Timer
	idle  time.Duration
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	if n > 0 {
		w.watch.Reset(w.idle)
	}
	return n, err
}

func (p *Provider) broken(text string, temporary bool) error {
	return &provider.Error{Provider: p.name, Message: p.safe(text), Temporary: temporary}
}

// refusal reads an answer that is no stream.
func (p *Provider) refusal(resp *http.Response) error {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // a broken error text is still an error
	e := &provider.Error{Provider: p.name, Status: resp.StatusCode, RetryAfter: p.retryAfter(resp.Header.Get("Retry-After"))}
	e.Message, e.Code = errorText(raw)
	if e.Message == "" {
		e.Message = http.StatusText(resp.StatusCode)
	}
	e.Message = p.safe(e.Message)
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		e.Temporary = e.Code != "insufficient_quota"
	default:
		e.Temporary = resp.StatusCode >= 500 && resp.StatusCode != http.StatusNotImplemented
	}
	return e
}

// errorText finds the message in the shapes that vendors use: {"error":{"message"}}, {"error":"text"}, {"message"}, plain text.
func errorText(raw []byte) (text, code string) {
	var shape struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(raw, &shape) != nil {
		return string(raw), ""
	}
	var detail struct {
		Message string `json:"message"`
		Code    any    `json:"code"`
		Type    string `json:"type"`
	}
	var plain string
	switch {
	case json.Unmarshal(shape.Error, &detail) == nil && detail.Message != "":
		code = detail.Type
		if detail.Code != nil {
			code = fmt.Sprint(detail.Code)
		}
		return detail.Message, code
	case json.Unmarshal(shape.Error, &plain) == nil && plain != "":
		return plain, ""
	case shape.Message != "":
		return shape.Message, ""
	}
	return string(raw), ""
}

func (p *Provider) retryAfter(header string) time.Duration {
	if seconds, err := strconv.ParseFloat(header, 64); err == nil && seconds > 0 && seconds < 1e6 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(at.Sub(p.clock.Now()), 0)
	}
	return 0
}

var keyLike = regexp.MustCompile(`(?i)(bearer\s+|\b(?:sk|key|pk)-)[a-z0-9_\-.*]{8,}`)

// safe bounds a foreign text and masks what is or looks like a key: vendors echo keys in their errors.
func (p *Provider) safe(s string) string {
	if p.key != "" {
		s = strings.ReplaceAll(s, p.key, "[redacted]")
	}
	s = strings.ToValidUTF8(keyLike.ReplaceAllString(s, "[redacted]"), "\uFFFD")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return strings.TrimSpace(s)
}
