package permission

import (
	"strings"
)

// Offers lists the reusable rules that a person may grant for this call, narrowest first. None covers more than its text
// says, and each would really allow the call; an empty list means that only once is possible.
func (p *Policy) Offers(c Call) []string {
	sub, err := p.subject(c)
	if err != nil {
		return nil
	}
	var out []string
	for _, text := range sub.offers() {
		r, err := ParseRule(text, "")
		if err != nil {
			continue
		}
		if p.With(r).Decide(c, Situation{Posture: PostureAsk, Surface: Attended}).Verdict == Allow {
			out = append(out, text)
		}
	}
	return out
}

func (s *subject) offers() []string {
	tool := s.call.Tool
	switch {
	case tool == "bash":
		return s.bashOffers()
	case editTools[tool] && len(s.paths) == 1:
		return []string{familyEdit + "(" + s.offeredPath() + ")"}
	case editTools[tool]:
		return nil
	case readTools[tool] && len(s.paths) == 1:
		return []string{familyRead + "(" + s.offeredPath() + ")"}
	}
	return []string{tool}
}

// offeredPath is the path relative to the root where it lies inside, with pattern characters escaped.
func (s *subject) offeredPath() string {
	p := s.paths[0].Resolved
	if p == "" {
		p = s.paths[0].Raw
	}
	p = s.absolute(p)
	for _, root := range s.roots() {
		if rel, ok := relative(root, p); ok && !strings.HasPrefix(rel, "../") {
			p = rel
			break
		}
	}
	var b strings.Builder
	for _, r := range p {
		if strings.ContainsRune(`*?[]{}\`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (s *subject) bashOffers() []string {
	if precheck(s.line) != "" || strings.TrimSpace(s.line) == "" {
		return nil // nobody can read what such a grant covers
	}
	out := []string{familyBash + "=" + s.line}
	if s.class.Class != Plain || s.class.Ops || len(s.class.Parts) != 1 {
		return out
	}
	if n := prefixWords(s.class.Parts[0].Words); n > 0 {
		out = append(out, familyBash+"("+strings.Join(s.class.Parts[0].Words[:n], " ")+":*)")
	}
	return out
}

// prefixDepth is how many leading words of a command say what it does; programs that are not here get no prefix offer.
var prefixDepth = map[string]int{
	"go": 2, "cargo": 2, "git": 2, "docker": 2, "kubectl": 2, "terraform": 2, "gh": 3, "brew": 2, "apt": 2, "pip": 2, "pip3": 2,
	"npm": 2, "pnpm": 2, "yarn": 2, "bun": 2, "deno": 2, "dotnet": 2, "mvn": 2, "gradle": 2, "bundle": 2, "rake": 2, "make": 2, "just": 2, "task": 2, "bazel": 2,
	"ls": 1, "cat": 1, "head": 1, "tail": 1, "wc": 1, "grep": 1, "rg": 1, "diff": 1, "stat": 1, "file": 1, "pwd": 1, "tree": 1, "which": 1, "du": 1, "df": 1,
	"gofmt": 1, "golangci-lint": 1, "pytest": 1, "eslint": 1, "tsc": 1, "ruff": 1, "mypy": 1, "jest": 1, "vitest": 1, "prettier": 1, "shellcheck": 1,
}

// broadSubcommands run whatever follows, or publish; a prefix for them would cover too much.
var broadSubcommands = set("run exec x dlx create install push publish -c -C eval rm delete apply tool config clean reset api alias")

func prefixWords(words []string) int {
	n := prefixDepth[words[0]]
	if n == 0 || len(words) < n {
		return 0
	}
	if n > 1 && words[1] == "run" && len(words) > 2 && (words[0] == "npm" || words[0] == "pnpm" || words[0] == "yarn" || words[0] == "bun") {
		n = 3
	} else if n > 1 && broadSubcommands[words[1]] {
		return 0
	}
	for _, w := range words[:n] {
		if !plainPrefixWord(w) {
			return 0
		}
	}
	return n
}

// plainPrefixWord: no option, no path tricks, nothing that the rule grammar would read otherwise.
func plainPrefixWord(w string) bool {
	if strings.HasPrefix(w, "-") {
		return false
	}
	for _, r := range w {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' || r == ':' || r == '/') {
			return false
		}
	}
	return w != ""
}
