package redact

import (
	"io"
	"strings"
)

// maxHeld bounds what a stream holds back, in bytes beside the longest secret, when secrets overlap without end.
const maxHeld = 64 << 10

// Stream masks text that comes in pieces: what may be the start of a secret is held back until it is decided. It belongs to
// one goroutine.
type Stream struct {
	r    *Redactor
	held string
}

// Stream starts a stream, for the deltas of a model.
func (r *Redactor) Stream() *Stream { return &Stream{r: r} }

// Push takes the next piece and returns what can be shown now.
func (s *Stream) Push(piece string) string {
	if s.r == nil || len(s.r.patterns) == 0 {
		return piece
	}
	s.held += piece
	spans := s.r.find(s.held)
	cut := s.undecided(s.held)
	for i := len(spans) - 1; i >= 0; i-- {
		if spans[i].from < cut && cut < spans[i].to {
			cut = spans[i].from
		}
	}
	if len(s.held)-cut > maxHeld+s.r.longest { // masks all of it; what may still grow stays
		cut = max(s.undecided(s.held), spans[len(spans)-1].to)
	}
	out := apply(s.held[:cut], within(spans, cut))
	s.held = s.held[cut:]
	return out
}

// Flush returns the rest; the stream can be used again.
func (s *Stream) Flush() string {
	rest := s.r.String(s.held)
	s.held = ""
	return rest
}

// undecided is the place from which text is the proper beginning of some pattern, its length when nothing is.
func (s *Stream) undecided(text string) int {
	from := max(0, len(text)-s.r.longest+1)
	for i := from; i < len(text); i++ {
		rest := text[i:]
		for _, p := range s.r.starts[text[i]] {
			if len(p.text) <= len(rest) {
				break // longest first
			}
			if strings.HasPrefix(p.text, rest) {
				return i
			}
		}
	}
	return len(text)
}

func within(spans []span, cut int) []span {
	n := 0
	for n < len(spans) && spans[n].to <= cut {
		n++
	}
	return spans[:n]
}

// Writer masks everything on its way to another writer, also across the boundaries of Write. Call Flush at the end.
type Writer struct {
	stream *Stream
	w      io.Writer
}

// NewWriter wraps w.
func (r *Redactor) NewWriter(w io.Writer) *Writer { return &Writer{r.Stream(), w} }

// Write takes all of p, unless the other writer fails.
func (w *Writer) Write(p []byte) (int, error) {
	if out := w.stream.Push(string(p)); out != "" {
		if _, err := io.WriteString(w.w, out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Flush writes what was held back.
func (w *Writer) Flush() error {
	out := w.stream.Flush()
	if out == "" {
		return nil
	}
	_, err := io.WriteString(w.w, out)
	return err
}
