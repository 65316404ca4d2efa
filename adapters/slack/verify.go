package slack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

const (
	bodyLimit       = 1 << 20         // bytes; Slack's own payloads stay far below
	signatureWindow = 5 * time.Minute // docs.slack.dev/authentication/verifying-requests-from-slack
)

// refusal is an answer to a request that is not taken, with its HTTP status.
type refusal struct {
	status int
	reason string
}

func (r *refusal) Error() string { return r.reason }

// readVerified returns the raw body of a request that Slack signed within the last five minutes.
func (d *Door) readVerified(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Method != http.MethodPost {
		return nil, &refusal{http.StatusMethodNotAllowed, "only POST is taken"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	var tooBig *http.MaxBytesError
	if errors.As(err, &tooBig) {
		return nil, &refusal{http.StatusRequestEntityTooLarge, "body is over 1 MiB"}
	}
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "body could not be read"}
	}
	stamp := r.Header.Get("X-Slack-Request-Timestamp")
	sec, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return nil, &refusal{http.StatusUnauthorized, "X-Slack-Request-Timestamp is missing or no number"}
	}
	given, err := hex.DecodeString(trimVersion(r.Header.Get("X-Slack-Signature")))
	if err != nil || len(given) == 0 {
		return nil, &refusal{http.StatusUnauthorized, "X-Slack-Signature is missing or malformed"}
	}
	mac := hmac.New(sha256.New, []byte(d.secret))
	mac.Write([]byte("v0:" + stamp + ":"))
	mac.Write(body)
	if !hmac.Equal(given, mac.Sum(nil)) {
		return nil, &refusal{http.StatusUnauthorized, "signature does not match: compare the signing secret with the app's"}
	}
	if age := d.now().Sub(time.Unix(sec, 0)); age.Abs() > signatureWindow {
		return nil, &refusal{http.StatusUnauthorized, "timestamp is more than 5 minutes off: check the clock of the host"}
	}
	return body, nil
}

func trimVersion(sig string) string {
	if len(sig) < 3 || sig[:3] != "v0=" {
		return ""
	}
	return sig[3:]
}
