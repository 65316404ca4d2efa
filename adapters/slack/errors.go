package slack

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/slack-go/slack"

	"reasonix/internal/chat"
)

// passing are errors after which Slack may have done part of the work.
var passing = map[string]bool{"internal_error": true, "fatal_error": true, "service_unavailable": true, "request_timeout": true,
	"team_added_to_org": true, "accesslimited": true, "ratelimited": true, "rate_limited": true}

// gone are errors that no retry mends: the place or the post is away or closed to the bot.
var gone = map[string]bool{"channel_not_found": true, "not_in_channel": true, "is_archived": true, "message_not_found": true,
	"thread_not_found": true, "cant_update_message": true, "edit_window_closed": true, "restricted_action": true,
	"restricted_action_read_only_channel": true, "restricted_action_thread_locked": true, "user_not_found": true,
	"cannot_dm_bot": true, "messages_tab_disabled": true, "user_disabled": true}

const rateFloor = time.Second

// sendError turns what went wrong into the promises of chat.Channel. An edit may be repeated freely, so nothing about it
// is uncertain.
func sendError(action string, err error, repeatable bool) error {
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf("%s: %w", action, err)
	var limited *slack.RateLimitedError
	if errors.As(err, &limited) {
		return &chat.RetryError{After: max(limited.RetryAfter, rateFloor), Err: wrapped}
	}
	var said slack.SlackErrorResponse
	if errors.As(err, &said) {
		return saidError(said, wrapped, repeatable)
	}
	var status slack.StatusCodeError
	if errors.As(err, &status) {
		switch {
		case status.Code == 429:
			return &chat.RetryError{After: 30 * time.Second, Err: wrapped}
		case status.Code < 500:
			return wrapped
		}
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" || repeatable {
		return &chat.RetryError{After: 2 * time.Second, Err: wrapped}
	}
	return fmt.Errorf("%w: %w", chat.ErrUncertain, wrapped)
}

func saidError(said slack.SlackErrorResponse, wrapped error, repeatable bool) error {
	switch {
	case gone[said.Err]:
		return fmt.Errorf("%w: %w", chat.ErrGone, wrapped)
	case said.Err == "ratelimited" || said.Err == "rate_limited":
		return &chat.RetryError{After: 30 * time.Second, Err: wrapped}
	case said.Err == "streaming_state_conflict":
		return &chat.RetryError{After: 5 * time.Second, Err: wrapped}
	case passing[said.Err] && repeatable:
		return &chat.RetryError{After: 2 * time.Second, Err: wrapped}
	case passing[said.Err]:
		return fmt.Errorf("%w: %w", chat.ErrUncertain, wrapped)
	case said.Err == "missing_scope":
		return fmt.Errorf("%w (needed %s, granted %s): add the scope to the app and install it again", wrapped, said.Needed, said.Provided)
	}
	return wrapped
}

// lookError is sendError for reads, which may always be repeated.
func lookError(action string, err error) error { return sendError(action, err, true) }
