// Package script is the provider kind "script": a written scenario in place of a model, whose steps look at what the tools
// really returned. It proves the harness, never the product.
package script

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"reasonix/internal/provider"
)

// Kind is the name under which the package registers.
const Kind = "script"

func init() { provider.Register(Kind, New) }

// Provider plays one scenario. It keeps no state between requests and is safe for concurrent use.
type Provider struct {
	name     string
	scenario *scenario
	pace     time.Duration // between two pieces of text
}

// New loads the scenario of Extra["path"] (a TOML or JSON file) or Extra["scenario"] (its text) and checks it whole. Extra["pace"]
// is the time between two pieces of text, like "20ms". Another key is an error.
func New(cfg provider.Config) (provider.Provider, error) {
	p := &Provider{name: cfg.Name}
	text, path := "", ""
	for _, key := range slices.Sorted(maps.Keys(cfg.Extra)) {
		value, ok := cfg.Extra[key].(string)
		if !ok {
			return nil, fmt.Errorf("provider %q: option %s must be a text", cfg.Name, key)
		}
		switch key {
		case "path":
			path = value
		case "scenario":
			text = value
		case "pace":
			d, err := time.ParseDuration(value)
			if err != nil || d < 0 || d > 10*time.Second {
				return nil, fmt.Errorf("provider %q: option pace must be a time from 0s to 10s", cfg.Name)
			}
			p.pace = d
		default:
			return nil, fmt.Errorf("provider %q: unknown option %q (known: pace, path, scenario)", cfg.Name, key)
		}
	}
	var err error
	switch {
	case (path == "") == (text == ""):
		err = errors.New("set either path or scenario")
	case path != "":
		p.scenario, err = load(path)
	default:
		p.scenario, err = parse("scenario", []byte(text))
	}
	if err != nil {
		return nil, fmt.Errorf("provider %q: %w", cfg.Name, err)
	}
	return p, nil
}

// Name is the instance's name.
func (p *Provider) Name() string { return p.name }

// Stream plays the next turn. Usage is an estimate at four bytes per token.
func (p *Provider) Stream(ctx context.Context, req provider.Request) (<-chan provider.Chunk, error) {
	if len(req.Messages) == 0 {
		return nil, errors.New("ask the model: the request holds no message")
	}
	turn := p.scenario.next(req.Messages, req.Tools)
	out := make(chan provider.Chunk)
	go func() {
		defer close(out)
		if err := p.play(ctx, turn, req, out); err != nil {
			select {
			case out <- provider.Chunk{Type: provider.ChunkError, Err: err}:
			default: // the reader is gone
			}
		}
	}()
	return out, nil
}

func (p *Provider) play(ctx context.Context, turn filled, req provider.Request, out chan<- provider.Chunk) error {
	send := func(c provider.Chunk) error {
		select {
		case out <- c:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, piece := range pieces(turn.say) {
		if err := p.wait(ctx); err != nil {
			return err
		}
		if err := send(provider.Chunk{Type: provider.ChunkText, Text: piece}); err != nil {
			return err
		}
	}
	for _, c := range turn.calls {
		if err := send(provider.Chunk{Type: provider.ChunkToolCall, ToolCall: &c}); err != nil {
			return err
		}
	}
	finish := "stop"
	if len(turn.calls) > 0 {
		finish = "tool_calls"
	}
	return send(provider.Chunk{Type: provider.ChunkDone, FinishReason: finish, Usage: estimate(turn, req)})
}

func (p *Provider) wait(ctx context.Context) error {
	if p.pace == 0 {
		return ctx.Err()
	}
	t := time.NewTimer(p.pace)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// pieces cuts text into about three words each, as a model streams it.
func pieces(text string) []string {
	const runes = 16
	var out []string
	for len(text) > 0 {
		end := 0
		for i := 0; i < runes && end < len(text); i++ {
			_, size := utf8.DecodeRuneInString(text[end:])
			end += size
		}
		out, text = append(out, text[:end]), text[end:]
	}
	return out
}

func estimate(turn filled, req provider.Request) provider.Usage {
	in, out := 0, len(turn.say)
	for _, m := range req.Messages {
		in += len(m.Content)
		for _, c := range m.ToolCalls {
			in += len(c.Arguments)
		}
	}
	for _, t := range req.Tools {
		in += len(t.Description) + len(t.Parameters)
	}
	for _, c := range turn.calls {
		out += len(c.Arguments)
	}
	return provider.Usage{Input: int64(in/4 + 1), Output: int64(out/4 + 1)}
}
