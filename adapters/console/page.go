package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"reasonix/internal/chat"
)

//go:embed static
var static embed.FS

//go:embed templates
var templateFiles embed.FS

// page is what every whole page shows around its body.
type page struct {
	Title    string
	Here     string // tasks, asks: the marked entry of the navigation
	Notice   string
	Person   *chat.Person // nil on the sign-in page
	OpenAsks int
	Refresh  string // address to go on to at once; empty on ordinary pages
	Body     any
}

// parsePages binds the templates to a clock.
func parsePages(now func() time.Time) map[string]*template.Template {
	base := template.Must(template.New("").Funcs(funcs(now)).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html"))
	out := map[string]*template.Template{"parts": base}
	for _, n := range []string{"home", "task", "asks", "login", "refused"} {
		out[n] = template.Must(template.Must(base.Clone()).ParseFS(templateFiles, "templates/"+n+".html"))
	}
	return out
}

func funcs(now func() time.Time) template.FuncMap {
	return template.FuncMap{
		"visible": visible, "hidden": hidden, "prose": prose, "line": line, "markdown": markdown, "asset": asset,
		"ago":   func(t time.Time) string { return ago(now().Sub(t)) },
		"until": func(t time.Time) string { return until(t.Sub(now())) },
		"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"human": func(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") },
		"state": stateName, "tone": stateTone, "lines": countLines, "plural": plural,
	}
}

// show fills a named template.
func (d *Door) show(set, name string, data any) ([]byte, error) {
	var b bytes.Buffer
	if err := d.pages[set].ExecuteTemplate(&b, name, data); err != nil {
		return nil, fmt.Errorf("show %s: %w", name, err)
	}
	return b.Bytes(), nil
}

func (d *Door) render(w http.ResponseWriter, r *http.Request, status int, name string, p page) {
	p.Notice = d.sees().Notice
	body, err := d.show(name, "layout", p)
	d.write(w, r, status, body, err)
}

func (d *Door) renderPart(w http.ResponseWriter, r *http.Request, name string, data any) {
	body, err := d.show("parts", name, data)
	d.write(w, r, http.StatusOK, body, err)
}

func (d *Door) write(w http.ResponseWriter, r *http.Request, status int, body []byte, err error) {
	if err != nil {
		d.sees().Log.ErrorContext(r.Context(), "console page", "path", r.URL.Path, "err", err)
		http.Error(w, "This page could not be drawn; the host's log says why. Reload to try again.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the reader may be gone
}

// refuse shows why nothing happened: a whole page, or one line for a part of a page.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	if r.Header.Get("HX-Request") != "" {
		w.Header().Set("HX-Reswap", "none") // what is fetched again by itself stays as it is
		if r.Method == http.MethodPost {
			w.Header().Set("HX-Reswap", "beforeend") // the form and its buttons stay alive
		}
		body, err := d.show("parts", "outcome", &outcome{Tone: "bad", Text: text})
		d.write(w, r, status, body, err)
		return
	}
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		http.Error(w, text, status)
		return
	}
	d.render(w, r, status, "refused", page{Title: "Not possible", Body: text})
}

// framed is a page for somebody who is signed in.
func (d *Door) framed(r *http.Request, v viewer, title, here string, body any) page {
	open, _ := d.sees().Desk.Asks(r.Context(), true) // the badge is no reason to fail a page
	return page{Title: title, Here: here, Person: &v.person, OpenAsks: len(open), Body: body}
}

// outcome is what an action did, shown where it was pressed.
type outcome struct {
	Tone string // good, bad, note
	Text string
}

func serveStatic(w http.ResponseWriter, r *http.Request) {
	name := path.Clean("static/" + r.PathValue("file"))
	body, err := static.ReadFile(name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	kind := mime.TypeByExtension(path.Ext(name))
	if kind == "" {
		kind = "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
}

// asset is the address of a static file with a mark of its content, so that a new version is fetched at once.
func asset(name string) string {
	body, err := static.ReadFile("static/" + name)
	if err != nil {
		panic("console: no static file " + name)
	}
	return "/static/" + name + "?v=" + digestOf(string(body))
}

var states = map[string][2]string{ // state → what a person reads, tone
	"queued": {"Queued", "wait"}, "running": {"Running", "live"}, "parked": {"Needs an answer", "ask"},
	"completed": {"Done", "good"}, "failed": {"Failed", "bad"}, "cancelled": {"Stopped", "off"}, "superseded": {"Asked again, because the action changed", "off"}, "expired": {"Expired", "off"},
}

func stateKey(s string) string {
	key, _, _ := strings.Cut(strings.ToLower(s), "(")
	return strings.TrimSpace(key)
}

func stateName(s string) string {
	if n, ok := states[stateKey(s)]; ok {
		return n[0]
	}
	return s
}

func stateTone(s string) string {
	if n, ok := states[stateKey(s)]; ok {
		return n[1]
	}
	return "off"
}

func ended(s string) bool {
	switch stateKey(s) {
	case "completed", "failed", "cancelled", "expired":
		return true
	}
	return false
}

func ago(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	}
	return words(d) + " ago"
}

func until(d time.Duration) string {
	if d <= 0 {
		return "expired"
	}
	if d < time.Minute {
		return "in less than a minute"
	}
	return "in " + words(d)
}

// words is a length of time as people say it.
func words(d time.Duration) string {
	switch {
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

func countLines(s string) int { return strings.Count(strings.TrimRight(s, "\n"), "\n") + 1 }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
