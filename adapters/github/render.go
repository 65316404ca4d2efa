package github

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"reasonix/internal/chat"
)

// Limits are in characters; GitHub takes 65,536, the rest is for marks and fences.
const (
	commentLimit = 60000
	statusLimit  = 20000
	longestFence = 200
)

// rendered is a message in GitHub's terms: the comment, and what goes into comments before it.
type rendered struct {
	main  string
	parts []string
}

// render lays a message out. Nothing is cut: while the comment is too long, first the verbatim blocks, then the facts, then
// the prose move whole into parts, and the comment says so.
func render(m chat.Message) (rendered, error) {
	var r rendered
	m.Title, m.Text, m.Footer = chat.Visible(m.Title), chat.Visible(m.Text), chat.Visible(m.Footer)
	if m.Kind == chat.KindStatus { // edited again and again; parts would flood the issue
		m.Text = clip(m.Text, statusLimit)
	}
	if m.Kind == chat.KindAsk {
		m.Title, m.Text, m.Footer = harmless(m.Title), harmless(m.Text), harmless(m.Footer)
	}
	text, facts, blocks := prose(strings.TrimSpace(m.Text)), factList(m.Fields), inlineBlocks(m.Blocks)
	moved := []func(){
		func() { blocks = r.move(m.Blocks) },
		func() { facts = r.moveOne("facts", facts) },
		func() { text = r.moveOne("text", text) },
	}
	for step := 0; ; step++ {
		r.main = assemble(m, text, facts, blocks)
		if utf8.RuneCountInString(r.main) <= commentLimit {
			break
		}
		if step == len(moved) {
			return rendered{}, errors.New("title, answers and footer alone are longer than a comment may be")
		}
		moved[step]()
	}
	if strings.TrimSpace(r.main) == "" {
		return rendered{}, errors.New("message has no content")
	}
	return r, nil
}

func assemble(m chat.Message, text, facts, blocks string) string {
	var title, footer string
	if t := joinLines(m.Title); t != "" {
		title = "### " + t
	}
	if f := joinLines(m.Footer); f != "" {
		footer = "<sub>" + strings.ReplaceAll(f, "<", "&lt;") + "</sub>"
	}
	var sections []string
	for _, s := range []string{title, calls(m), text, facts, blocks, answers(m), footer} {
		if s != "" {
			sections = append(sections, s)
		}
	}
	return strings.Join(sections, "\n\n")
}

func oneLine(s string) string { return joinLines(chat.Visible(s)) }

// joinLines makes one line that opens no block, folds nothing away and calls nobody.
func joinLines(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	s = tagStart.ReplaceAllString(strings.ReplaceAll(s, "<!--", "&lt;!--"), "<"+joiner+"${1}")
	return mention.ReplaceAllString(s, "${1}@"+joiner+"${2}")
}

var login = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})$`)

// calls mentions who is asked, while there is something to do.
func calls(m chat.Message) string {
	var names []string
	for _, a := range m.Mentions {
		if a.Kind == "github" && !m.Settled && login.MatchString(a.ID) {
			names = append(names, "@"+a.ID)
		}
	}
	return strings.Join(names, " ")
}

func factList(fields []chat.Field) string {
	var lines []string
	for _, f := range fields {
		value := chat.Visible(f.Value)
		if strings.Contains(value, "\n") {
			value = "\n\n" + indent(fenced("", value)) + "\n"
		} else {
			value = " " + span(value)
		}
		lines = append(lines, "- **"+oneLine(f.Label)+":**"+value)
	}
	return strings.Join(lines, "\n")
}

// span shows a short value letter by letter.
func span(s string) string {
	if strings.TrimSpace(s) == "" {
		return ""
	}
	ticks := strings.Repeat("`", longestRun(s, '`')+1)
	if len(ticks) > 1 || s[0] == ' ' || s[len(s)-1] == ' ' {
		return ticks + " " + s + " " + ticks
	}
	return ticks + s + ticks
}

func indent(s string) string { return "  " + strings.ReplaceAll(s, "\n", "\n  ") }

func inlineBlocks(blocks []chat.Block) string {
	var list []string
	for i, b := range blocks {
		if b.Text == "" {
			continue
		}
		list = append(list, blockTitle(b, i)+"\n\n"+fenced(b.Lang, chat.Visible(b.Text)))
	}
	return strings.Join(list, "\n\n")
}

func blockTitle(b chat.Block, i int) string {
	name := oneLine(b.Name)
	if name == "" {
		name = fmt.Sprintf("text %d", i+1)
	}
	title := "**" + strings.ReplaceAll(name, "*", `\*`) + "**"
	if chat.Visible(b.Text) != b.Text {
		title += " (invisible characters are shown as escapes)"
	}
	return title
}

var langWord = regexp.MustCompile(`^[A-Za-z0-9+#-]{1,20}$`)

