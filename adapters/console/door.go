// Package console is the web console's door: pages for people and a JSON interface for other front ends, always behind a token.
package console

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"reasonix/internal/chat"
)

// Kind is the name of this adapter in the configuration, of its places and of its actors.
const Kind = "console"

func init() {
	chat.Register(Kind, func(c chat.DoorConfig) (chat.Door, error) { return New(c) })
}

// Promised errors of LoginLink.
var (
	// ErrNotListening: Run has not opened the listener yet; wait for Ready.
	ErrNotListening = errors.New("the console is not listening")
	// ErrNobody: no configured person has that name or console identity.
	ErrNobody = errors.New("no such person with a console identity")
)

// Door is one console. It listens by itself, apart from the webhooks.
type Door struct {
	name     string
	settings settings
	signer   signer
	codes    codes
	limits   attempts
	notices  notices
	pages    map[string]*template.Template
	ready    chan struct{}
	now      func() time.Time
	nonce    func() string

	mu   sync.Mutex
	addr string
	host chat.Host
	ours map[string]bool // values of the Host header that mean this console
}

var _ chat.Door = (*Door)(nil)

// New builds a console and refuses a configuration that could not be safe.
func New(cfg chat.DoorConfig) (*Door, error) {
	var c Config
	if err := cfg.Decode(&c); err != nil {
		return nil, fmt.Errorf("connection %q: %w", cfg.Name, err)
	}
	s, err := c.check(cfg.Getenv)
	if err != nil {
		return nil, fmt.Errorf("connection %q: %w", cfg.Name, err)
	}
	key, err := newSigner(s.SessionKeyFile)
	if err != nil {
		return nil, fmt.Errorf("connection %q: %w", cfg.Name, err)
	}
	d := &Door{
		name: cfg.Name, settings: s, signer: key, ready: make(chan struct{}),
		now: time.Now, nonce: func() string { return randomText(16) },
	}
	d.pages = parsePages(func() time.Time { return d.now() })
	return d, nil
}

// Handler is nil: the console never shares the webhooks' listener.
func (d *Door) Handler(chat.Host) http.Handler { return nil }

// Ready is closed once the console listens.
func (d *Door) Ready() <-chan struct{} { return d.ready }

// Addr is the address it listens on, host:port; empty before Ready.
func (d *Door) Addr() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.addr
}

// URL is how a browser reaches the console, without a trailing slash; empty before Ready.
func (d *Door) URL() string {
	if d.settings.public != nil {
		return d.settings.public.String()
	}
	if a := d.Addr(); a != "" {
		return "http://" + a
	}
	return ""
}

// LoginLink makes a link that signs the person in once, within ten minutes. The person is given by name or by console
// identity. It returns ErrNotListening before Ready and ErrNobody for an unknown person.
func (d *Door) LoginLink(person string) (string, error) {
	base := d.URL()
	if d.Addr() == "" {
		return "", ErrNotListening
	}
	p, ok := d.person(person)
	if !ok {
		return "", fmt.Errorf("%w: %q (add console = %q to their [[people]] entry)", ErrNobody, person, person)
	}
	text, err := d.codes.issue(p.Identities[Kind], d.now())
	if err != nil {
		return "", fmt.Errorf("make login link: %w", err)
	}
	return base + "/login?code=" + url.QueryEscape(text), nil
}

// person finds somebody by console identity first, then by name.
func (d *Door) person(key string) (chat.Person, bool) {
	if p, ok := d.identity(key); ok {
		return p, true
	}
	for _, p := range d.people() {
		if p.Name == key && p.Identities[Kind] != "" {
			return p, true
		}
	}
	return chat.Person{}, false
}

// identity finds somebody by console identity alone; sessions and tokens are resolved with it at every request.
func (d *Door) identity(id string) (chat.Person, bool) {
	for _, p := range d.people() {
		if id != "" && p.Identities[Kind] == id {
			return p, true
		}
	}
	return chat.Person{}, false
}

func (d *Door) people() []chat.Person {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.host.People
}

// Capabilities of a page: it always shows the present state, so every post counts as made.
func (d *Door) Capabilities() chat.Capabilities {
	return chat.Capabilities{Buttons: true, Edit: true, Files: true, Lookup: true, Private: true}
}

// Send keeps notices for the room's page; everything else the page reads from the Desk.
func (d *Door) Send(_ context.Context, p chat.Post) (chat.Ref, error) {
	if p.Message.Kind == chat.KindNotice {
		d.notices.add(p, d.now())
	}
	return d.ref(p), nil
}

// Lookup finds every post: its reference follows from its key.
func (d *Door) Lookup(_ context.Context, p chat.Post) (chat.Ref, bool, error) {
	return d.ref(p), true, nil
}

func (d *Door) ref(p chat.Post) chat.Ref {
	r := chat.Ref{Connection: d.name, Channel: p.Place.Channel, Thread: p.Place.Thread, ID: p.Key}
	if p.Edits != nil {
		r.ID = p.Edits.ID
	}
	if base := d.URL(); base != "" && p.Message.TaskID != "" {
		r.URL = base + "/tasks/" + url.PathEscape(p.Message.TaskID)
	}
	return r
}

// Check says whether it listens and who can sign in.
func (d *Door) Check(context.Context) []chat.HealthItem {
	name := "console " + d.name
	item := chat.HealthItem{Name: name, OK: true, Text: "will listen on " + d.settings.Listen}
	if a := d.Addr(); a != "" {
		item.Text = "listens on " + a
	}
	if d.settings.token == "" {
		item.Text += ", sign-in by link only"
	} else {
		item.Text += ", sign-in by link or access token"
	}
	out := []chat.HealthItem{item}
	if d.settings.SessionKeyFile == "" {
		out = append(out, chat.HealthItem{Name: name + " sessions", OK: true, Text: "end when the host restarts (session_key_file is not set)"})
	}
	if who := d.settings.TokenPerson; who != "" && d.Addr() != "" {
		if _, ok := d.person(who); !ok {
			out = append(out, chat.HealthItem{
				Name: name + " token", Text: fmt.Sprintf("token_person %q is nobody", who),
				Mend: fmt.Sprintf("add a [[people]] entry with console = %q", who),
			})
		}
	}
	return out
}

const (
	maxNotices     = 20
	maxNoticeRooms = 200
)

// notices are the newest host notices of each room, kept in memory: the outbox has the durable ones.
type notices struct {
	mu    sync.Mutex
	rooms map[string][]notice
	order []string // rooms, oldest first
}

type notice struct {
	Key  string
	At   time.Time
	Text string
}

func (n *notices) add(p chat.Post, now time.Time) {
	text := strings.TrimSpace(p.Message.Title + "\n\n" + p.Message.Text)
	room := p.Place.Key()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rooms == nil {
		n.rooms = map[string][]notice{}
	}
	list, known := n.rooms[room]
	for _, old := range list {
		if old.Key == p.Key {
			return
		}
	}
	if !known {
		n.order = append(n.order, room)
	}
	if len(n.order) > maxNoticeRooms {
		delete(n.rooms, n.order[0])
		n.order = n.order[1:]
	}
	list = append(list, notice{p.Key, now, text})
	n.rooms[room] = list[max(0, len(list)-maxNotices):]
}

func (n *notices) of(room string) []notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]notice(nil), n.rooms[room]...)
}

// digestOf shortens anything to a stable mark for element ids and cache names.
func digestOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x1f")))
	return fmt.Sprintf("%x", sum[:5])
}
