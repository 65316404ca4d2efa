package tui

import (
	"bytes"
	"io"
	"strings"
)

const (
	ctrlC      = 0x03
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"

	// pastedBreak stands for a line break of a paste while the text is edited: the line editor would take a real one for the end.
	pastedBreak = "␤"
)

// keys stands before the line editor. It hides Ctrl-C, which the editor would take for the end, and makes a paste one text wherever it begins,
// without control characters.
type keys struct {
	in   io.Reader
	stop func()

	pasting bool
	cr      bool   // the last character of the paste was a carriage return
	held    []byte // what may be the beginning of a mark
	ready   []byte
	err     error
}

// Read implements io.Reader.
func (k *keys) Read(p []byte) (int, error) {
	var buf [1024]byte
	for len(k.ready) == 0 {
		if k.err != nil {
			return 0, k.err
		}
		var n int
		n, k.err = k.in.Read(buf[:])
		k.take(append(k.held, buf[:n]...))
		if k.err != nil {
			k.ready, k.held = append(k.ready, k.held...), nil
		}
	}
	n := copy(p, k.ready)
	k.ready = k.ready[n:]
	return n, nil
}

// take sorts what was typed or pasted.
func (k *keys) take(b []byte) {
	k.held = nil
	for len(b) > 0 {
		mark := pasteStart
		if k.pasting {
			mark = pasteEnd
		}
		switch {
		case bytes.HasPrefix(b, []byte(mark)):
			k.ready = append(k.ready, mark...)
			k.pasting, k.cr = !k.pasting, false
			b = b[len(mark):]
			continue
		case strings.HasPrefix(mark, string(b)):
			k.held = bytes.Clone(b)
			return
		case k.pasting:
			k.paste(b[0])
		case b[0] == ctrlC:
			k.stop()
		default:
			k.ready = append(k.ready, b[0])
		}
		b = b[1:]
	}
}

func (k *keys) paste(c byte) {
	switch {
	case c == '\r', c == '\n' && !k.cr:
		k.ready = append(k.ready, pastedBreak...)
	case c == '\t', c >= ' ' && c != 0x7f:
		k.ready = append(k.ready, c)
	}
	k.cr = c == '\r'
}
