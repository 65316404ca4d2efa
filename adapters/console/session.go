package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const keySize = 32

// pass is what a session token says; it is signed, never stored, so it outlives a restart as long as the key does.
type pass struct {
	ID      string `json:"id"` // console identity
	Expires int64  `json:"exp"`
}

// signer makes and reads session tokens: "v1.<payload>.<hmac-sha256>".
type signer struct{ key []byte }

func newSigner(path string) (signer, error) {
	if path == "" {
		key := make([]byte, keySize)
		rand.Read(key)
		return signer{key}, nil
	}
	key, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = makeKey(path)
	}
	if err != nil {
		return signer{}, fmt.Errorf("session_key_file: %w", err)
	}
	if len(key) != keySize {
		return signer{}, fmt.Errorf("session_key_file: %s holds %d bytes instead of %d: delete it, everybody signs in again", path, len(key), keySize)
	}
	return signer{key}, nil
}

// makeKey writes a new key; when two hosts start at once, both end with the one that was linked first.
func makeKey(path string) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	key := make([]byte, keySize)
	rand.Read(key)
	tmp, err := os.CreateTemp(filepath.Dir(path), ".console-key-*") // mode 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(key)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return readPrivate(path)
}

func (s signer) seal(p pass) string {
	body, _ := json.Marshal(p) // two plain fields cannot fail
	head := "v1." + base64.RawURLEncoding.EncodeToString(body)
	return head + "." + base64.RawURLEncoding.EncodeToString(s.mac(head))
}

func (s signer) open(token string, now time.Time) (pass, bool) {
	head, sum, ok := cutLast(token, ".")
	if !ok || len(token) > 1024 {
		return pass{}, false
	}
	got, err := base64.RawURLEncoding.DecodeString(sum)
	if err != nil || !hmac.Equal(got, s.mac(head)) {
		return pass{}, false
	}
	encoded, ok := strings.CutPrefix(head, "v1.")
	if !ok {
		return pass{}, false
	}
	body, err := base64.RawURLEncoding.DecodeString(encoded)
	var p pass
	if err != nil || json.Unmarshal(body, &p) != nil || p.ID == "" || now.Unix() >= p.Expires {
		return pass{}, false
	}
	return p, true
}

func (s signer) mac(text string) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte("reasonix console session\n" + text))
	return m.Sum(nil)
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

const (
	codeLife = 10 * time.Minute
	maxCodes = 256
)

// codes are login codes that wait to be used: 256 random bits each, once, for ten minutes. Only their hashes are kept.
type codes struct {
	mu   sync.Mutex
	open map[[32]byte]code
}

type code struct {
	id      string
	expires time.Time
}

func (c *codes) issue(id string, now time.Time) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[[32]byte]code{}
	}
	for k, v := range c.open {
		if now.After(v.expires) {
			delete(c.open, k)
		}
	}
	if len(c.open) >= maxCodes {
		return "", fmt.Errorf("%d login links are open already: use one, or wait %s", maxCodes, codeLife)
	}
	text := randomText(32)
	c.open[sha256.Sum256([]byte(text))] = code{id, now.Add(codeLife)}
	return text, nil
}

// valid tells whether the code could still be used, without using it.
func (c *codes) valid(text string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.open[sha256.Sum256([]byte(text))]
	return ok && now.Before(v.expires)
}

func (c *codes) redeem(text string, now time.Time) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := sha256.Sum256([]byte(text))
	v, ok := c.open[k]
	delete(c.open, k)
	return v.id, ok && now.Before(v.expires)
}

// randomText returns n random bytes as URL-safe text.
func randomText(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}