// fenced puts text between fences that are longer than any in it, so that it cannot leave them.
func fenced(lang, text string) string {
	if !langWord.MatchString(lang) {
		lang = ""
	}
	text = strings.TrimSuffix(text, "\n")
	run := longestRun(text, '`')
	if run > longestFence {
		return indent(indent(text)) // indented code needs no fence
	}
	ticks := strings.Repeat("`", max(3, run+1))
	return ticks + lang + "\n" + text + "\n" + ticks
}

func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// move puts the verbatim blocks into comments of their own and returns what the main comment says instead.
func (r *rendered) move(blocks []chat.Block) string {
	var notes []string
	for i, b := range blocks {
		if b.Text == "" {
			continue
		}
		shown := chat.Visible(b.Text)
		limit := commentLimit - 2000
		if longestRun(shown, '`') > longestFence {
			limit /= 5 // every line may grow by four blanks
		}
		chunks := chunk(shown, limit)
		for n, c := range chunks {
			r.parts = append(r.parts, fmt.Sprintf("%s, part %d of %d\n\n%s", blockTitle(b, i), n+1, len(chunks), fenced(b.Lang, c)))
		}
		sum := sha256.Sum256([]byte(shown))
		notes = append(notes, fmt.Sprintf("%s: shown whole in the comments above (%d characters, SHA-256 `%x`)", blockTitle(b, i), utf8.RuneCountInString(shown), sum[:8]))
	}
	return strings.Join(notes, "\n\n")
}

func (r *rendered) moveOne(name, s string) string {
	if s == "" {
		return ""
	}
	r.parts = append(r.parts, chunk(s, commentLimit-2000)...)
	return "_The " + name + " stands in the comments above._"
}

// chunk cuts text into pieces of at most limit characters, at line ends where it can.
func chunk(s string, limit int) []string {
	runes := []rune(s)
	var list []string
	for len(runes) > limit {
		cut := limit
		for i := limit; i > limit/2; i-- {
			if runes[i-1] == '\n' {
				cut = i
				break
			}
		}
		list = append(list, string(runes[:cut]))
		runes = runes[cut:]
	}
	return append(list, string(runes))
}

// answers says with which comment each button is pressed.
func answers(m chat.Message) string {
	if m.Kind != chat.KindAsk || m.Settled || len(m.Buttons) == 0 {
		return ""
	}
	lines := []string{"Answer with a comment that starts with one of these lines:", ""}
	for _, b := range m.Buttons {
		words := "/answer " + m.AskID + " " + b.Choice
		switch {
		case b.Choice == "approve-changes":
			words = "/approve " + m.AskID + " YOUR CHANGES"
		case b.Choice == "reject":
			words = "/deny " + m.AskID
		case b.Choice == "approve":
			words = "/approve " + m.AskID
		case b.Input:
			words = "/answer " + m.AskID + " YOUR TEXT"
		case b.Choice == "allow":
			words = "/approve " + m.AskID
		case b.Choice == "deny":
			words = "/deny " + m.AskID
		}
		line := "- " + oneLine(b.Label) + ": " + span(words)
		if b.Optional {
			line += ", and what to do instead behind it, if you like"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

var mention = regexp.MustCompile(`(^|\W)@([A-Za-z0-9])`)

// joiner stands between @ and a name, so that text of the model calls nobody.
const joiner = "\u2060"

// nestedFence is a run of fence characters that does not start its line: whether it opens code depends on lists and quotes.
var nestedFence = regexp.MustCompile("(?m)^[^\n`~]+(?:`{3,}|~{3,})")

// prose keeps markdown as it is, except that it calls nobody and hides nothing in HTML comments. Fenced code stays, unless
// it is doubtful where it ends.
func prose(md string) string {
	doubtful := nestedFence.MatchString(md)
	var code fence
	lines := strings.Split(md, "\n")
	for i, line := range lines {
		if code.next(line) && !doubtful {
			continue
		}
		line = strings.ReplaceAll(line, "<!--", "&lt;!--")
		lines[i] = mention.ReplaceAllString(line, "${1}@"+joiner+"${2}")
	}
	if code.open != "" && !doubtful { // an open fence would swallow what stands below
		lines = append(lines, code.open)
	}
	return strings.Join(lines, "\n")
}

var tagStart = regexp.MustCompile(`<([A-Za-z/!?])`)

var fenceRun = regexp.MustCompile("``(`+)|~~(~+)")

// harmless is for the words around an ask: HTML shows as text, and where it is doubtful which fence ends which, none is one,
// so that nothing can fold away or swallow what is asked.
func harmless(md string) string {
	md = tagStart.ReplaceAllString(md, "<"+joiner+"${1}")
	if !nestedFence.MatchString(md) {
		return md
	}
	return fenceRun.ReplaceAllStringFunc(md, func(run string) string { return strings.Join(strings.Split(run, ""), joiner) })
}
