package evidence

import (
	"fmt"
	"strings"
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
	Stale    bool   // something was changed afterwards, or may have been
	After    string // what that was, when it was a command
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
