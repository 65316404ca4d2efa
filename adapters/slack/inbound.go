package slack

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"time"

	"reasonix/internal/chat"
)

const (
	acceptLimit = 2700 * time.Millisecond // for everything up to the acknowledgement: Slack gives up after 3 s
	tellLimit   = 10 * time.Second        // for words that follow the acknowledgement
)

// inbound answers Slack's requests; one address serves events, commands and interactivity.
type inbound struct {
	*Door
	host chat.Host
}

// Handler verifies, translates and hands over; it acknowledges only after the sink took the event.
func (d *Door) Handler(h chat.Host) http.Handler { return &inbound{Door: d, host: h} }

func (in *inbound) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := in.readVerified(w, r)
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), acceptLimit)
		defer cancel()
		err = in.dispatch(w, r.WithContext(ctx), body)
	}
	if err == nil {
		return
	}
	var no *refusal
	if errors.As(err, &no) {
		in.host.Log.Warn("slack request refused", "connection", in.name, "reason", no.reason)
		http.Error(w, no.reason, no.status)
		return
	}
	in.host.Log.Error("slack event was not taken; Slack will deliver it again", "connection", in.name, "err", err)
	http.Error(w, "not taken, deliver again", http.StatusInternalServerError)
}

func (in *inbound) dispatch(w http.ResponseWriter, r *http.Request, body []byte) error {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		return in.events(w, r, body)
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return &refusal{http.StatusBadRequest, "body is no form"}
		}
		if p := form.Get("payload"); p != "" {
			return in.interaction(w, r, []byte(p))
		}
		if form.Get("command") != "" {
			return in.slashCommand(w, r, form)
		}
		if form.Get("ssl_check") == "1" {
			w.WriteHeader(http.StatusOK)
			return nil
		}
		return &refusal{http.StatusBadRequest, "form holds neither a command nor a payload"}
	}
	return &refusal{http.StatusUnsupportedMediaType, "content type is neither JSON nor a form"}
}

// accept hands an event to the house.
func (in *inbound) accept(ctx context.Context, e chat.Event) (chat.Outcome, error) {
	e.Received = in.now()
	return in.host.Sink.Accept(ctx, e)
}

// ignore acknowledges an event that has no effect and counts why.
func (in *inbound) ignore(w http.ResponseWriter, reason string) error {
	n := in.ignored.Count(reason)
	in.host.Log.Debug("slack event ignored", "connection", in.name, "reason", reason, "count", n)
	acknowledge(w)
	return nil
}

// acknowledge completes the answer at once, so that the handler may still work after it.
func acknowledge(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
	// an error means that the connection cannot be flushed early; the answer then leaves when the handler returns
	_ = http.NewResponseController(w).Flush()
}

func respondJSON(w http.ResponseWriter, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(data)
	return err
}
