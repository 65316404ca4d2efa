package console

import (
	"bytes"
	"html"
	"html/template"
	"net/url"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

const maxMarkdown = 64 << 10

// writer turns a model's markdown into HTML. HTML in it is shown as text, pictures become links: nothing is fetched.
var writer = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(parser.NewEmphasisParser(), 500),
		),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)),
	goldmark.WithExtensions(extension.Table),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(links{}, 10))),
)

func markdown(s string) template.HTML {
	text := prose(s)
	var b bytes.Buffer
	if len(text) > maxMarkdown || writer.Convert([]byte(text), &b) != nil {
		return template.HTML("<pre>" + html.EscapeString(text) + "</pre>") // escaped here
	}
	return template.HTML(b.String()) // goldmark escapes; raw HTML is not parsed and links are rendered below
}

// links renders links with their real host beside a text that does not name it.
type links struct{}

func (l links) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindLink, l.link)
	r.Register(ast.KindImage, l.image)
	r.Register(ast.KindAutoLink, l.auto)
}

func (links) link(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	to := string(n.(*ast.Link).Destination)
	host := webHost(to)
	if host == "" {
		return ast.WalkContinue, nil // a path or another scheme: the text alone
	}
	if entering {
		openLink(w, to)
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString("</a>")
	if !strings.Contains(plainText(n, source), host) {
		_, _ = w.WriteString(` <span class="host">(` + html.EscapeString(host) + `)</span>`)
	}
	return ast.WalkContinue, nil
}

func (links) image(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	to := string(n.(*ast.Image).Destination)
	_, _ = w.WriteString("[picture: " + html.EscapeString(plainText(n, source)+" "+to) + "]")
	return ast.WalkSkipChildren, nil
}

func (links) auto(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	a := n.(*ast.AutoLink)
	to := string(a.URL(source))
	if webHost(to) == "" {
		_, _ = w.WriteString(html.EscapeString(string(a.Label(source))))
		return ast.WalkContinue, nil
	}
	openLink(w, to)
	_, _ = w.WriteString(html.EscapeString(string(a.Label(source))) + "</a>")
	return ast.WalkContinue, nil
}

func openLink(w util.BufWriter, to string) {
	_, _ = w.WriteString(`<a href="` + html.EscapeString(to) + `" rel="noopener noreferrer nofollow" target="_blank">`)
}

// webHost is the host of an http or https address, empty for anything else.
func webHost(to string) string {
	u, err := url.Parse(to)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return ""
	}
	return u.Host
}

func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := c.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}
