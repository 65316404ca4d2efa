package permission

import (
	"encoding/json"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// subject is a call as rules see it; it is made once per decision.
type subject struct {
	call  Call
	args  map[string]json.RawMessage
	line  string // bash
	class Classification
	paths []Path
	home  string
	fold  bool // the disk does not tell upper from lower case
}

// names tells whether the rule is about the tool of the call.
func (r *Rule) names(tool string) bool {
	switch r.tool {
	case familyBash:
		return tool == "bash"
	case familyEdit:
		return editTools[tool]
	case familyRead:
		return readTools[tool]
	}
	if strings.HasPrefix(r.tool, "mcp__") {
		if glob(r.tool, tool) {
			return true
		}
		return !strings.Contains(r.tool[len("mcp__"):], "__") && strings.HasPrefix(tool, r.tool+"__")
	}
	return r.tool == tool
}

// catches tells whether a deny or ask rule is about the call: any part of it is enough.
func (r *Rule) catches(s *subject) bool {
	if !r.names(s.call.Tool) {
		return s.call.Tool == "bash" && r.catchesTarget(s)
	}
	switch r.form {
	case formAny:
		return true
	case formPath:
		for _, p := range s.paths {
			if r.matchesPath(s, p.Raw) || p.Resolved != "" && r.matchesPath(s, p.Resolved) {
				return true
			}
		}
		return s.patternMatches(r)
	}
	if r.tool == familyBash {
		return r.catchesLine(s)
	}
	return s.generic(r)
}

// covers tells whether an allow rule is about the whole call; for bash see coveredBy.
func (r *Rule) covers(s *subject) bool {
	if !r.names(s.call.Tool) || r.tool == familyBash {
		return false
	}
	switch r.form {
	case formAny:
		return true
	case formPath:
		if len(s.paths) == 0 {
			return s.patternMatches(r)
		}
		for _, p := range s.paths {
			if !r.matchesPath(s, p.Raw) || p.Resolved != "" && !r.matchesPath(s, p.Resolved) {
				return false
			}
		}
		return true
	}
	return s.generic(r)
}

// patternMatches compares a legacy grep(x) or glob(x) rule with the pattern argument.
func (s *subject) patternMatches(r *Rule) bool {
	if r.tool != "grep" && r.tool != "glob" {
		return false
	}
	p := s.text("pattern")
	return p != "" && (p == r.spec || glob(r.spec, p))
}

// generic compares a specifier with the subject of any other tool.
func (s *subject) generic(r *Rule) bool {
	for _, key := range []string{"command", "path", "file_path", "pattern", "url", "name"} {
		if v := s.text(key); v != "" {
			return glob(r.spec, v)
		}
	}
	return false
}

func (s *subject) text(key string) string {
	var v string
	if raw, ok := s.args[key]; ok && json.Unmarshal(raw, &v) == nil {
		return v
	}
	return ""
}

// catchesLine looks at every simple command of the line, under any path of its program.
func (r *Rule) catchesLine(s *subject) bool {
	line := strings.TrimSpace(s.line)
	switch r.form {
	case formLiteral:
		if s.line == r.spec || line == strings.TrimSpace(r.spec) {
			return true
		}
	case formExact, formGlob:
		if line == r.spec || r.form == formGlob && glob(r.spec, line) {
			return true
		}
	}
	for _, p := range s.class.Parts {
		if r.catchesPart(p.Words) {
			return true
		}
	}
	return false
}

func (r *Rule) catchesPart(words []string) bool {
	if len(words) == 0 {
		return false
	}
	if r.catchesWords(words) {
		return true
	}
	base := baseName(words[0])
	short := words
	if base != words[0] {
		short = append([]string{base}, words[1:]...)
		if r.catchesWords(short) {
			return true
		}
	}
	if base == "git" || base == "go" {
		if bare := withoutGlobals(short); len(bare) != len(short) {
			return r.catchesWords(bare)
		}
	}
	return false
}

// withoutGlobals drops the options before the subcommand, so that git -C x push is git push.
func withoutGlobals(words []string) []string {
	all := make([]word, len(words))
	for i, t := range words {
		all[i] = literal(t)
	}
	first := gitSubcommand(all)
	if words[0] == "go" {
		_, first, _ = grammar{single: true, long: set("--C")}.parse(all)
	}
	if first <= 1 || first >= len(words) {
		return words
	}
	return append([]string{words[0]}, words[first:]...)
}

func (r *Rule) catchesWords(words []string) bool {
	joined := strings.Join(words, " ")
	switch r.form {
	case formPrefix:
		for _, p := range r.spellings() {
			if joined == p || strings.HasPrefix(joined, p+" ") {
				return true
			}
		}
	case formExact, formLiteral:
		for _, p := range r.spellings() {
			if joined == p {
				return true
			}
		}
	case formGlob:
		if glob(r.spec, joined) || strings.HasSuffix(r.spec, " *") && glob(strings.TrimSuffix(r.spec, " *"), joined) {
			return true
		}
		head, tail, _ := strings.Cut(r.spec, " ")
		if base := baseName(head); base != head && !strings.Contains(head, "*") {
			return glob(strings.TrimSpace(base+" "+tail), joined)
		}
	}
	return false
}

// spellings are the rule's words joined, as written and with the bare name of the program.
func (r *Rule) spellings() []string {
	toks := r.toks
	if r.form == formLiteral {
		toks, _ = specWords(r.spec)
	}
	if len(toks) == 0 {
		return nil
	}
	full := strings.Join(toks, " ")
	base := baseName(toks[0])
	if base == toks[0] || base == "" {
		return []string{full}
	}
	return []string{full, strings.Join(append([]string{base}, toks[1:]...), " ")}
}

// coversPart tells whether an allow rule is about one simple command: the same program by the same path, word by word.
func (r *Rule) coversPart(p SimpleCommand) bool {
	if r.tool != familyBash {
		return false
	}
	switch r.form {
	case formAny:
		return true
	case formPrefix, formExact:
		if len(p.Words) < len(r.toks) || r.form == formExact && len(p.Words) != len(r.toks) {
			return false
		}
		for i, t := range r.toks {
			if p.Words[i] != t {
				return false
			}
		}
		// A rule for a wrapper alone says nothing about what it wraps.
		return p.Wraps == 0 || len(r.toks) > p.Wraps
	case formGlob:
		if p.Wraps > 0 {
			return false
		}
		return glob(r.spec, escapedJoin(p.Words)) || strings.HasSuffix(r.spec, " *") && glob(strings.TrimSuffix(r.spec, " *"), escapedJoin(p.Words))
	}
	return false
}

// escapedJoin joins words so that a blank inside a word is not taken for one between words.
func escapedJoin(words []string) string {
	out := make([]string, len(words))
	for i, t := range words {
		out[i] = strings.ReplaceAll(t, " ", "\x00")
	}
	return strings.Join(out, " ")
}

// glob matches * against anything, everything else against itself.
func glob(pattern, s string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	if !strings.HasPrefix(s, head) {
		return false
	}
	s = s[len(head):]
	for {
		var next string
		next, rest, star = strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(s, next)
		}
		i := strings.Index(s, next)
		if i < 0 {
			return false
		}
		s = s[i+len(next):]
	}
}

