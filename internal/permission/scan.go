package permission

import "strings"

// ScanRuleLines finds, in TOML text, the line of every string in the arrays allow, ask and deny of [permissions] (also
// written permissions.allow or permissions = { allow = … }). Keys are "allow", "ask" and "deny"; the n-th number belongs to
// the n-th element. The TOML decoder gives no positions of values. Text that is no valid TOML gives whatever was found
// before the fault; the decoder reports the fault.
func ScanRuleLines(data []byte) map[string][]int {
	s := &lineScanner{text: string(data), line: 1, found: map[string][]int{}}
	s.document()
	return s.found
}

// lineScanner walks TOML text; it knows keys, tables, strings and brackets, and nothing else.
type lineScanner struct {
	text  string
	at    int
	line  int
	table []string
	found map[string][]int
}

func (s *lineScanner) document() {
	for s.at < len(s.text) {
		s.blank(true)
		switch {
		case s.at >= len(s.text):
			return
		case s.peek() == '[':
			s.header()
		default:
			s.entry(s.table)
			s.restOfLine()
		}
	}
}

func (s *lineScanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *lineScanner) next() {
	if s.peek() == '\n' {
		s.line++
	}
	s.at++
}

// blank skips blanks and, over lines, newlines and comments.
func (s *lineScanner) blank(lines bool) {
	for s.at < len(s.text) {
		switch c := s.peek(); {
		case c == ' ' || c == '\t':
			s.next()
		case lines && (c == '\n' || c == '\r'):
			s.next()
		case lines && c == '#':
			s.comment()
		default:
			return
		}
	}
}

func (s *lineScanner) comment() {
	for s.at < len(s.text) && s.peek() != '\n' {
		s.next()
	}
}

func (s *lineScanner) restOfLine() {
	for s.at < len(s.text) && s.peek() != '\n' {
		s.next()
	}
}

// header reads [a.b] or [[a.b]].
func (s *lineScanner) header() {
	for s.peek() == '[' {
		s.next()
	}
	s.table = s.key()
	s.restOfLine()
}

// key reads a dotted key.
func (s *lineScanner) key() []string {
	var out []string
	for {
		s.blank(false)
		switch c := s.peek(); {
		case c == '"' || c == '\'':
			out = append(out, s.str())
		default:
			start := s.at
			for s.at < len(s.text) && strings.IndexByte(" \t\r\n.=]#[{},\"'", s.peek()) < 0 {
				s.next()
			}
			out = append(out, s.text[start:s.at])
		}
		s.blank(false)
		if s.peek() != '.' {
			return out
		}
		s.next()
	}
}

// entry reads key = value below a table.
func (s *lineScanner) entry(table []string) {
	start := s.at
	path := append(append([]string(nil), table...), s.key()...)
	s.blank(false)
	if s.peek() != '=' {
		if s.at == start {
			s.next() // never stand still on text that is no TOML
		}
		return
	}
	s.next()
	s.value(path)
}

func (s *lineScanner) value(path []string) {
	s.blank(false)
	switch c := s.peek(); c {
	case '"', '\'':
		s.str()
	case '[':
		s.array(path)
	case '{':
		s.inline(path)
	default:
		for s.at < len(s.text) && strings.IndexByte(",]}\n#", s.peek()) < 0 {
			s.next()
		}
	}
}

func (s *lineScanner) array(path []string) {
	s.next()
	key := ruleKey(path)
	for s.at < len(s.text) {
		s.blank(true)
		switch c := s.peek(); c {
		case ']':
			s.next()
			return
		case ',':
			s.next()
		case '"', '\'':
			if key != "" {
				s.found[key] = append(s.found[key], s.line)
			}
			s.str()
		default:
			before := s.at
			s.value(nil)
			if s.at == before {
				return
			}
		}
	}
}

func (s *lineScanner) inline(path []string) {
	s.next()
	for s.at < len(s.text) {
		s.blank(true)
		switch s.peek() {
		case '}':
			s.next()
			return
		case ',':
			s.next()
		default:
			before := s.at
			s.entry(path)
			if s.at == before {
				return
			}
		}
	}
}

// ruleKey is the list that a path names, or "".
func ruleKey(path []string) string {
	if len(path) != 2 || path[0] != "permissions" {
		return ""
	}
	switch path[1] {
	case "allow", "ask", "deny":
		return path[1]
	}
	return ""
}

// str reads any of the four kinds of string and returns it without its quotes; escapes stay as they are.
func (s *lineScanner) str() string {
	quote := s.text[s.at : s.at+1]
	long := strings.Repeat(quote, 3)
	delim := quote
	if strings.HasPrefix(s.text[s.at:], long) {
		delim = long
	}
	for range delim {
		s.next()
	}
	start := s.at
	for s.at < len(s.text) {
		switch {
		case quote == `"` && s.peek() == '\\':
			s.next()
			s.next()
		case strings.HasPrefix(s.text[s.at:], delim):
			out := s.text[start:s.at]
			for range delim {
				s.next()
			}
			for len(delim) == 3 && s.peek() == quote[0] {
				s.next() // up to two quotes may stand before the closing ones
			}
			return out
		case len(delim) == 1 && s.peek() == '\n':
			return s.text[start:s.at]
		default:
			s.next()
		}
	}
	return s.text[min(start, len(s.text)):]
}
