package tui

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"reasonix/internal/agent"
)

// working is the prompt while a run works: what is typed behind it is read at the next turn.
const working = "· "

// Terminal is a Screen with a line editor and a history: the person can type while the model works.
type Terminal struct {
	in    *os.File
	term  *term.Terminal
	old   *term.State
	lines chan string
	err   error // of the reader, once lines is closed
	stops chan struct{}

	mu   sync.Mutex
	flow flow
}

var _ Screen = (*Terminal)(nil)

// IsTerminal tells whether both ends are a terminal that a line editor can work on.
func IsTerminal(in, out *os.File, getenv func(string) string) bool {
	return getenv("TERM") != "dumb" && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
}

// OpenTerminal takes the terminal over; Close gives it back. further tells of Ctrl-C that came as a signal.
func OpenTerminal(in, out *os.File, further <-chan struct{}) (*Terminal, error) {
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("take over the terminal: %w", err)
	}
	t := &Terminal{in: in, old: old, lines: make(chan string), stops: make(chan struct{}, 1)}
	t.term = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&keys{in: in, stop: t.interrupt}, out}, working)
	t.term.AutoCompleteCallback = complete
	t.term.SetBracketedPasteMode(true)
	t.resize()
	go t.read()
	go func() {
		for range further {
			t.interrupt()
		}
	}()
	return t, nil
}

// Close gives the terminal back as it was.
func (t *Terminal) Close() {
	t.term.SetBracketedPasteMode(false)
	t.mu.Lock()
	rest := t.flow.flush()
	t.mu.Unlock()
	t.term.SetPrompt("") // none stays behind on the shell's line
	t.write(rest + "\r")
	_ = term.Restore(int(t.in.Fd()), t.old)
}

func (t *Terminal) interrupt() {
	select {
	case t.stops <- struct{}{}:
	default: // one is waiting already
	}
}

// read gives lines on as they come; lines of one paste, and lines that end with a backslash, are one message.
func (t *Terminal) read() {
	defer close(t.lines)
	var b strings.Builder
	for {
		line, err := t.term.ReadLine()
		if err != nil {
			t.err = err
			return
		}
		part, more := strings.CutSuffix(line, `\`)
		b.WriteString(strings.ReplaceAll(part, pastedBreak, "\n"))
		if more {
			b.WriteByte('\n')
			continue
		}
		t.lines <- b.String()
		b.Reset()
	}
}

// Line implements Screen.
func (t *Terminal) Line(ctx context.Context, prompt string) (string, error) {
	t.resize()
	t.Print("")
	t.setPrompt(prompt)
	defer t.setPrompt(working)
	select {
	case line, open := <-t.lines:
		if !open {
			return "", t.ended()
		}
		return line, nil
	case <-t.stops:
		return "", ErrInterrupted
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (t *Terminal) ended() error {
	if t.err == nil {
		return io.EOF
	}
	return t.err
}

// setPrompt changes the prompt that stands there: an empty write draws it anew.
func (t *Terminal) setPrompt(p string) {
	t.term.SetPrompt(p)
	t.write("")
}

func (t *Terminal) write(s string) { _, _ = t.term.Write([]byte(s)) }

// Print implements Screen.
func (t *Terminal) Print(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.flow.flush() + text; s != "" {
		t.write(s)
	}
}

// Observe implements Screen.
func (t *Terminal) Observe(o agent.Observation) {
	if o.Kind != "text" {
		if s := Shown(o); s != "" || o.Kind == "turn" {
			t.Print(s)
		}
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.flow.push(o.Text); s != "" {
		t.write(s)
	}
}

// Typed implements Screen.
func (t *Terminal) Typed() <-chan string { return t.lines }

// Interrupts implements Screen.
func (t *Terminal) Interrupts() <-chan struct{} { return t.stops }

func (t *Terminal) resize() {
	w, h, err := term.GetSize(int(t.in.Fd()))
	if err != nil || w <= 0 || h <= 0 {
		return
	}
	_ = t.term.SetSize(w, h)
	t.mu.Lock()
	t.flow.width = w - 1
	t.mu.Unlock()
}

// commands are completed with the tab key.
var commands = []string{"/budget ", "/continue", "/exit", "/goal ", "/help", "/new", "/normal", "/permissions ", "/plan ", "/posture ", "/quit", "/resume ", "/status", "/stop"}

func complete(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' || pos != len(line) || !strings.HasPrefix(line, "/") {
		return "", 0, false
	}
	var found []string
	for _, c := range commands {
		if strings.HasPrefix(c, line) {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return "", 0, false
	}
	to := found[0]
	for _, c := range found[1:] {
		for !strings.HasPrefix(c, to) {
			to = to[:len(to)-1]
		}
	}
	return to, len(to), true
}
