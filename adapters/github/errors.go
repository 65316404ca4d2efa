package github

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v66/github"

	"reasonix/internal/chat"
)

// limitFloor is the wait where GitHub names none (docs.github.com, secondary rate limits: at least one minute).
const limitFloor = time.Minute

// sendError turns what went wrong into the promises of chat.Channel. What may be repeated freely is never uncertain.
func sendError(action string, err error, repeatable bool) error {
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf("%s: %w", action, err)
	if wait, limited := limitOf(err); limited {
		return &chat.RetryError{After: wait, Err: wrapped}
	}
	var already *chat.RetryError
	if errors.As(err, &already) {
		return err
	}
	var auth *ghinstallation.HTTPError
	if errors.As(err, &auth) { // the token could not be had, so nothing was sent
		if auth.Response != nil && auth.Response.StatusCode < 500 {
			return wrapped
		}
		return &chat.RetryError{After: 5 * time.Second, Err: wrapped}
	}
	var said *github.ErrorResponse
	if errors.As(err, &said) && said.Response != nil && said.Response.StatusCode < 500 {
		return saidError(said, wrapped)
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" || repeatable {
		return &chat.RetryError{After: 5 * time.Second, Err: wrapped}
	}
	return fmt.Errorf("%w: %w", chat.ErrUncertain, wrapped)
}

func saidError(said *github.ErrorResponse, wrapped error) error {
	switch said.Response.StatusCode {
	case http.StatusNotFound, http.StatusGone, http.StatusForbidden, http.StatusUnavailableForLegalReasons:
		return fmt.Errorf("%w: %w", chat.ErrGone, wrapped)
	}
	return wrapped
}

// limitOf reads both kinds of rate limit, whichever status carries them.
func limitOf(err error) (time.Duration, bool) {
	var secondary *github.AbuseRateLimitError
	if errors.As(err, &secondary) {
		if secondary.RetryAfter != nil {
			return max(*secondary.RetryAfter, time.Second), true
		}
		return limitFloor, true
	}
	var primary *github.RateLimitError
	if errors.As(err, &primary) {
		return max(time.Until(primary.Rate.Reset.Time), time.Second), true
	}
	var said *github.ErrorResponse
	if !errors.As(err, &said) || said.Response == nil {
		return 0, false
	}
	after := said.Response.Header.Get("Retry-After")
	if said.Response.StatusCode != http.StatusTooManyRequests && (said.Response.StatusCode != http.StatusForbidden || after == "") {
		return 0, false
	}
	if sec, err := strconv.Atoi(after); err == nil && sec > 0 {
		return time.Duration(sec) * time.Second, true
	}
	if at, err := strconv.ParseInt(said.Response.Header.Get("X-RateLimit-Reset"), 10, 64); err == nil {
		return max(time.Until(time.Unix(at, 0)), time.Second), true
	}
	return limitFloor, true
}

// lookError is sendError for what may always be repeated.
func lookError(action string, err error) error { return sendError(action, err, true) }

// passing tells whether trying again may help.
func passing(err error) bool {
	var again *chat.RetryError
	return errors.As(err, &again) || errors.Is(err, chat.ErrUncertain) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
