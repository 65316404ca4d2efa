// Package sessiontest is the contract of session.Log: every store of transcripts passes it.
package sessiontest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"reasonix/internal/provider"
	"reasonix/internal/session"
)

// Make gives two handles of one fresh, empty session: a writer that may write, and a stale one whose lease is gone.
type Make func(t *testing.T) (writer, stale session.Log)

// RunLogSuite checks the contract of session.Log. Each subtest gets a session of its own.
func RunLogSuite(t *testing.T, fresh Make) {
	t.Helper()
	cases := []struct {
		name string
		run  func(t *testing.T, writer, stale session.Log)
	}{
		{"an empty session has no entries", emptySession},
		{"entries are numbered from one without holes and stamped", numbered},
		{"an entry comes back as it was written", roundTrip},
		{"entries after a position are only those", after},
		{"a stale writer leaves no trace", staleWriter},
		{"a stale handle can still read", staleReads},
		{"a cancelled append writes nothing", cancelled},
		{"many writers of one handle never tear a batch", concurrent},
		{"a large entry comes back whole", large},
		{"the writer's entries are not changed", untouched},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			writer, stale := fresh(t)
			c.run(t, writer, stale)
		})
	}
}

func emptySession(t *testing.T, w, stale session.Log) {
	if got := entries(t, w, 0); len(got) != 0 {
		t.Fatalf("a fresh session holds %d entries", len(got))
	}
	if w.ID() == "" || w.ID() != stale.ID() {
		t.Fatalf("both handles must name the same session: %q and %q", w.ID(), stale.ID())
	}
	mustAppend(t, w)
	if got := entries(t, w, 0); len(got) != 0 {
		t.Fatalf("appending nothing made %d entries", len(got))
	}
}

func numbered(t *testing.T, w, _ session.Log) {
	before := time.Now().Add(-time.Second)
	mustAppend(t, w, user("one"), user("two"))
	mustAppend(t, w, session.Entry{Seq: 99, Kind: session.KindNote, Name: "seq is the log's"})
	for i, e := range entries(t, w, 0) {
		if e.Seq != int64(i+1) {
			t.Errorf("entry %d has seq %d", i, e.Seq)
		}
		if e.At.Before(before) || e.At.After(time.Now().Add(time.Second)) {
			t.Errorf("entry %d is stamped %v", i, e.At)
		}
	}
}

func roundTrip(t *testing.T, w, _ session.Log) {
	want := Samples()
	mustAppend(t, w, want...)
	got := entries(t, w, 0)
	opts := cmp.Options{
		cmpopts.IgnoreFields(session.Entry{}, "Seq", "At"),
		cmp.Transformer("json", func(r json.RawMessage) string { return compact(t, r) }),
	}
	if diff := cmp.Diff(want, got, opts); diff != "" {
		t.Fatal(diff)
	}
}

func after(t *testing.T, w, _ session.Log) {
	mustAppend(t, w, user("one"), user("two"), user("three"))
	for pos, want := range map[int64]int{-1: 3, 0: 3, 1: 2, 2: 1, 3: 0, 50: 0} {
		got := entries(t, w, pos)
		if len(got) != want {
			t.Errorf("after %d: %d entries, want %d", pos, len(got), want)
		}
		if len(got) > 0 && pos >= 0 && got[0].Seq != pos+1 {
			t.Errorf("after %d starts at %d", pos, got[0].Seq)
		}
	}
}

func staleWriter(t *testing.T, w, stale session.Log) {
	mustAppend(t, w, user("one"))
	err := stale.Append(t.Context(), user("from the past"))
	if !errors.Is(err, session.ErrFenced) {
		t.Fatalf("a stale append gives %v, want ErrFenced", err)
	}
	mustAppend(t, w, user("two"))
	got := entries(t, w, 0)
	if len(got) != 2 || got[1].Seq != 2 || got[1].Message.Content != "two" {
		t.Fatalf("the stale append left a trace: %+v", got)
	}
}

