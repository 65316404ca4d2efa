package evidence

import (
	"fmt"
	"regexp"
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

// passing are programs that only run another one with the same exit code, each with the options that leave it so. With any other option
// (command -v, env -S, timeout --version) they are a command of their own.
var passing = map[string]*regexp.Regexp{
	"env":     regexp.MustCompile(`^(-|-i|--|[A-Za-z_][A-Za-z0-9_]*=.*)$`),
	"nice":    regexp.MustCompile(`^(-n|-n?-?[0-9]+|--adjustment=-?[0-9]+|[0-9]+|--)$`),
	"nohup":   regexp.MustCompile(`^--$`),
	"stdbuf":  regexp.MustCompile(`^(-[ioe][0L]|--)$`),
	"command": regexp.MustCompile(`^(-p|--)$`),
	"timeout": regexp.MustCompile(`^(-k|-s|-v|--|-k[0-9]+[smhd]?|(-s)?(SIG)?(TERM|KILL|INT|HUP|QUIT)|[0-9.]+[smhd]?|--foreground|--preserve-status|--verbose|--kill-after=[0-9.]+[smhd]?|--signal=[A-Z]+)$`),
	"npx":     regexp.MustCompile(`^(-y|--yes|--no-install|--)$`), "bunx": regexp.MustCompile(`^--$`),
	"poetry": regexp.MustCompile(`^run$`), "uv": regexp.MustCompile(`^run$`), "pipenv": regexp.MustCompile(`^run$`), "bundle": regexp.MustCompile(`^exec$`),
}

// skipWrapper is the index of the program that really runs.
func skipWrapper(words []string) int {
	i := 0
	for i < len(words) && !strings.Contains(words[i], "/") {
		options, ok := passing[words[i]]
		if !ok {
			break
		}
		next := i + 1
		for next < len(words) && options.MatchString(words[next]) {
			next++
		}
		if next < len(words) && (words[next] == "" || words[next][0] == '-') {
			return i
		}
		i = next
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

// idle are options with which a check looks at nothing: it prints, lists or pretends.
var idle = set("--version", "--help", "-h", "-help", "--dry-run", "--just-print", "--recon", "--collect-only", "--co", "--no-run", "--list-tests", "--listTests", "--if-present",
	"--setup-plan", "--fixtures", "--markers", "--print-config", "--show-config", "--showConfig", "--passWithNoTests")

// idleFor are such options of one program alone.
var idleFor = map[string]map[string]bool{
	"make": set("-n", "-q", "-t", "-i", "-k", "-p", "--question", "--touch", "--ignore-errors", "--keep-going"), "go": set("-n", "-list", "-c"),
	"pytest": set("-V"), "ctest": set("-N", "--show-only"),
}

// looks tells that no option keeps the check from looking at the code.
func looks(program string, words []string) bool {
	for _, w := range words {
		name, _, _ := strings.Cut(w, "=")
		if idle[name] || idleFor[program][name] {
			return false
		}
	}
	return true
}

func isCheck(words []string) bool {
	program := base(words[0])
	if !looks(program, words[1:]) || strings.Contains(words[0], "/") && ownName[program] && !strings.HasPrefix(words[0], "/usr/") {
		return false
	}
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

// ownName are programs that a workspace never brings along: a file of that name in it is something else.
var ownName = set("go", "cargo", "make", "npm", "pnpm", "yarn", "bun", "dotnet", "swift", "zig", "cmake", "deno")

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
