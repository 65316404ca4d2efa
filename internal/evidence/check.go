package evidence

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Outcome is what a run of a check proves.
type Outcome string

// The outcomes. Unproven: the exit code of the line does not tell how the check ended, as behind a pipe.
const (
	Passed   Outcome = "passed"
	Failed   Outcome = "failed"
	Unproven Outcome = "unproven"
)

// Check is a test, build or lint command with its last outcome.
type Check struct {
	Command  string
	Outcome  Outcome
	ExitCode int
	Stale    bool // file tools changed something afterwards
}

// Words is the outcome for people.
func (k Check) Words() string {
	s := string(k.Outcome)
	switch k.Outcome {
	case Failed:
		s = fmt.Sprintf("failed (exit code %d)", k.ExitCode)
	case Unproven:
		s = "ran; its outcome is not proven"
	}
	if k.Stale {
		s += ", before the last change"
	}
	return s
}

type foundCheck struct {
	text   string
	proves bool // success of the line means success of the check
	alone  bool // failure of the line means failure of the check
}

// maxParsed bounds what the shell parser gets, in bytes: deep nesting costs it stack.
const maxParsed = 8 << 10

// checksIn finds the checks in a command line.
func checksIn(line string) []foundCheck {
	if len(line) > maxParsed {
		return nil
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil
	}
	var out []foundCheck
	checksOfAll(file.Stmts, true, true, &out)
	return out
}

// checksOf walks the parts of a line. proves and alone hold for the line's exit code as long as nothing in between hides it.
func checksOf(s *syntax.Stmt, proves, alone bool, out *[]foundCheck) {
	if s == nil || s.Cmd == nil {
		return
	}
	if s.Background || s.Negated || s.Coprocess {
		proves, alone = false, false
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if text, ok := checkText(c); ok {
			*out = append(*out, foundCheck{text, proves, alone})
		}
	case *syntax.BinaryCmd:
		switch c.Op {
		case syntax.AndStmt:
			harmless := isQuiet(c.X)
			checksOf(c.X, proves, false, out)
			checksOf(c.Y, proves, alone && harmless, out)
		default: // a pipe tells about its last part, || hides the first
			checksOf(c.X, false, false, out)
			checksOf(c.Y, false, false, out)
		}
	case *syntax.TimeClause:
		checksOf(c.Stmt, proves, alone, out)
	case *syntax.Subshell:
		checksOfAll(c.Stmts, proves, alone, out)
	case *syntax.Block:
		checksOfAll(c.Stmts, proves, alone, out)
	}
}

func checksOfAll(stmts []*syntax.Stmt, proves, alone bool, out *[]foundCheck) {
	for i, s := range stmts {
		last := i == len(stmts)-1
		checksOf(s, proves && last, alone && last && len(stmts) == 1, out)
	}
}

// isQuiet tells whether a part before && is one whose failure would not be taken for the check's: cd and the like.
func isQuiet(s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	return ok && len(c.Args) > 0 && c.Args[0].Lit() == "cd"
}

// checkText gives the words of a call when it is a check.
func checkText(c *syntax.CallExpr) (string, bool) {
	words := make([]string, len(c.Args))
	for i, w := range c.Args {
		words[i] = w.Lit() // "" for anything that is not plain text
	}
	at := skipWrapper(words)
	if at >= len(words) || !isCheck(words[at:]) {
		return "", false
	}
	var b strings.Builder
	for i, w := range c.Args[at:] {
		if i > 0 {
			b.WriteByte(' ')
		}
		if err := syntax.NewPrinter().Print(&b, w); err != nil {
			return "", false
		}
	}
	return b.String(), true
}

// skipWrapper passes programs that only run another one with the same exit code.
func skipWrapper(words []string) int {
	i := 0
	for i < len(words) {
		switch base(words[i]) {
		case "env", "nice", "nohup", "stdbuf", "command", "npx", "bunx", "poetry", "uv", "pipenv", "bundle":
			i++
			for i < len(words) && (strings.HasPrefix(words[i], "-") || strings.Contains(words[i], "=") || words[i] == "run" || words[i] == "exec") {
				i++
			}
		case "timeout":
			i++
			for i < len(words) && words[i] != "" && strings.ContainsRune("-0123456789", rune(words[i][0])) { // options and durations
				i++
			}
		default:
			return i
		}
	}
	return i
}

func base(word string) string {
	return strings.TrimSuffix(word[strings.LastIndexByte(word, '/')+1:], ".exe")
}

// checkers are programs that are a check by themselves.
var checkers = set("pytest", "tox", "nox", "ctest", "jest", "vitest", "mocha", "rspec", "phpunit", "tsc", "eslint", "golangci-lint", "staticcheck",
	"ruff", "mypy", "pyright", "flake8", "pylint", "shellcheck", "gotestsum", "clippy-driver")

// subcommands make a program a check when one of them is its first plain word.
var subcommands = map[string]map[string]bool{
	"go":     set("test", "build", "vet"),
	"cargo":  set("test", "build", "check", "clippy", "nextest"),
	"make":   set("test", "tests", "check", "build", "lint", "vet", "all", "ci"),
	"npm":    set("test", "t", "run"),
	"pnpm":   set("test", "run", "build", "lint"),
	"yarn":   set("test", "run", "build", "lint"),
	"bun":    set("test", "run"),
	"mvn":    set("test", "verify", "package", "compile", "install"),
	"gradle": set("test", "build", "check"), "gradlew": set("test", "build", "check"),
	"dotnet": set("test", "build"), "swift": set("test", "build"), "mix": set("test", "compile"), "bazel": set("test", "build"),
	"zig": set("build", "test"), "rake": set("test", "spec"), "cmake": set("--build"), "deno": set("test", "check", "lint"),
	"python": set("-m"), "python3": set("-m"),
}

func isCheck(words []string) bool {
	program := base(words[0])
	if checkers[program] {
		return true
	}
	known, ok := subcommands[program]
	if !ok {
		return false
	}
	for i, w := range words[1:] {
		if !known[w] {
			if strings.HasPrefix(w, "-") {
				continue
			}
			return false
		}
		rest := words[i+2:]
		switch w {
		case "run":
			return len(rest) > 0 && isScript(rest[0])
		case "-m":
			return len(rest) > 0 && (checkers[rest[0]] || rest[0] == "unittest" || rest[0] == "compileall")
		}
		return true
	}
	return false
}

// isScript tells whether a package script sounds like a check.
func isScript(name string) bool {
	for _, part := range []string{"test", "lint", "build", "check", "typecheck"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

func set(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}
