package storetest

import (
	"encoding/json"
	"strings"
	"testing"

	"reasonix/internal/flow"
	"reasonix/internal/provider"
	"reasonix/internal/session"
	"reasonix/internal/task"
)

var transcriptStories = map[string]func(*testing.T, *world){
	"ATranscriptGrowsWithoutHolesAndSurvives": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		log := w.Transcript(c.Task.ID, c.Task.SessionID, c.Task.Fence)
		changed := w.Changed(c.Task.ID)
		must(t, log.Append(w.ctx, session.Entry{Kind: session.KindUser, Message: &provider.Message{Role: provider.RoleUser, Content: "hi"}, Seq: 99},
			session.Entry{Kind: session.KindIntent, CallID: "c1"}))
		receive(t, changed, "the change")
		must(t, log.Append(w.ctx, session.Entry{Kind: session.KindResult, CallID: "c1", Fact: &session.Fact{Tool: "bash", OK: true}, Data: json.RawMessage(`{"a":1}`)}))
		w.crash(t)
		entries, err := w.Transcript(c.Task.ID, c.Task.SessionID, 0).Entries(w.ctx, 0)
		must(t, err)
		if len(entries) != 3 {
			t.Fatalf("%d entries", len(entries))
		}
		for i, e := range entries {
			if e.Seq != int64(i+1) || e.At.IsZero() {
				t.Fatalf("entry %d: %+v", i, e)
			}
		}
		if entries[0].Message.Content != "hi" || entries[2].Fact.Tool != "bash" || string(entries[2].Data) != `{"a":1}` {
			t.Fatalf("entries: %+v", entries)
		}
		if tail, _ := w.Transcript(c.Task.ID, c.Task.SessionID, 0).Entries(w.ctx, 2); len(tail) != 1 || tail[0].Seq != 3 {
			t.Fatalf("tail: %+v", tail)
		}
	},
	"AnAppendIsAllOrNothing": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		log := w.Transcript(c.Task.ID, c.Task.SessionID, c.Task.Fence)
		bad := session.Entry{Kind: session.KindNote, Data: json.RawMessage(`{broken`)}
		if err := log.Append(w.ctx, session.Entry{Kind: session.KindNote, Name: "good"}, bad); err == nil {
			t.Fatal("an entry that cannot be written was taken")
		}
		if entries, err := log.Entries(w.ctx, 0); err != nil || len(entries) != 0 {
			t.Fatalf("half an append stayed: %+v, %v", entries, err)
		}
	},
	"ALogForReadingRefusesAppends": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		err := w.Transcript(c.Task.ID, c.Task.SessionID, 0).Append(w.ctx, session.Entry{Kind: session.KindNote})
		wantErr(t, err, session.ErrFenced)
	},
	"AFollowUpContinuesTheSession": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		must(t, w.Transcript(c.Task.ID, c.Task.SessionID, c.Task.Fence).Append(w.ctx, session.Entry{Kind: session.KindNote, Name: "first"}))
		must(t, w.Finish(w.ctx, flow.Finishing{Held: c.Held(), State: task.Completed}))
		o := opening("reply", "1")
		o.Task.SessionID = c.Task.SessionID
		second, err := w.Open(w.ctx, o)
		must(t, err)
		c2, err := w.Claim(w.ctx, second.ID, "host-a", long)
		must(t, err)
		log := w.Transcript(second.ID, second.SessionID, c2.Task.Fence)
		must(t, log.Append(w.ctx, session.Entry{Kind: session.KindNote, Name: "second"}))
		entries, err := log.Entries(w.ctx, 0)
		must(t, err)
		if len(entries) != 2 || entries[1].Seq != 2 || entries[1].Name != "second" {
			t.Fatalf("entries: %+v", entries)
		}
	},
	"ALongEntryComesBackWhole": func(t *testing.T, w *world) {
		c := w.claimed(t, "1")
		log := w.Transcript(c.Task.ID, c.Task.SessionID, c.Task.Fence)
		text := strings.Repeat("ä\x00\n\u2028", 1<<18)
		must(t, log.Append(w.ctx, session.Entry{Kind: session.KindUser, Message: &provider.Message{Role: provider.RoleUser, Content: text}}))
		entries, err := log.Entries(w.ctx, 0)
		must(t, err)
		if entries[0].Message.Content != text {
			t.Fatal("the text changed")
		}
	},
}
