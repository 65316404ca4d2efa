package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/tmaxmax/go-sse"

	"reasonix/internal/provider"
)

// Limits of one streamed turn: what is more is a broken or hostile endpoint.
const (
	maxEvent  = 4 << 20  // bytes of one event
	maxStream = 64 << 20 // bytes of the whole stream
	maxIndex  = 1024     // calls of one message
)

// delta is one event of the stream.
type delta struct {
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Content   *string     `json:"content"`
			ToolCalls []callDelta `json:"tool_calls"`
		} `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *wireUsage `json:"usage"`
}

type callDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type wireUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	CacheHit   int64 `json:"prompt_cache_hit_tokens"` // DeepSeek
	Details    struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (u wireUsage) usage() provider.Usage {
	return provider.Usage{Input: u.Prompt, Output: u.Completion, CacheRead: max(u.Details.Cached, u.CacheHit)}
}

// collected is what a turn brought so far.
type collected struct {
	calls  map[int]*call
	usage  provider.Usage
	finish string
	done   bool // [DONE] came
}

type call struct {
	id, name string
	args     []byte
}

// read takes the stream apart. Text goes out as it comes; calls go out whole, at the end.
func (p *Provider) read(ctx context.Context, r io.Reader, e *emitter) error {
	c := collected{calls: map[int]*call{}}
	limited := &io.LimitedReader{R: r, N: maxStream}
	for event, err := range sse.Read(limited, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		if err != nil {
			if c.finish != "" && ctx.Err() == nil {
				break // everything that matters had come
			}
			return p.broken("the stream broke: "+cause(ctx, err).Error(), true)
		}
		if event.Data == "[DONE]" {
			c.done = true
			break
		}
		if err := p.take(&c, event.Data, e); err != nil {
			return err
		}
	}
	if limited.N <= 0 {
		return p.broken(fmt.Sprintf("the stream is longer than %d MiB", maxStream>>20), false)
	}
	if !c.done && c.finish == "" {
		return p.broken("the stream ended early", true)
	}
	return finish(c, e)
}

func (p *Provider) take(c *collected, data string, e *emitter) error {
	if data == "" {
		return nil
	}
	var d delta
	if err := json.Unmarshal([]byte(data), &d); err != nil {
		return p.broken("the stream holds something else than JSON: "+err.Error(), true)
	}
	if len(d.Error) > 0 && string(d.Error) != "null" {
		text, code := errorText([]byte(data))
		return &provider.Error{Provider: p.name, Code: code, Message: p.safe(text), Temporary: true}
	}
	if d.Usage != nil {
		c.usage = d.Usage.usage()
	}
	for _, choice := range d.Choices {
		if choice.Index != 0 {
			continue
		}
		if choice.Delta.Content != nil && *choice.Delta.Content != "" {
			if err := e.send(provider.Chunk{Type: provider.ChunkText, Text: *choice.Delta.Content}); err != nil {
				return err
			}
		}
		for i, t := range choice.Delta.ToolCalls {
			if err := c.add(i, t); err != nil {
				return p.broken(err.Error(), false)
			}
		}
		if choice.FinishReason != nil && *choice.FinishReason != "" {
			c.finish = *choice.FinishReason
		}
	}
	return nil
}

// add continues the call with the delta's index. Some endpoints leave the index out and send whole calls; those are told apart
// by their ids, else by their position.
func (c *collected) add(position int, t callDelta) error {
	i := position
	if t.Index != nil {
		i = *t.Index
	} else if t.ID != "" {
		i = c.indexOf(t.ID)
	}
	if i < 0 || i >= maxIndex {
		return errors.New("a tool call has an index out of range")
	}
	at, ok := c.calls[i]
	if !ok {
		at = &call{}
		c.calls[i] = at
	}
	if t.ID != "" {
		at.id = t.ID
	}
	if t.Function.Name != "" && at.name == "" { // some endpoints repeat the name with every delta
		at.name = t.Function.Name
	}
	at.args = append(at.args, t.Function.Arguments...)
	return nil
}

func (c *collected) indexOf(id string) int {
	for i, known := range c.calls {
		if known.id == id {
			return i
		}
	}
	return len(c.calls)
}

func finish(c collected, e *emitter) error {
	for _, i := range slices.Sorted(maps.Keys(c.calls)) {
		k := c.calls[i]
		tc := &provider.ToolCall{ID: k.id, Name: k.name, Arguments: string(k.args)}
		if err := e.send(provider.Chunk{Type: provider.ChunkToolCall, ToolCall: tc}); err != nil {
			return err
		}
	}
	return e.send(provider.Chunk{Type: provider.ChunkDone, Usage: c.usage, FinishReason: c.finish})
}