func staleReads(t *testing.T, w, stale session.Log) {
	mustAppend(t, w, user("one"), user("two"))
	if got := entries(t, stale, 1); len(got) != 1 || got[0].Message.Content != "two" {
		t.Fatalf("stale read: %+v", got)
	}
	mustAppend(t, w, user("three"))
	if got := entries(t, stale, 0); len(got) != 3 {
		t.Fatalf("the stale handle sees %d of 3 entries", len(got))
	}
}

func cancelled(t *testing.T, w, _ session.Log) {
	ctx, cancel := contextOf(t)
	cancel()
	if err := w.Append(ctx, user("late")); err == nil {
		t.Fatal("an append under an ended context must fail")
	}
	if got := entries(t, w, 0); len(got) != 0 {
		t.Fatalf("it wrote %d entries", len(got))
	}
}

func concurrent(t *testing.T, w, _ session.Log) {
	const writers, rounds = 8, 10
	var wg sync.WaitGroup
	errs := make(chan error, writers*rounds)
	for i := range writers {
		wg.Go(func() {
			for j := range rounds {
				key := fmt.Sprintf("%d/%d", i, j)
				errs <- w.Append(t.Context(), session.Entry{Kind: session.KindNote, Name: key}, session.Entry{Kind: session.KindNote, Name: key})
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := entries(t, w, 0)
	if len(got) != writers*rounds*2 {
		t.Fatalf("%d entries", len(got))
	}
	for i := 0; i < len(got); i += 2 {
		if got[i].Name != got[i+1].Name || got[i].Seq != int64(i+1) {
			t.Fatalf("batch at %d is torn: %s, %s", i, got[i].Name, got[i+1].Name)
		}
	}
}

func large(t *testing.T, w, _ session.Log) {
	text := strings.Repeat("größe \x00\u2028 <&> ", 100_000)
	mustAppend(t, w, user(text), user("next"))
	got := entries(t, w, 0)
	if len(got) != 2 || got[0].Message.Content != text {
		t.Fatal("the large entry came back changed")
	}
}

func untouched(t *testing.T, w, _ session.Log) {
	e := []session.Entry{user("one")}
	mustAppend(t, w, e...)
	if e[0].Seq != 0 || !e[0].At.IsZero() {
		t.Fatalf("Append changed the caller's entry: %+v", e[0])
	}
}

// Samples is one entry of every kind with every field in use.
func Samples() []session.Entry {
	return []session.Entry{
		{Kind: session.KindSystem, Message: &provider.Message{Role: provider.RoleSystem, Content: "be careful"}},
		{Kind: session.KindUser, Name: "prompt:1", Message: &provider.Message{Role: provider.RoleUser, Content: "fix it <now> & well"}},
		{Kind: session.KindAssistant, Message: &provider.Message{Role: provider.RoleAssistant, Content: "I look.", ToolCalls: []provider.ToolCall{
			{ID: "c1", Name: "bash", Arguments: `{"command":"ls"}`},
		}}},
		{Kind: session.KindUsage, Usage: &provider.Usage{Input: 10, Output: 2, CacheRead: 8, CacheCreation: 1}},
		{Kind: session.KindPending, CallID: "c1", Data: json.RawMessage(`{"digest":"abc"}`)},
		{Kind: session.KindDecision, CallID: "c1", Data: json.RawMessage(`{"choice":"allow"}`)},
		{Kind: session.KindIntent, CallID: "c1", Name: "bash"},
		{Kind: session.KindResult, CallID: "c1", Message: &provider.Message{Role: provider.RoleTool, ToolCallID: "c1", Name: "bash", Content: "a\nb"},
			Fact: &session.Fact{Tool: "bash", OK: true, Command: "ls", ExitCode: 3, Paths: []string{"a"}, DurationMS: 5, Digest: "abc", Approved: "lead"}},
		{Kind: session.KindNote, Name: "posture", Data: json.RawMessage(`{"to":"auto"}`)},
		{Kind: session.KindEnd, Data: json.RawMessage(`{"stop":"done"}`)},
	}
}
