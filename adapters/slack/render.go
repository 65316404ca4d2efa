package slack

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"reasonix/internal/chat"
)

// Limits of Block Kit, in characters, with room to spare where the vendor's numbers are soft.
const (
	sectionLimit  = 2900 // of 3,000
	textSections  = 3    // sections of prose; longer prose goes along as a file
	fieldLimit    = 1900 // of 2,000
	fieldsInline  = 30   // facts shown as fields; more go along as a file
	inlineLimit   = 2500 // verbatim text of one block shown in place
	inlineTotal   = 6000 // verbatim text of one post shown in place
	inlineBlocks  = 10   // verbatim blocks with a place of their own
	previewLimit  = 600  // head of a text that goes along as a file
	labelLimit    = 75
	valueLimit    = 2000
	buttonsPerRow = 5
	buttonLimit   = 25
	fallbackLimit = 300
)

// rendered is a message in Slack's terms.
type rendered struct {
	text   string // for notifications
	blocks []slack.Block
	files  []attachment
	shown  int // characters of verbatim text in place
}

func (r rendered) options() []slack.MsgOption {
	return []slack.MsgOption{slack.MsgOptionText(r.text, false), slack.MsgOptionBlocks(r.blocks...),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl()}
}

// render lays a message out. Nothing is cut: what does not fit goes along as a file, and the post says so.
func render(m chat.Message) (rendered, error) {
	var r rendered
	r.text = fallback(m)
	r.head(m)
	r.prose(m)
	r.fields(m.Fields)
	for i, b := range m.Blocks {
		r.verbatim(b, i)
	}
	if m.Kind == chat.KindAsk && !m.Settled {
		if err := r.buttons(m); err != nil {
			return rendered{}, err
		}
	}
	r.footer(m.Footer)
	if len(r.blocks) == 0 {
		return rendered{}, errNoPost
	}
	return r, nil
}

func fallback(m chat.Message) string {
	s := m.Title
	if s == "" {
		s = m.Text
	}
	return escape(clip(chat.Visible(strings.TrimSpace(s)), fallbackLimit))
}

// head is the title and whom the post calls; people are called only while there is something to do.
func (r *rendered) head(m chat.Message) {
	var parts []slack.RichTextSectionElement
	if m.Title != "" {
		parts = append(parts, slack.NewRichTextSectionTextElement(chat.Visible(m.Title), &slack.RichTextSectionTextStyle{Bold: true}))
	}
	if !m.Settled {
		for _, a := range m.Mentions {
			if a.Kind != "slack" {
				continue
			}
			parts = append(parts, slack.NewRichTextSectionTextElement(" ", nil), slack.NewRichTextSectionUserElement(a.ID, nil))
		}
	}
	if len(parts) > 0 {
		r.blocks = append(r.blocks, slack.NewRichTextBlock("", slack.NewRichTextSection(parts...)))
	}
}

func (r *rendered) prose(m chat.Message) {
	text := strings.TrimSpace(m.Text)
	if text == "" {
		return
	}
	chunks := splitText(mrkdwn(chat.Visible(text)), sectionLimit)
	switch {
	case len(chunks) <= textSections:
	case m.Kind == chat.KindStatus: // edited again and again; a file each time would flood the thread
		chunks = append(chunks[:1:1], "_The status is longer than Slack shows._")
	default:
		r.files = append(r.files, attachment{"message.md", chat.Visible(text)})
		chunks = append(chunks[:1:1], "_The whole text is in the file message.md above._")
	}
	for _, c := range chunks {
		r.blocks = append(r.blocks, slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, c, false, false), nil, nil))
	}
}

func (r *rendered) fields(fields []chat.Field) {
	var cells []*slack.TextBlockObject
	var rest strings.Builder
	for i, f := range fields {
		value := chat.Visible(f.Value)
		cell := "*" + escape(chat.Visible(f.Label)) + "*\n" + escape(value)
		if i >= fieldsInline || utf8.RuneCountInString(cell) > fieldLimit {
			fmt.Fprintf(&rest, "%s\n%s\n\n", chat.Visible(f.Label), value)
			continue
		}
		cells = append(cells, slack.NewTextBlockObject(slack.MarkdownType, cell, false, false))
	}
	for len(cells) > 0 {
		n := min(10, len(cells))
		r.blocks = append(r.blocks, slack.NewSectionBlock(nil, cells[:n:n], nil))
		cells = cells[n:]
	}
	if rest.Len() > 0 {
		r.files = append(r.files, attachment{"facts.txt", rest.String()})
		r.note("More facts are in the file facts.txt above.")
	}
}

