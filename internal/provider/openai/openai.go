// Package openai is the provider kind "openai": any endpoint that speaks OpenAI's /chat/completions.
package openai

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"reasonix/internal/provider"
)

// Kind is the name under which the package registers.
const Kind = "openai"

func init() { provider.Register(Kind, New) }

// options are what Config.Extra may hold.
type options struct {
	headers       map[string]string // "headers": sent with every request
	tokensField   string            // "max_tokens_field": max_tokens (default) or max_completion_tokens
	noTemperature bool              // "omit_temperature": for models that refuse the field
	noUsage       bool              // "omit_stream_usage": for endpoints that refuse stream_options
	tries         int               // "max_tries": calls per turn, 1 to 20, default 5
	idle          time.Duration     // "idle_timeout": a stream that is silent for so long is cut, default 5m
}

// Provider talks to one model of one endpoint. It is safe for concurrent use.
type Provider struct {
	name   string
	model  string
	url    string
	key    string
	client provider.HTTPDoer
	opts   options
	wire   encoder
	clock  clock
}

// New checks the instance and builds it; it contacts nothing. Extra takes headers, max_tokens_field, omit_temperature,
// omit_stream_usage, max_tries and idle_timeout; another key is an error.
func New(cfg provider.Config) (provider.Provider, error) {
	target, err := endpoint(cfg)
	if err != nil {
		return nil, fmt.Errorf("provider %q: %w", cfg.Name, err)
	}
	if cfg.Model == "" {
		return nil, fmt.Errorf("provider %q: no model is set", cfg.Name)
	}
	opts, err := parseOptions(cfg.Extra)
	if err != nil {
		return nil, fmt.Errorf("provider %q: %w", cfg.Name, err)
	}
	client := cfg.Client
	if client == nil {
		client = defaultClient()
	}
	return &Provider{name: cfg.Name, model: cfg.Model, url: target, key: cfg.APIKey, client: client, opts: opts, clock: systemClock{}}, nil
}

// Name is the instance's name.
func (p *Provider) Name() string { return p.name }

// Stream starts one turn. Failures of the endpoint arrive as the stream's ChunkError.
func (p *Provider) Stream(ctx context.Context, req provider.Request) (<-chan provider.Chunk, error) {
	if len(req.Messages) == 0 {
		return nil, errors.New("ask the model: the request holds no message")
	}
	body, err := p.encode(req)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	out := make(chan provider.Chunk)
	go func() {
		defer close(out)
		p.turn(ctx, body, out)
	}()
	return out, nil
}

// endpoint is the exact request target: request_url, else base_url with the protocol's path.
func endpoint(cfg provider.Config) (string, error) {
	raw, field := cfg.RequestURL, "request_url"
	if raw == "" {
		raw, field = strings.TrimRight(cfg.BaseURL, "/"), "base_url"
	}
	if raw == "" {
		return "", errors.New("neither base_url nor request_url is set")
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", fmt.Errorf("%s is not an absolute http or https address", field)
	}
	if u.User != nil {
		return "", fmt.Errorf("%s holds credentials; use api_key_env", field)
	}
	if cfg.RequestURL == "" {
		return u.JoinPath("chat", "completions").String(), nil
	}
	return raw, nil
}

func parseOptions(extra map[string]any) (options, error) {
	o := options{tokensField: "max_tokens", tries: 5, idle: 5 * time.Minute}
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		if err := o.set(key, extra[key]); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o *options) set(key string, value any) error {
	ok := false
	switch key {
	case "headers":
		o.headers, ok = stringMap(value)
	case "max_tokens_field":
		o.tokensField, ok = value.(string)
		ok = ok && (o.tokensField == "max_tokens" || o.tokensField == "max_completion_tokens")
	case "omit_temperature":
		o.noTemperature, ok = value.(bool)
	case "omit_stream_usage":
		o.noUsage, ok = value.(bool)
	case "max_tries":
		o.tries, ok = wholeNumber(value)
		ok = ok && o.tries >= 1 && o.tries <= 20
	case "idle_timeout":
		var text string
		if text, ok = value.(string); ok {
			d, err := time.ParseDuration(text)
			o.idle, ok = d, err == nil && d > 0
		}
	default:
		return fmt.Errorf("unknown option %q (known: headers, idle_timeout, max_tokens_field, max_tries, omit_stream_usage, omit_temperature)", key)
	}
	if !ok {
		return fmt.Errorf("option %s has no valid value: %v", key, value)
	}
	return nil
}

func stringMap(v any) (map[string]string, bool) {
	switch m := v.(type) {
	case map[string]string:
		return m, true
	case map[string]any:
		out := map[string]string{}
		for k, e := range m {
			s, ok := e.(string)
			if !ok {
				return nil, false
			}
			out[k] = s
		}
		return out, true
	}
	return nil, false
}

func wholeNumber(v any) (int, bool) {
	switch n := v.(type) {
	case int:
		return n, true
	case int64:
		return int(n), true
	}
	return 0, false
}

// defaultClient follows no redirect: a key goes to the address that was configured and to no other.
func defaultClient() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
