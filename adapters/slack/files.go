package slack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"reasonix/internal/chat"
)

const (
	fileLimit     = 64 << 10 // bytes of a shared text file that are read
	filesPerEvent = 3
	fileTime      = 800 * time.Millisecond // for all files of a message, within Slack's 3 s
)

// file is a file that came with a message.
type file struct {
	Name      string `json:"name"`
	Mimetype  string `json:"mimetype"`
	Filetype  string `json:"filetype"`
	Size      int64  `json:"size"`
	User      string `json:"user"`
	Private   string `json:"url_private"`
	Download  string `json:"url_private_download"`
	Permalink string `json:"permalink"`
}

// sources gives the files of a message as text that may inform a task. What cannot be read is named with the reason.
func (in *inbound) sources(ctx context.Context, m message) []chat.Source {
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	var list []chat.Source
	for i, f := range m.Files {
		s := chat.Source{Title: "file " + clip(f.Name, 200), Author: m.User, URL: f.Permalink}
		if i >= filesPerEvent {
			s.Text = "(not read: only the first 3 files of a message are)"
		} else if text, err := in.download(ctx, f); err != nil {
			s.Text = "(not read: " + err.Error() + ")"
		} else {
			s.Text = text
		}
		list = append(list, s)
	}
	return list
}

// download reads a small text file. The token goes to Slack's own hosts only and never along a redirect.
func (in *inbound) download(ctx context.Context, f file) (string, error) {
	addr := f.Download
	if addr == "" {
		addr = f.Private
	}
	if !in.slackHost(addr) {
		return "", fmt.Errorf("it does not lie at Slack")
	}
	if f.Size > fileLimit {
		return "", fmt.Errorf("it is over 64 KiB")
	}
	if !strings.HasPrefix(f.Mimetype, "text/") && f.Mimetype != "application/json" {
		return "", fmt.Errorf("it is no text but %s", clip(f.Mimetype, 60))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, addr, nil)
	if err != nil {
		return "", fmt.Errorf("its address is malformed")
	}
	req.Header.Set("Authorization", "Bearer "+in.token)
	client := *in.http
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return "", errors.New("it was not sent in time by Slack")
	}
	defer func() { _ = resp.Body.Close() }()
	// without the scope Slack answers with its sign-in page or a redirect to it
	if resp.StatusCode != http.StatusOK || strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") && f.Mimetype != "text/html" {
		return "", errors.New("the sign-in page came instead of the file: the app lacks the scope files:read")
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, fileLimit+1))
	if err != nil || len(data) > fileLimit || !utf8.Valid(data) {
		return "", fmt.Errorf("it is no UTF-8 text of at most 64 KiB")
	}
	return string(data), nil
}

func (d *Door) slackHost(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	if api, err := url.Parse(d.apiURL); err == nil && d.cfg.APIURL != "" && u.Host == api.Host {
		return true
	}
	return u.Scheme == "https" && (u.Hostname() == "slack.com" || strings.HasSuffix(u.Hostname(), ".slack.com"))
}
