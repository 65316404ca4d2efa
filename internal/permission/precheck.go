package permission

import (
	"strings"
	"unicode/utf8"
)

// precheck refuses, before the parser sees the line, what costs too much to parse and what the parser is known to read
// differently from bash. It returns the reason, or "".
func precheck(line string) string {
	if len(line) > maxLine {
		return "longer than 8 KiB"
	}
	if !utf8.ValidString(line) {
		return "not valid UTF-8"
	}
	for _, r := range line {
		if r == '\n' || r == '\t' || r >= 0x20 && r < 0x7f || r > 0x9f {
			continue
		}
		return "holds a control character"
	}
	if why := continuations(line); why != "" {
		return why
	}
	return nesting(line)
}

// continuations refuses a backslash-newline where bash, joining lines before it reads tokens, may see another token
// than the parser does: next to an operator, or anywhere in a line with a here-document.
func continuations(line string) string {
	if !strings.Contains(line, "\\\n") {
		return ""
	}
	if strings.Contains(line, "<<") {
		return "a joined line beside a here-document"
	}
	for i := 0; i+1 < len(line); {
		if line[i] != '\\' || line[i+1] != '\n' {
			i++
			continue
		}
		before := byte(' ')
		if i > 0 {
			before = line[i-1]
		}
		for i+1 < len(line) && line[i] == '\\' && line[i+1] == '\n' {
			i += 2
		}
		after := byte(' ')
		if i < len(line) {
			after = line[i]
		}
		if strings.IndexByte("$<>&|;(){}[]!=#~`\\\"'+@*?", before) >= 0 || strings.IndexByte("()[]{}=+<>&|;`'\"", after) >= 0 && !isBlank(before) {
			return "a line joined in the middle of an operator"
		}
	}
	return ""
}

func isBlank(b byte) bool { return b == ' ' || b == '\t' || b == '\n' }

// nesting refuses lines whose brackets or compound commands nest so deeply that parsing them is only costly. Quotes are
// not looked at: text with that many brackets is left to a person too.
func nesting(line string) string {
	depth := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			if depth > 0 {
				depth--
			}
		}
		if depth > maxNest {
			return "nested too deeply"
		}
	}
	if strings.Count(line, "`") > 2*maxNest {
		return "too many backticks"
	}
	words := 0
	for f := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(" \t\n;&|", r) }) {
		switch f {
		case "if", "while", "until", "for", "case", "select", "time", "!", "coproc", "function", "then", "do", "else", "elif":
			words++
		}
	}
	if words > 4*maxNest {
		return "too many compound commands"
	}
	return ""
}
