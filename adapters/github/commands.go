package github

import (
	"regexp"
	"strings"

	"reasonix/internal/chat"
)

const (
	ownCommand  = "/reasonix"
	maxCommands = 10 // in one comment
)

// command is one thing that a comment asks for.
type command struct {
	verb  chat.Verb
	words string // "/reasonix fix"; empty after a mention
	text  string
	press *chat.Press
	odd   string // not understood: why
}

// shared are the command words that stand for themselves at the start of a line.
var shared = map[string]bool{"/approve": true, "/deny": true, "/answer": true, "/stop": true, "/status": true, "/help": true, "/posture": true}

// commands reads what a comment asks for. Only the very start of a line counts, outside of code, quotes and what HTML
// comments hide from people. The lines that follow a command, up to the next one, belong to it.
func commands(body, bot string) []command {
	mention := mentionOf(bot)
	var list []command
	var open []string
	flush := func() {
		if open != nil && len(list) < maxCommands {
			list = append(list, readCommand(open, mention))
		}
		open = nil
	}
	var code fence
	hidden := false
	for line := range strings.SplitSeq(strings.ReplaceAll(body, "\r\n", "\n"), "\n") {
		inCode := code.next(line)
		if !inCode && !hidden && starts(line, mention) {
			flush()
			open = []string{line}
			continue
		}
		if !inCode {
			hidden = stillHidden(line, hidden)
		}
		if open != nil {
			open = append(open, line)
		}
	}
	flush()
	return list
}

func mentionOf(bot string) *regexp.Regexp {
	bot = strings.TrimSuffix(bot, "[bot]")
	if bot == "" {
		return nil
	}
	return regexp.MustCompile(`(?i)^@` + regexp.QuoteMeta(bot) + `(?:\[bot\])?(?:[\s,:]+|$)`)
}

func starts(line string, mention *regexp.Regexp) bool {
	if mention != nil && mention.MatchString(line) {
		return true
	}
	word := firstWord(line)
	return word == ownCommand || shared[word]
}

func firstWord(line string) string {
	if line == "" || line[0] != '/' {
		return ""
	}
	return strings.ToLower(strings.Fields(line)[0])
}

func readCommand(lines []string, mention *regexp.Regexp) command {
	first, rest := strings.TrimSpace(lines[0]), strings.TrimSpace(strings.Join(lines[1:], "\n"))
	if shared[firstWord(lines[0])] {
		c := readVerb(first, rest)
		if c.verb == chat.VerbWork {
			return command{verb: chat.VerbIgnore, odd: "incomplete command"}
		}
		return c
	}
	words := ""
	if mention != nil && mention.MatchString(lines[0]) {
		first = mention.ReplaceAllString(lines[0], "")
	} else {
		words, first = ownCommand, first[len(ownCommand):]
	}
	first = strings.TrimSpace(first)
	if c := readVerb(first, rest); c.verb != chat.VerbWork {
		c.words = words
		return c
	}
	text := strings.TrimSpace(first + "\n" + rest)
	if words != "" && first != "" {
		word := strings.Fields(first)[0]
		words += " " + strings.ToLower(word)
		text = strings.TrimSpace(strings.TrimPrefix(text, word))
	}
	return command{words: words, text: text}
}

// readVerb reads the shared words of the first line; only an answer takes the lines after it.
func readVerb(first, rest string) command {
	verb, text, press := chat.ParseVerb(first)
	if press != nil && press.Choice == "answer" {
		press.Text = strings.TrimSpace(press.Text + "\n" + rest)
		if press.Text == "" {
			return command{verb: chat.VerbIgnore, odd: "answer without text"}
		}
	}
	return command{verb: verb, text: text, press: press}
}

// fence follows fenced code blocks as CommonMark section 4.5 draws them.
type fence struct{ open string }

var fenceLine = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})(.*)$")

// next tells whether the line belongs to code, fences included.
func (f *fence) next(line string) bool {
	m := fenceLine.FindStringSubmatch(line)
	if f.open == "" {
		if m == nil || m[1][0] == '`' && strings.Contains(m[2], "`") {
			return false
		}
		f.open = m[1]
		return true
	}
	if m != nil && m[1][0] == f.open[0] && len(m[1]) >= len(f.open) && strings.TrimSpace(m[2]) == "" {
		f.open = ""
	}
	return true
}

// stillHidden follows HTML comments, which people do not see.
func stillHidden(line string, hidden bool) bool {
	for {
		mark := "<!--"
		if hidden {
			mark = "-->"
		}
		_, after, found := strings.Cut(line, mark)
		if !found {
			return hidden
		}
		line, hidden = after, !hidden
	}
}
