package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reasonix/internal/provider"
	"reasonix/internal/run"
	"reasonix/internal/session"
	"reasonix/internal/testkit/modeld"
	"reasonix/internal/tool"
)

// reader is a model in memory: it reads a file per turn and remembers when it was asked.
type reader struct {
	turns int
	asked []time.Time
	ended []time.Time
}

func (*reader) Name() string { return "reader" }

func (m *reader) Stream(ctx context.Context, _ provider.Request) (<-chan provider.Chunk, error) {
	m.asked = append(m.asked, time.Now())
	out := make(chan provider.Chunk, 3)
	n := len(m.asked)
	if n <= m.turns {
		out <- provider.Chunk{Type: provider.ChunkToolCall, ToolCall: &provider.ToolCall{ID: fmt.Sprint("c", n), Name: "read", Arguments: "{}"}}
	} else {
		out <- provider.Chunk{Type: provider.ChunkText, Text: "done"}
	}
	out <- provider.Chunk{Type: provider.ChunkDone, Usage: provider.Usage{Input: 1}}
	close(out)
	m.ended = append(m.ended, time.Now())
	return out, nil
}

// gaps are the times from the end of an answer to the next request.
func (m *reader) gaps() (out []time.Duration) {
	for i := 1; i < len(m.asked); i++ {
		out = append(out, m.asked[i].Sub(m.ended[i-1]))
	}
	return out
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

func readerTools(t testing.TB, lines int) *tool.Registry {
	page := strings.Repeat("a line of some text\n", lines)
	r := &tool.Registry{}
	if err := r.Add(fn{"read", schema(), true, func(context.Context, map[string]string) (string, error) { return page, nil }}); err != nil {
		t.Fatal(err)
	}
	return r
}

func longRun(t testing.TB, p provider.Provider, lines int) {
	log, err := session.OpenFile(filepath.Join(t.TempDir(), "s.jsonl"), true)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	_, err = run.Drive(t.Context(), run.Spec{Session: log, Provider: p, Mode: "run", System: "s", Prompt: "go", PromptKey: "p", Tools: readerTools(t, lines), Gate: gate{}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheGapBetweenTurnsStaysFlatOverAThousandTurns(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a moment")
	}
	m := &reader{turns: 1000}
	longRun(t, m, 200)
	g := m.gaps()
	early, late := median(g[10:110]), median(g[890:990])
	t.Logf("gap: %v around turn 60, %v around turn 940", early, late)
	if late > 3*early+time.Millisecond {
		t.Errorf("the gap grew from %v to %v", early, late)
	}
}

func BenchmarkTurn(b *testing.B) {
	for _, turns := range []int{10, 1000} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			var all []time.Duration
			for b.Loop() {
				m := &reader{turns: turns}
				longRun(b, m, 200)
				all = append(all, m.gaps()[turns-5:]...)
			}
			b.ReportMetric(float64(median(all).Microseconds()), "µs/gap")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// The same through the wire: the last gaps of a run of so many turns, request encoding and HTTP included. Small files, because
// the double parses every history whole.
func BenchmarkTurnOverHTTP(b *testing.B) {
	for _, turns := range []int{10, 300} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			var encoded []time.Duration
			for b.Loop() {
				var last time.Time
				s, err := modeld.Start(func(r modeld.Request) modeld.Turn {
					if !last.IsZero() && r.N > turns-5 {
						encoded = append(encoded, r.At.Sub(last))
					}
					defer func() { last = time.Now() }()
					if r.N > turns {
						return modeld.Turn{Text: "done"}
					}
					return modeld.Turn{Calls: []modeld.Call{{Name: "read", Args: json.RawMessage("{}")}}}
				})
				if err != nil {
					b.Fatal(err)
				}
				p, err := provider.New("openai", provider.Config{Name: "double", BaseURL: s.URL, Model: "m"})
				if err != nil {
					b.Fatal(err)
				}
				longRun(b, p, 5)
				s.Close()
			}
			b.ReportMetric(float64(median(encoded).Microseconds()), "µs/gap")
			b.ReportMetric(0, "ns/op")
		})
	}
}
