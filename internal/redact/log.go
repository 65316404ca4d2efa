package redact

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
)

// Handler masks messages and attributes before the next handler sees them.
type Handler struct {
	next slog.Handler
	r    *Redactor
}

// NewHandler wraps next.
func (r *Redactor) NewHandler(next slog.Handler) *Handler { return &Handler{next, r} }

// Enabled asks the next handler.
func (h *Handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

// Handle passes on a masked copy.
func (h *Handler) Handle(ctx context.Context, rec slog.Record) error {
	clean := slog.NewRecord(rec.Time, rec.Level, h.r.String(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

// WithAttrs masks the attributes once.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return &Handler{h.next.WithAttrs(clean), h.r}
}

// WithGroup opens a group.
func (h *Handler) WithGroup(name string) slog.Handler { return &Handler{h.next.WithGroup(name), h.r} }

func (h *Handler) attr(a slog.Attr) slog.Attr {
	return slog.Attr{Key: h.r.String(a.Key), Value: h.value(a.Value.Resolve())}
}

func (h *Handler) value(v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindGroup:
		group := v.Group()
		clean := make([]slog.Attr, len(group))
		for i, a := range group {
			clean[i] = h.attr(a)
		}
		return slog.GroupValue(clean...)
	case slog.KindAny:
		return h.anything(v.Any())
	default:
		if text := v.String(); h.r.Holds(text) {
			return slog.StringValue(h.r.String(text))
		}
		return v
	}
}

// anything keeps a value whose every spelling is clean, and logs the masked text of any other.
func (h *Handler) anything(v any) slog.Value {
	if b, ok := v.([]byte); ok { // handlers print bytes as numbers or as base64
		return slog.StringValue(h.r.String(string(b)))
	}
	text := fmt.Sprintf("%+v", v)
	asJSON, err := json.Marshal(v)
	if h.r.Holds(text) || (err == nil && h.r.Holds(string(asJSON))) {
		return slog.StringValue(h.r.String(text))
	}
	return slog.AnyValue(v)
}
