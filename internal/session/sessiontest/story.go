package sessiontest

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"reasonix/internal/provider"
	"reasonix/internal/session"
)

func user(text string) session.Entry {
	return session.Entry{Kind: session.KindUser, Message: &provider.Message{Role: provider.RoleUser, Content: text}}
}

func mustAppend(t *testing.T, l session.Log, e ...session.Entry) {
	t.Helper()
	if err := l.Append(t.Context(), e...); err != nil {
		t.Fatalf("append: %v", err)
	}
}

func entries(t *testing.T, l session.Log, after int64) []session.Entry {
	t.Helper()
	got, err := l.Entries(t.Context(), after)
	if err != nil {
		t.Fatalf("entries after %d: %v", after, err)
	}
	return got
}

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

func compact(t *testing.T, r json.RawMessage) string {
	t.Helper()
	if len(r) == 0 {
		return ""
	}
	var b bytes.Buffer
	if err := json.Compact(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