// verbatim shows text letter by letter: no markup is read in it, and what would be invisible is shown as an escape.
func (r *rendered) verbatim(b chat.Block, i int) {
	name, shown := fileName(b.Name, i), chat.Visible(b.Text)
	if shown == "" {
		return
	}
	note := name
	if shown != b.Text {
		note += " — invisible characters are shown as escapes"
	}
	n := utf8.RuneCountInString(shown)
	if n <= inlineLimit && r.shown+n <= inlineTotal && i < inlineBlocks {
		r.shown += n
		r.note(note)
		r.preformatted(shown)
		return
	}
	r.files = append(r.files, attachment{name, shown})
	sum := sha256.Sum256([]byte(shown))
	r.note(fmt.Sprintf("%s — whole text in the file above: %d characters, SHA-256 %x", note, n, sum[:8]))
	if i < inlineBlocks {
		r.preformatted(string([]rune(shown)[:min(n, previewLimit)]) + "\n[goes on in the file]")
	}
}

func (r *rendered) preformatted(s string) {
	if s == "" {
		return
	}
	pre := &slack.RichTextPreformatted{Type: slack.RTEPreformatted,
		Elements: []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement(s, nil)}}
	r.blocks = append(r.blocks, slack.NewRichTextBlock("", pre))
}

func (r *rendered) note(s string) {
	r.blocks = append(r.blocks, slack.NewContextBlock("", slack.NewTextBlockObject(slack.PlainTextType, clip(s, 1900), false, false)))
}

func (r *rendered) footer(s string) {
	if s = strings.TrimSpace(chat.Visible(s)); s != "" {
		r.note(s)
	}
}

// buttons stand at the end of an ask that is open. Labels that do not fit on a button are listed whole above them.
func (r *rendered) buttons(m chat.Message) error {
	if len(m.Buttons) > buttonLimit {
		return fmt.Errorf("ask %s has %d buttons, Slack takes %d", m.AskID, len(m.Buttons), buttonLimit)
	}
	var long strings.Builder
	var row []slack.BlockElement
	flush := func() {
		if len(row) > 0 {
			r.blocks = append(r.blocks, slack.NewActionBlock("", row...))
			row = nil
		}
	}
	for i, b := range m.Buttons {
		label := chat.Visible(b.Label)
		if utf8.RuneCountInString(label) > labelLimit {
			fmt.Fprintf(&long, "%d. %s\n", i+1, label)
			label = clip(fmt.Sprintf("%d. %s", i+1, label), labelLimit)
		}
		value, err := json.Marshal(buttonValue{Ask: m.AskID, Choice: b.Choice, Input: b.Input, Optional: b.Optional, Label: optionalLabel(b)})
		if err != nil || len(value) > valueLimit {
			return fmt.Errorf("ask %s: choice of button %d does not fit on a Slack button", m.AskID, i+1)
		}
		e := slack.NewButtonBlockElement(fmt.Sprintf("press_%d", i), string(value), plainObject(label))
		if b.Style == "primary" || b.Style == "danger" {
			e.Style = slack.Style(b.Style)
		}
		row = append(row, e)
	}
	all := row
	row = nil
	if long.Len() > 0 {
		r.verbatim(chat.Block{Name: "choices.txt", Text: long.String()}, 0)
	}
	for _, e := range all {
		row = append(row, e)
		if len(row) == buttonsPerRow {
			flush()
		}
	}
	flush()
	return nil
}

// fileName keeps a block's name harmless and never empty.
func fileName(name string, i int) string {
	name = strings.Map(func(c rune) rune {
		if strings.ContainsRune("/\\\n\t", c) {
			return '_'
		}
		return c
	}, chat.Visible(name))
	if name == "" {
		name = fmt.Sprintf("text-%d.txt", i+1)
	}
	return clip(name, 100)
}
