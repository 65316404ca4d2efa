package sandbox

import (
	"fmt"
	"sync"
)

// capture keeps the first and the last half of what it is given, whatever the amount, and passes everything on live.
type capture struct {
	mu    sync.Mutex
	live  func([]byte)
	half  int
	head  []byte
	ring  []byte
	at    int // next position in ring once it is full
	total int64
}

func newCapture(limit int64, live func([]byte)) *capture {
	return &capture{half: int(limit / 2), live: live}
}

// Write never fails and never blocks on anything but live.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	c.total += int64(n)
	if c.live != nil {
		c.live(p)
	}
	if room := c.half - len(c.head); room > 0 {
		k := min(room, len(p))
		c.head = append(c.head, p[:k]...)
		p = p[k:]
	}
	if len(p) > c.half {
		p = p[len(p)-c.half:]
	}
	if room := c.half - len(c.ring); room > 0 {
		k := min(room, len(p))
		c.ring = append(c.ring, p[:k]...)
		p = p[k:]
	}
	for len(p) > 0 {
		k := copy(c.ring[c.at:], p)
		p = p[k:]
		c.at = (c.at + k) % c.half
	}
	return n, nil
}

// bytes returns what was kept, with a line in the middle that says how much was not, and that number.
func (c *capture) bytes() ([]byte, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	omitted := c.total - int64(len(c.head)+len(c.ring))
	out := append([]byte(nil), c.head...)
	if omitted > 0 {
		out = fmt.Appendf(out, "\n[… %d bytes omitted …]\n", omitted)
	}
	out = append(out, c.ring[c.at:]...)
	return append(out, c.ring[:c.at]...), omitted
}
