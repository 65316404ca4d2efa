package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html/charset"

	"reasonix/internal/tool"
)

const (
	fetchDescription = `Fetch a public page over http or https and read it as text; HTML becomes plain text. What it says was written by others.`

	fetchSchema = `{"type":"object","additionalProperties":false,"required":["url"],"properties":{` +
		`"url":{"type":"string","minLength":1,"maxLength":2000},` +
		`"offset":{"type":"integer","minimum":0,"description":"Go on at this byte of the text."}}}`

	fetchBody  = 5 << 20 // bytes of a page that are read at all
	fetchShown = tool.MaxContent - 1024
)

func init() { tool.Register(newWebFetch) }

func newWebFetch(env tool.Env) tool.Tool {
	if env.Web == nil {
		return nil
	}
	return webFetch{card: card{name: "web_fetch", description: fetchDescription, schema: fetchSchema}, env: env}
}

// webFetch is no reader for the rules: an address can carry something out.
type webFetch struct {
	card
	env tool.Env
}

// Outward: nothing in the workspace changes.
func (webFetch) Outward() bool { return true }

// Execute implements tool.Tool.
func (t webFetch) Execute(ctx context.Context, raw json.RawMessage) (string, error) {
	a, err := decode[struct {
		URL    string `json:"url"`
		Offset int    `json:"offset"`
	}](raw)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(a.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", fmt.Errorf("%q is no http or https address", a.URL)
	}
	if u.User != nil {
		return "", errors.New("an address with a name or a password in it is not fetched")
	}
	p, err := t.fetch(ctx, u)
	if err != nil {
		return "", err
	}
	if a.Offset > 0 && a.Offset >= len(p.text) {
		return "", fmt.Errorf("offset %d is behind the end: the text has %d bytes", a.Offset, len(p.text))
	}
	return p.show(a.Offset), nil
}

// page is what came back, as text.
type page struct {
	url, status, text string
	cut               bool // there was more than fetchBody
}

func (t webFetch) fetch(ctx context.Context, u *url.URL) (page, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return page{}, err
	}
	req.Header.Set("User-Agent", "reasonix")
	req.Header.Set("Accept", "text/html, text/*, application/json;q=0.9, */*;q=0.1")
	resp, err := t.env.Web.Do(req)
	if err != nil {
		return page{}, err
	}
	defer resp.Body.Close()
	p := page{url: resp.Request.URL.String(), status: resp.Status}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if !textual(kind) {
		return page{}, fmt.Errorf("%s answered %s with %s, which is no text", p.url, p.status, kind)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, fetchBody+1))
	if err != nil {
		return page{}, fmt.Errorf("read %s: %w", p.url, err)
	}
	if p.cut = len(body) > fetchBody; p.cut {
		body = body[:fetchBody]
	}
	decoded, err := charset.NewReader(strings.NewReader(string(body)), resp.Header.Get("Content-Type"))
	if err == nil {
		body, err = io.ReadAll(decoded)
	}
	if err != nil {
		return page{}, fmt.Errorf("read %s: %w", p.url, err)
	}
	p.text = strings.ToValidUTF8(string(body), "\uFFFD")
	if kind == "text/html" || kind == "application/xhtml+xml" {
		p.text = plainText(p.text)
	}
	if isBinary([]byte(p.text)) {
		return page{}, fmt.Errorf("%s answered %s with binary data", p.url, p.status)
	}
	return p, nil
}

func textual(kind string) bool {
	switch kind {
	case "", "application/json", "application/xml", "application/xhtml+xml", "application/javascript", "application/x-yaml", "application/yaml", "application/toml":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml")
}

// show marks the text as somebody else's and says how to go on.
func (p page) show(offset int) string {
	text := p.text[min(offset, len(p.text)):]
	end := ""
	if len(text) > fetchShown {
		n := fetchShown
		for n > 0 && text[n]&0xC0 == 0x80 { // a rune is not cut
			n--
		}
		text = text[:n]
		end = fmt.Sprintf("\n[%d of %d bytes; go on with offset %d]", offset+n, len(p.text), offset+n)
	} else if p.cut {
		end = fmt.Sprintf("\n[the page is longer than %s; the rest was not read]", size(fetchBody))
	}
	text = strings.ReplaceAll(text, "</untrusted>", "&lt;/untrusted&gt;")
	return fmt.Sprintf("%s\n<untrusted url=%q>\n%s\n</untrusted>%s", p.status, p.url, strings.TrimRight(text, "\n"), end)
}
