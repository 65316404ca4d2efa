package github

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

const bodyLimit = 25 << 20 // bytes; GitHub sends nothing larger

// refusal is an answer to a request that is not taken, with its HTTP status.
type refusal struct {
	status int
	reason string
}

func (r *refusal) Error() string { return r.reason }

// readVerified returns the JSON of a webhook whose raw body carries the right SHA-256 signature; the older SHA-1 header
// counts for nothing.
func (d *Door) readVerified(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Method != http.MethodPost {
		return nil, &refusal{http.StatusMethodNotAllowed, "only POST is taken"}
	}
	given, ok := strings.CutPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256=")
	sig, err := hex.DecodeString(given)
	if !ok || err != nil || len(sig) != sha256.Size {
		return nil, &refusal{http.StatusUnauthorized, "X-Hub-Signature-256 is missing or malformed: set a secret on the webhook"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	var tooBig *http.MaxBytesError
	if errors.As(err, &tooBig) {
		return nil, &refusal{http.StatusRequestEntityTooLarge, "body is over 25 MB"}
	}
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "body could not be read"}
	}
	mac := hmac.New(sha256.New, d.secret)
	mac.Write(body)
	if !hmac.Equal(sig, mac.Sum(nil)) {
		return nil, &refusal{http.StatusUnauthorized, "signature does not match: compare the secret with the webhook's"}
	}
	return payloadOf(r, body)
}

func payloadOf(r *http.Request, body []byte) ([]byte, error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		return body, nil
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil || form.Get("payload") == "" {
			return nil, &refusal{http.StatusBadRequest, "form holds no payload"}
		}
		return []byte(form.Get("payload")), nil
	}
	return nil, &refusal{http.StatusUnsupportedMediaType, "content type is neither JSON nor a form"}
}
