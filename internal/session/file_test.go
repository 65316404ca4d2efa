package session_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"reasonix/internal/provider"
	"reasonix/internal/session"
	"reasonix/internal/session/sessiontest"
)

func TestFileKeepsTheContractOfALog(t *testing.T) {
	sessiontest.RunLogSuite(t, func(t *testing.T) (session.Log, session.Log) {
		path := filepath.Join(t.TempDir(), "s1.jsonl")
		return open(t, path, true), open(t, path, false)
	})
}

func open(t *testing.T, path string, lock bool) *session.File {
	t.Helper()
	f, err := session.OpenFile(path, lock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func note(name string) session.Entry { return session.Entry{Kind: session.KindNote, Name: name} }

func names(t *testing.T, l session.Log) string {
	t.Helper()
	es, err := l.Entries(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range es {
		out = append(out, e.Name)
	}
	return strings.Join(out, " ")
}

func TestASecondWriterIsFencedUntilTheFirstOneEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	first := open(t, path, true)
	if _, err := session.OpenFile(path, true); !errors.Is(err, session.ErrFenced) {
		t.Fatalf("second writer: %v, want ErrFenced", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open(t, path, true)
	if err := second.Append(t.Context(), note("b")); err != nil {
		t.Fatal(err)
	}
	if err := first.Append(t.Context(), note("a")); !errors.Is(err, session.ErrFenced) {
		t.Fatalf("closed writer: %v, want ErrFenced", err)
	}
}

// TestHelperWriter is not a test: it is the other process of TestAKilledWriterLeavesNoLock.
func TestHelperWriter(t *testing.T) {
	path := os.Getenv("SESSION_HELPER_PATH")
	if path == "" {
		return // a story below runs it as a child process
	}
	f, err := session.OpenFile(path, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Append(t.Context(), note("child")); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("ready\n")
	select {}
}

func TestAKilledWriterLeavesNoLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	child := exec.Command(os.Args[0], "-test.run=^TestHelperWriter$")
	child.Env = append(os.Environ(), "SESSION_HELPER_PATH="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if _, err := session.OpenFile(path, true); !errors.Is(err, session.ErrFenced) {
		t.Errorf("beside a living writer: %v, want ErrFenced", err)
	}
	child.Process.Kill()
	child.Wait()
	if got := names(t, open(t, path, true)); got != "child" {
		t.Errorf("after kill -9 the transcript holds %q", got)
	}
}

func TestATornTailIsDroppedAndTheNumbersGoOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	f := open(t, path, true)
	for _, batch := range [][]session.Entry{{note("a")}, {note("b"), note("c")}, {note("d"), note("e"), note("f")}} {
		if err := f.Append(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]string{1: "a", 3: "a b c", 6: "a b c d e f"}
	for cut := range len(whole) + 1 {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		lines := bytes.Count(whole[:cut], []byte("\n"))
		for want[lines] == "" && lines > 0 {
			lines--
		}
		if got := names(t, open(t, path, false)); got != want[lines] {
			t.Fatalf("cut at %d: a reader sees %q, want %q", cut, got, want[lines])
		}
		w := open(t, path, true)
		if err := w.Append(t.Context(), note("z")); err != nil {
			t.Fatal(err)
		}
		if got := names(t, w); got != strings.TrimSpace(want[lines]+" z") {
			t.Fatalf("cut at %d: after the next append: %q", cut, got)
		}
		w.Close()
	}
}

func TestADamagedMiddleIsReportedWithItsLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	os.WriteFile(path, []byte("{\"seq\":1,\"kind\":\"note\"}\nnot json\n{\"seq\":3,\"kind\":\"note\"}\n"), 0o600)
	_, err := session.OpenFile(path, true)
	if !errors.Is(err, session.ErrCorrupt) || !strings.Contains(err.Error(), "s.jsonl line 2") {
		t.Fatalf("got %v", err)
	}
}

func TestListShowsTheNewestFirstAndExportIsOneEntryPerLine(t *testing.T) {
	dir := t.TempDir()
	for _, id := range []string{"old", "new"} {
		path, err := session.FilePath(dir, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := open(t, path, true).Append(t.Context(), note("a "+id), note("b")); err != nil {
			t.Fatal(err)
		}
	}
	old := filepath.Join(dir, "old.jsonl")
	past := must(os.Stat(old)).ModTime().Add(-1e9)
	os.Chtimes(old, past, past)
	list, err := session.List(dir)
	if err != nil || len(list) != 2 || list[0].ID != "new" || list[1].ID != "old" {
		t.Fatalf("list: %+v, %v", list, err)
	}
	var b bytes.Buffer
	if err := session.Export(t.Context(), open(t, list[1].Path, false), &b); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n != 2 || strings.Contains(b.String(), `"more"`) {
		t.Fatalf("export:\n%s", b.String())
	}
	if none, err := session.List(filepath.Join(dir, "missing")); err != nil || none != nil {
		t.Fatalf("missing folder: %v, %v", none, err)
	}
	for _, bad := range []string{"", "..", "a/b", `a\b`, ".hidden", strings.Repeat("x", 300)} {
		if _, err := session.FilePath(dir, bad); err == nil {
			t.Errorf("id %q must be refused", bad)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestAppendingEntriesOnlyAppendsMessages(t *testing.T) {
	kinds := []session.Kind{session.KindUser, session.KindAssistant, session.KindResult, session.KindNote, session.KindUsage, session.KindIntent}
	rapid.Check(t, func(t *rapid.T) {
		var entries []session.Entry
		var before []provider.Message
		for range rapid.IntRange(0, 30).Draw(t, "n") {
			e := session.Entry{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
			if rapid.Bool().Draw(t, "message") {
				e.Message = &provider.Message{Content: rapid.String().Draw(t, "text")}
			}
			entries = append(entries, e)
			now := session.Messages(entries)
			if len(now) < len(before) {
				t.Fatal("a message vanished")
			}
			for i := range before {
				if before[i].Content != now[i].Content {
					t.Fatal("an earlier message changed")
				}
			}
			before = now
		}
	})
}

func TestOpenCallsSayWhereASessionStands(t *testing.T) {
	call := func(ids ...string) session.Entry {
		m := &provider.Message{Role: provider.RoleAssistant}
		for _, id := range ids {
			m.ToolCalls = append(m.ToolCalls, provider.ToolCall{ID: id})
		}
		return session.Entry{Kind: session.KindAssistant, Message: m}
	}
	on := func(k session.Kind, id string) session.Entry {
		return session.Entry{Kind: k, CallID: id, Data: []byte(`"` + k + `"`)}
	}
	cases := []struct {
		name string
		log  []session.Entry
		want string
	}{
		{"nothing yet", nil, ""},
		{"a fresh message", []session.Entry{call("a", "b")}, "a b"},
		{"the first has its result", []session.Entry{call("a", "b"), on(session.KindResult, "a")}, "b"},
		{"an id of an earlier message is used again", []session.Entry{call("a"), on(session.KindResult, "a"), call("a")}, "a"},
		{"a started call", []session.Entry{call("a", "b"), on(session.KindIntent, "a")}, "a+started b"},
		{"a call that waits", []session.Entry{call("a"), on(session.KindPending, "a")}, "a+pending"},
		{"a call that was answered", []session.Entry{call("a"), on(session.KindPending, "a"), on(session.KindDecision, "a")}, "a+pending+decided"},
		{"asked again after an answer", []session.Entry{call("a"), on(session.KindPending, "a"), on(session.KindDecision, "a"), on(session.KindPending, "a")}, "a+pending"},
		{"all done", []session.Entry{call("a"), on(session.KindResult, "a")}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, o := range session.OpenCalls(c.log) {
				s := o.Call.ID
				for word, on := range map[string]bool{"+started": o.Started} {
					if on {
						s += word
					}
				}
				if o.Pending != nil {
					s += "+pending"
				}
				if o.Decision != nil {
					s += "+decided"
				}
				got = append(got, s)
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Fatalf("got %q, want %q", s, c.want)
			}
		})
	}
}
