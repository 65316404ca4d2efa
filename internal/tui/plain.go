package tui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"reasonix/internal/agent"
	"reasonix/internal/chat"
)

// maxLine bounds one message in bytes.
const maxLine = 1 << 20

// Plain is a Screen on two streams, for pipes and for terminals that can do nothing else. It reads a line only when one is asked for.
type Plain struct {
	out   io.Writer
	stops <-chan struct{}

	mu     sync.Mutex
	inText bool

	want    chan struct{}
	got     chan readLine
	waiting bool // a read is under way
}

type readLine struct {
	text string
	err  error
}

var _ Screen = (*Plain)(nil)

// NewPlain starts the reader; it ends with the input. stops tells of Ctrl-C.
func NewPlain(in io.Reader, out io.Writer, stops <-chan struct{}) *Plain {
	p := &Plain{out: out, stops: stops, want: make(chan struct{}, 1), got: make(chan readLine, 1)}
	go p.read(bufio.NewReaderSize(in, 64<<10))
	return p
}

// Close ends the reader when it waits for nothing.
func (p *Plain) Close() { close(p.want) }

func (p *Plain) read(in *bufio.Reader) {
	for range p.want {
		text, err := readWhole(in)
		p.got <- readLine{text, err}
	}
}

// readWhole reads a line, and the next ones where a line ends with a backslash.
func readWhole(in *bufio.Reader) (string, error) {
	var b strings.Builder
	long := false
	for {
		line, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && len(line) == 0 {
			return b.String(), err
		}
		ended := !errors.Is(err, bufio.ErrBufferFull)
		text := string(line)
		if ended {
			text = strings.TrimRight(text, "\r\n")
		}
		part, more := strings.CutSuffix(text, `\`)
		if long = long || b.Len()+len(part) > maxLine; !long {
			b.WriteString(part)
		}
		switch {
		case !ended && more:
			b.WriteByte('\\') // it stood in the middle of a line
		case ended && more && err == nil:
			b.WriteByte('\n')
		case ended && long:
			return "", ErrTooLong
		case ended:
			return b.String(), nil
		}
	}
}

// Line implements Screen.
func (p *Plain) Line(ctx context.Context, prompt string) (string, error) {
	p.breakLine()
	fmt.Fprint(p.out, prompt)
	if !p.waiting {
		p.waiting = true
		p.want <- struct{}{}
	}
	select {
	case r := <-p.got:
		p.waiting = false
		if r.err == nil {
			return r.text, nil
		}
		fmt.Fprintln(p.out)
		return "", r.err
	case <-p.stops:
		fmt.Fprintln(p.out)
		return "", ErrInterrupted
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Print implements Screen.
func (p *Plain) Print(text string) {
	p.breakLine()
	fmt.Fprint(p.out, text)
}

// Observe implements Screen.
func (p *Plain) Observe(o agent.Observation) {
	if o.Kind != "text" {
		if s := Shown(o); s != "" || o.Kind == "turn" {
			p.Print(s)
		}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprint(p.out, chat.Visible(o.Text))
	p.inText = o.Text != "" && !strings.HasSuffix(o.Text, "\n")
}

func (p *Plain) breakLine() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inText {
		fmt.Fprintln(p.out)
		p.inText = false
	}
}

// Typed implements Screen: nothing is read before it is asked for.
func (p *Plain) Typed() <-chan string { return nil }

// Interrupts implements Screen.
func (p *Plain) Interrupts() <-chan struct{} { return p.stops }
