package builtin

import (
	"strings"

	"golang.org/x/net/html"
)

// unseen elements hold nothing that a reader of the page sees.
var unseen = map[string]bool{"script": true, "style": true, "noscript": true, "template": true, "svg": true, "iframe": true, "select": true}

// blocks begin and end a line.
var blocks = map[string]bool{"p": true, "div": true, "section": true, "article": true, "header": true, "footer": true, "main": true, "nav": true, "aside": true, "ul": true,
	"ol": true, "li": true, "table": true, "tr": true, "h1": true, "h2": true, "h3": true, "h4": true, "h5": true, "h6": true, "pre": true, "blockquote": true, "dl": true, "dt": true,
	"dd": true, "form": true, "figure": true, "title": true, "br": true, "hr": true}

// textWriter turns HTML into text, token by token, so that depth costs nothing.
type textWriter struct {
	b      strings.Builder
	hidden int
	pre    int
	link   string
	space  bool // white space waits for the next word
	line   bool // something stands on the line
}

// plainText keeps headings, list marks, link targets and preformatted text.
func plainText(page string) string {
	w := &textWriter{}
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return strings.TrimSpace(w.b.String())
		case html.TextToken:
			w.text(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			w.open(t)
		case html.EndTagToken:
			name, _ := z.TagName()
			w.close(string(name))
		}
	}
}

func (w *textWriter) open(t html.Token) {
	name := t.Data
	if unseen[name] && t.Type == html.StartTagToken {
		w.hidden++
		return
	}
	if blocks[name] {
		w.newline()
	}
	switch name {
	case "h1", "h2", "h3", "h4", "h5", "h6":
		w.text(strings.Repeat("#", int(name[1]-'0')) + " ")
	case "li":
		w.text("- ")
	case "td", "th":
		w.text(" | ")
	case "pre":
		w.pre++
	case "a":
		w.link = ""
		for _, at := range t.Attr {
			if at.Key == "href" && !strings.HasPrefix(at.Val, "#") && !strings.HasPrefix(strings.ToLower(at.Val), "javascript:") {
				w.link = at.Val
			}
		}
	case "img":
		for _, at := range t.Attr {
			if at.Key == "alt" && at.Val != "" {
				w.text("[image: " + at.Val + "] ")
			}
		}
	}
}

func (w *textWriter) close(name string) {
	switch {
	case unseen[name]:
		w.hidden = max(0, w.hidden-1)
		return
	case name == "a" && w.link != "":
		w.text(" (" + w.link + ")")
		w.link = ""
	case name == "pre":
		w.pre = max(0, w.pre-1)
	}
	if blocks[name] {
		w.newline()
	}
}

func (w *textWriter) newline() {
	if w.line {
		w.b.WriteByte('\n')
	}
	w.line, w.space = false, false
}

func (w *textWriter) text(s string) {
	if w.hidden > 0 || s == "" {
		return
	}
	if w.pre > 0 {
		w.b.WriteString(s)
		w.line = !strings.HasSuffix(s, "\n")
		return
	}
	w.space = w.space || strings.ContainsAny(s[:1], " \t\r\n")
	for i, word := range strings.Fields(s) {
		if (i > 0 || w.space) && w.line {
			w.b.WriteByte(' ')
		}
		w.b.WriteString(word)
		w.line, w.space = true, false
	}
	w.space = w.space || strings.ContainsAny(s[len(s)-1:], " \t\r\n")
}