// catchesTarget compares Edit and Read rules with the files that redirects name: a refused write is refused through the shell too.
func (r *Rule) catchesTarget(s *subject) bool {
	if r.form != formPath || r.tool != familyEdit && r.tool != familyRead && !editTools[r.tool] && r.tool != "read_file" {
		return false
	}
	write := r.tool == familyEdit || editTools[r.tool]
	for _, t := range s.class.Targets {
		if t.Write == write && r.matchesPath(s, t.Path) {
			return true
		}
	}
	return false
}

// matchesPath compares a path, relative or absolute, with the pattern, relative or absolute.
func (r *Rule) matchesPath(s *subject, raw string) bool {
	if raw == "" {
		return false
	}
	pattern := filepath.ToSlash(r.spec)
	if rest, ok := strings.CutPrefix(pattern, "~/"); ok && s.home != "" {
		pattern = path.Join(filepath.ToSlash(s.home), rest)
	}
	abs := s.absolute(raw)
	if s.fold {
		pattern, abs = strings.ToLower(pattern), strings.ToLower(abs)
	}
	if path.IsAbs(pattern) || hasDrive(pattern) {
		return doublestar.MatchUnvalidated(cleanPattern(pattern), abs)
	}
	pattern = cleanPattern(pattern)
	if strings.HasPrefix(pattern, "**/") && doublestar.MatchUnvalidated("/"+pattern, abs) {
		return true
	}
	for _, root := range s.roots() {
		rel, ok := relative(root, abs)
		if !ok || strings.HasPrefix(rel, "../") != strings.HasPrefix(pattern, "../") {
			continue
		}
		if doublestar.MatchUnvalidated(pattern, rel) {
			return true
		}
	}
	return false
}

// roots are the workspace root as given and free of symlinks.
func (s *subject) roots() []string {
	roots := []string{filepath.ToSlash(s.call.Root)}
	if s.call.RealRoot != "" && s.call.RealRoot != s.call.Root {
		roots = append(roots, filepath.ToSlash(s.call.RealRoot))
	}
	if s.fold {
		for i := range roots {
			roots[i] = strings.ToLower(roots[i])
		}
	}
	return roots
}

func (s *subject) absolute(raw string) string {
	p := filepath.ToSlash(raw)
	if rest, ok := strings.CutPrefix(p, "~/"); ok && s.home != "" {
		p = path.Join(filepath.ToSlash(s.home), rest)
	}
	if !path.IsAbs(p) && !hasDrive(p) {
		p = path.Join(filepath.ToSlash(s.call.Root), p)
	}
	return path.Clean(p)
}

func hasDrive(p string) bool {
	return len(p) > 2 && p[1] == ':' && p[2] == '/' && (p[0]|0x20 >= 'a' && p[0]|0x20 <= 'z')
}

// cleanPattern removes . segments and doubled slashes; .. inside a pattern is resolved as in a path.
func cleanPattern(p string) string {
	if strings.Contains(p, "//") || strings.Contains(p, "./") || strings.HasSuffix(p, "/.") || strings.HasSuffix(p, "/..") {
		return path.Clean(p)
	}
	return p
}

// relative is abs as seen from root; paths outside start with ../.
func relative(root, abs string) (string, bool) {
	rel, err := filepath.Rel(root, abs)
	if err != nil {
		return "", false
	}
	rel = filepath.ToSlash(rel)
	if rel == ".." {
		rel = "../."
	}
	return rel, true
}
