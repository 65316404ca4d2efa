package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"reasonix/internal/provider"
	"reasonix/internal/session"
)

// maxStumbles bounds turns in a row that brought nothing usable: empty, cut, or announced calls that never came.
const maxStumbles = 4

// What the host tells the model after a turn that cannot stand alone.
const (
	tellEmpty = "[host] Your last turn was empty. Go on with the task, or say in words that you are done."
	tellCut   = "[host] The connection broke during your last message; what arrived is above and no call of it ran. Go on from there."
	tellLong  = "[host] Your last message reached the output limit and is cut. Go on from where it ends, in shorter pieces."
	tellLost  = "[host] You announced a tool call but none arrived. Make the call again, or finish in words."
)

// reply is one streamed turn.
type reply struct {
	text   string
	calls  []provider.ToolCall
	usage  provider.Usage
	finish string
	err    error
}

// turn makes one model call and appends what came back.
func (l *Loop) turn(ctx context.Context) (Stop, error) {
	if l.cfg.MaxSteps > 0 && l.out.Steps >= l.cfg.MaxSteps {
		l.out.Limit = fmt.Sprintf("%d steps (max_steps)", l.cfg.MaxSteps)
		return StopSteps, nil
	}
	if l.cfg.Meter != nil {
		if err := l.cfg.Meter.Reserve(ctx); err != nil {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			l.out.Limit = err.Error()
			return StopBudget, nil
		}
	}
	l.observe(Observation{Kind: "turn"})
	r := l.ask(ctx)
	l.out.Steps++
	l.out.Usage = l.out.Usage.Add(r.usage)
	if l.cfg.Meter != nil {
		settle, cancel := detached(ctx)
		l.cfg.Meter.Settle(settle, r.usage)
		cancel()
	}
	return "", l.keep(ctx, r)
}

// ask streams one turn.
func (l *Loop) ask(ctx context.Context) reply {
	ctx, stop := context.WithCancel(ctx)
	defer stop() // a provider must not outlive the turn
	req := provider.Request{Messages: l.messages[:len(l.messages):len(l.messages)], Tools: l.schemas,
		Temperature: l.cfg.Temperature, MaxTokens: l.cfg.MaxTokens}
	chunks, err := l.cfg.Provider.Stream(ctx, req)
	if err != nil {
		return reply{err: err}
	}
	var r reply
	var text strings.Builder
	show := l.live()
	ended := false
	for c := range chunks {
		switch c.Type {
		case provider.ChunkText:
			text.WriteString(c.Text)
			show.write(c.Text)
		case provider.ChunkToolCall:
			if c.ToolCall != nil {
				r.calls = append(r.calls, *c.ToolCall)
			}
		case provider.ChunkDone:
			r.usage, r.finish, ended = c.Usage.Plausible(), c.FinishReason, true
		case provider.ChunkError:
			r.usage, r.err, ended = c.Usage.Plausible(), c.Err, true
		}
	}
	r.text = text.String()
	show.end(r.text)
	if !ended {
		r.err = &provider.Error{Provider: l.cfg.Provider.Name(), Message: "the stream ended early", Temporary: true, Cut: true}
	}
	return r
}

// keep appends the turn in a form that the next request can carry, whatever the model did.
func (l *Loop) keep(ctx context.Context, r reply) error {
	var vendor *provider.Error
	cut := errors.As(r.err, &vendor) && vendor.Cut
	if r.err != nil && !cut {
		return fmt.Errorf("ask the model: %w", r.err)
	}
	if cut {
		r.calls = nil // an incomplete message runs nothing
	}
	if r.finish == "content_filter" && len(r.calls) == 0 && r.text == "" {
		return &provider.Error{Provider: l.cfg.Provider.Name(), Code: r.finish, Message: "the vendor's content filter stopped the answer"}
	}
	var entries []session.Entry
	if strings.TrimSpace(r.text) != "" || len(r.calls) > 0 {
		entries = append(entries, session.Entry{Kind: session.KindAssistant, Message: l.assistant(r.text, r.calls)})
	}
	if r.usage != (provider.Usage{}) {
		entries = append(entries, session.Entry{Kind: session.KindUsage, Usage: &r.usage})
	}
	tell := stumble(r, cut)
	if tell == "" {
		l.stumbles = 0
		return l.append(ctx, entries...)
	}
	l.stumbles++
	if l.stumbles > maxStumbles {
		return fmt.Errorf("ask the model: %d turns in a row brought nothing usable: %w", l.stumbles, lastCause(r, l.cfg.Provider.Name()))
	}
	l.observe(Observation{Kind: "note", Text: tell})
	return l.append(ctx, append(entries, session.Entry{Kind: session.KindUser, Name: "",
		Message: &provider.Message{Role: provider.RoleUser, Content: tell}})...)
}

// stumble says what the model must be told before it can go on; empty when the turn stands.
func stumble(r reply, cut bool) string {
	switch {
	case len(r.calls) > 0:
		return ""
	case strings.TrimSpace(r.text) == "":
		return tellEmpty
	case cut:
		return tellCut
	case r.finish == "length":
		return tellLong
	case r.finish == "tool_calls":
		return tellLost
	}
	return ""
}

func lastCause(r reply, name string) error {
	if r.err != nil {
		return r.err
	}
	return &provider.Error{Provider: name, Message: "finish reason " + r.finish + " without a usable message", Temporary: true}
}

// live shows streamed text as far as its secrets can be masked.
func (l *Loop) live() liveText {
	switch {
	case l.cfg.Observe == nil:
		return liveText{write: func(string) {}, end: func(string) {}}
	case l.cfg.LiveRedact != nil:
		filter := l.cfg.LiveRedact()
		return liveText{
			write: func(s string) { l.showText(filter.Push(s)) },
			end:   func(string) { l.showText(filter.Flush()) },
		}
	case l.cfg.Redact != nil: // without a filter only the whole text can be masked
		return liveText{write: func(string) {}, end: func(whole string) { l.showText(l.redact(whole)) }}
	}
	return liveText{write: l.showText, end: func(string) {}}
}

type liveText struct{ write, end func(string) }

func (l *Loop) showText(s string) {
	if s != "" {
		l.observe(Observation{Kind: "text", Text: s})
	}
}
