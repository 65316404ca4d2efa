package console

import (
	"html"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

var marks = regexp.MustCompile(`<span class="esc" title="[^"<>]*">([^<]*)</span>`)

func TestWhatWouldHideIsShown(t *testing.T) {
	for in, want := range map[string]string{
		"go test ./...\n\tnext":     "go test ./...\n\tnext",
		"a\u202eb":                  `a[\u202e]b`,
		"zero\u200bwidth":           `zero[\u200b]width`,
		"joined\u2060up":            `joined[\u2060]up`,
		"no\u00a0break":             `no[\u00a0]break`,
		"a\rb":                      `a[\u000d]b`,
		"\x1b[31mred":               `[\u001b][31mred`,
		"\x9bred":                   `[\x9b]red`,
		"c1\u0085next":              `c1[\u0085]next`,
		"line\u2028sep":             `line[\u2028]sep`,
		"hangul\u3164filler":        `hangul[\u3164]filler`,
		"tag\U000e0041s":            `tag[\U000e0041]s`,
		"variation\ufe0f":           `variation[\ufe0f]`,
		"soft\u00adhyphen":          `soft[\u00ad]hyphen`,
		"braille\u2800blank":        `braille[\u2800]blank`,
		"bad\xff\xfebytes":          `bad[\xff][\xfe]bytes`,
		"a replacement \ufffd":      "a replacement \ufffd",
		"<b>&\"'":                   "<b>&\"'",
		`a literal \u202e is plain`: `a literal \u202e is plain`,
		"héllo 世界":                  "héllo 世界",
	} {
		got := html.UnescapeString(marks.ReplaceAllString(string(visible(in)), "[$1]"))
		if got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		if n := strings.Count(want, "["+`\`); n != hidden(in) {
			t.Errorf("%q: hidden counts %d, want %d", in, hidden(in), n)
		}
	}
}

func TestProseKeepsEmojiAndShowsWhatReorders(t *testing.T) {
	if got := prose("👩‍💻 ok\u202etxt\u00a0now\r\n"); got != "👩‍💻 ok\\u202etxt\u00a0now\n" {
		t.Errorf("%q", got)
	}
	if got := line("  a\n\n b\u200b c ", 4); got != `a b…` {
		t.Errorf("%q", got)
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"a\u202eb", "\xff<script>", "&amp;\u200d", "\x00\x7f", "\ufffd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := string(visible(s))
		if !utf8.ValidString(out) {
			t.Fatalf("%q: no text: %q", s, out)
		}
		for _, r := range out {
			if hides(r) {
				t.Fatalf("%q: %U is in the output", s, r)
			}
		}
		bare := marks.ReplaceAllString(out, "")
		if strings.ContainsAny(bare, "<>") {
			t.Fatalf("%q: markup: %q", s, bare)
		}
		if n := len(marks.FindAllString(out, -1)); n != hidden(s) {
			t.Fatalf("%q: %d marks, %d counted", s, n, hidden(s))
		}
	})
}

func TestMarkdownOfAModelCannotReachOut(t *testing.T) {
	for in, want := range map[string]string{
		"**bold** `code` <T>":                          "<p><strong>bold</strong> <code>code</code> &lt;T&gt;</p>",
		"<script>alert(1)</script>":                    "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>",
		"<img src=x onerror=alert(1)>":                 "<p>&lt;img src=x onerror=alert(1)&gt;</p>",
		"![pixel](https://evil.example/p.png)":         "<p>[picture: pixel https://evil.example/p.png]</p>",
		"[github.com](https://evil.example/x)":         `<p><a href="https://evil.example/x" rel="noopener noreferrer nofollow" target="_blank">github.com</a> <span class="host">(evil.example)</span></p>`,
		"[click](javascript:alert(1))":                 "<p>click</p>",
		"[click](data:text/html,x)":                    "<p>click</p>",
		"<https://go.dev/x>":                           `<p><a href="https://go.dev/x" rel="noopener noreferrer nofollow" target="_blank">https://go.dev/x</a></p>`,
		"```\n<b>\u202e\n```":                          "<pre><code>&lt;b&gt;\\u202e\n</code></pre>",
		"- a\n- b":                                     "<ul>\n<li>a</li>\n<li>b</li>\n</ul>",
		"[a](https://go.dev/\"onmouseover=\"alert(1))": `<p><a href="https://go.dev/&#34;onmouseover=&#34;alert(1)" rel="noopener noreferrer nofollow" target="_blank">a</a> <span class="host">(go.dev)</span></p>`,
	} {
		if got := strings.TrimSpace(string(markdown(in))); got != want {
			t.Errorf("%q:\n got %s\nwant %s", in, got, want)
		}
	}
	if got := string(markdown(strings.Repeat("*", maxMarkdown+1))); !strings.HasPrefix(got, "<pre>") {
		t.Error("a huge text is parsed")
	}
}

var tag = regexp.MustCompile(`<[^>]*>`)

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"[a](https://x.y \"t\")", "<a href=x>", "![x](y)", "| a |\n|---|\n| <b> |", "[x]: https://a.b 'q'\n[x]", "<https://a\"b>"} {
		f.Add(s)
	}
	bad := regexp.MustCompile(`(?i)^<(script|img|iframe|object|embed|form|input|style|link|meta|base|svg)|\son\w+=|javascript:|data:`)
	f.Fuzz(func(t *testing.T, s string) {
		for _, m := range tag.FindAllString(string(markdown(s)), -1) {
			name := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(m, `""`)
			if bad.MatchString(name) {
				t.Fatalf("%q: %s", s, m)
			}
		}
	})
}
