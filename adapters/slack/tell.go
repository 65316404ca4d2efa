package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/slack-go/slack"
)

// telling is a word to one person, seen by nobody else.
type telling struct {
	channel, thread, user, text, responseURL string
	bot                                      bool
}

// tell says it after the acknowledgement. It is not certain to arrive (Slack promises nothing for ephemeral messages), so
// nothing that matters depends on it; a failure is logged. Bots are told nothing.
func (in *inbound) tell(ctx context.Context, t telling) {
	if t.text == "" || t.bot || t.user == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellLimit)
	defer cancel()
	opts := []slack.MsgOption{slack.MsgOptionText(escape(clip(t.text, 3500)), false)}
	if t.thread != "" {
		opts = append(opts, slack.MsgOptionTS(t.thread))
	}
	_, err := in.api.PostEphemeralContext(ctx, t.channel, t.user, opts...)
	if err != nil && in.trustedResponse(t.responseURL) {
		err = in.respond(ctx, t)
	}
	if err != nil {
		in.host.Log.Warn("a private word did not reach its person", "connection", in.name, "user", t.user, "err", err)
	}
}

// trustedResponse allows only Slack's own host, or the host of a configured API address.
func (d *Door) trustedResponse(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || raw == "" {
		return false
	}
	api, err := url.Parse(d.apiURL)
	if err == nil && d.cfg.APIURL != "" && u.Host == api.Host {
		return true
	}
	return u.Scheme == "https" && u.Host == "hooks.slack.com"
}

func (in *inbound) respond(ctx context.Context, t telling) error {
	body, err := json.Marshal(map[string]any{"response_type": "ephemeral", "replace_original": false, "text": escape(clip(t.text, 3500))})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.responseURL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := in.http.Do(req)
	var detail *url.Error
	if errors.As(err, &detail) {
		return fmt.Errorf("use the response address: %w", detail.Err) // the address itself is a secret
	}
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("response address answered %s", strings.TrimSpace(resp.Status))
	}
	return nil
}
