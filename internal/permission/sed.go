package permission

import "strings"

var sedGrammar = grammar{valued: "efl", attached: "i", flags: "nrEszubhVa" + "I", long: set("--expression --file --line-length"), permute: true}

// sed judges the script of sed: its e command and the e flag of s run a shell.
func (w *walker) sed(words []word) {
	src := phrase(words)
	opts, first, ok := sedGrammar.parse(words)
	given, sandbox := false, false
	var scripts []word
	for _, o := range opts {
		switch {
		case o.name == "-e" || longIs(o.name, "--expression"):
			given = true
			scripts = append(scripts, o.value)
		case o.name == "-f" || longIs(o.name, "--file"):
			given = true
			if o.value.dynamic() || fromInput(o.value.text) {
				w.raiseOpaque(src, "a script that is read from elsewhere")
			}
		case o.name == "--sandbox":
			sandbox = true
		case o.name == "--version" || o.name == "--help":
			return
		}
	}
	if !ok {
		w.raiseOpaque(src, "options of sed that are not understood")
		return
	}
	if !given && first < len(words) {
		scripts = append(scripts, words[first])
	}
	for _, s := range scripts {
		if !sandbox && !sedHarmless(s.masked) {
			w.raiseOpaque(s.src, "a sed script that runs a shell or is not understood")
		}
	}
}

func longIs(given, full string) bool { return len(given) > 3 && strings.HasPrefix(full, given) }

// sedScript reads one sed script.
type sedScript struct {
	s string
	i int
}

// sedHarmless tells that a script is understood and runs nothing. Holes stand for computed pieces; they are accepted
// only inside patterns, replacements and text.
func sedHarmless(script string) bool {
	p := &sedScript{s: script}
	for {
		p.skip(" \t\n;}")
		if p.i >= len(p.s) {
			return true
		}
		if !p.addresses() || !p.command() {
			return false
		}
	}
}

func (p *sedScript) skip(chars string) {
	for p.i < len(p.s) && strings.IndexByte(chars, p.s[p.i]) >= 0 {
		p.i++
	}
}

func (p *sedScript) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

// addresses reads zero, one or two addresses and the negation.
func (p *sedScript) addresses() bool {
	for n := 0; n < 2; n++ {
		if !p.address() {
			return false
		}
		p.skip(" \t")
		if p.peek() != ',' {
			break
		}
		p.i++
		p.skip(" \t")
	}
	p.skip("! \t")
	return true
}

func (p *sedScript) address() bool {
	switch c := p.peek(); {
	case c == '/':
		p.i++
		if !p.until('/', true) {
			return false
		}
		p.skip("IM")
	case c == '\\':
		if p.i+1 >= len(p.s) {
			return false
		}
		delim := p.s[p.i+1]
		p.i += 2
		if delim == '\n' || delim == '\\' || !p.until(delim, true) {
			return false
		}
		p.skip("IM")
	default:
		p.skip("0123456789$~+")
	}
	return true
}

// bracket moves to the closing bracket of an expression like [^]/[:space:]].
func (p *sedScript) bracket() bool {
	j := p.i + 1
	if j < len(p.s) && p.s[j] == '^' {
		j++
	}
	if j < len(p.s) && p.s[j] == ']' {
		j++
	}
	for ; j < len(p.s); j++ {
		switch {
		case p.s[j] == ']':
			p.i = j
			return true
		case p.s[j] == '\\' || p.s[j] == '\n':
			return false // versions differ
		case p.s[j] == '[' && j+1 < len(p.s) && strings.IndexByte(":.=", p.s[j+1]) >= 0:
			end := strings.Index(p.s[j+2:], p.s[j+1:j+2]+"]")
			if end < 0 {
				return false
			}
			j += end + 3
		}
	}
	return false
}

// until moves behind the next delimiter that is not escaped; in a regular expression it is text inside brackets.
func (p *sedScript) until(delim byte, regex bool) bool {
	for ; p.i < len(p.s); p.i++ {
		switch c := p.s[p.i]; {
		case c == '\\':
			p.i++
		case c == delim:
			p.i++
			return true
		case c == '\n':
			return false
		case c == '[' && regex && !p.bracket():
			return false
		}
	}
	return false
}

func (p *sedScript) command() bool {
	c := p.peek()
	p.i++
	switch c {
	case '{':
		return true
	case '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
		return p.end()
	case 'l', 'L', 'q', 'Q':
		p.skip(" \t0123456789")
		return p.end()
	case 's':
		return p.substitute()
	case 'y':
		delim := p.peek()
		p.i++
		return delim != 0 && delim < 0x80 && p.until(delim, false) && p.until(delim, false) && p.end()
	case 'a', 'i', 'c':
		return p.text()
	case 'r', 'R', 'w', 'W', '#':
		p.line()
		return true
	case ':', 'b', 't', 'T', 'v':
		p.label()
		return true
	}
	return false
}

// end accepts blanks and then the end of a command.
func (p *sedScript) end() bool {
	p.skip(" \t")
	c := p.peek()
	if c == '#' {
		p.line()
		return true
	}
	return p.i >= len(p.s) || c == ';' || c == '\n' || c == '}'
}

func (p *sedScript) substitute() bool {
	delim := p.peek()
	p.i++
	if delim == 0 || delim == '\n' || delim == '\\' || delim >= 0x80 || !p.until(delim, true) || !p.until(delim, false) {
		return false
	}
	p.skip("gpiImM0123456789")
	if p.peek() == 'w' {
		p.line()
		return true
	}
	return p.end()
}

// text reads the text of a, i and c: up to a newline that is not escaped.
func (p *sedScript) text() bool {
	for ; p.i < len(p.s); p.i++ {
		switch p.s[p.i] {
		case '\\':
			p.i++
		case '\n':
			return true
		}
	}
	return true
}

func (p *sedScript) line() {
	for p.i < len(p.s) && p.s[p.i] != '\n' {
		p.i++
	}
}

func (p *sedScript) label() {
	for p.i < len(p.s) && p.s[p.i] != '\n' && p.s[p.i] != ';' && p.s[p.i] != '}' {
		p.i++
	}
}
