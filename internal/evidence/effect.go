package evidence

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// mayChange tells whether a simple command may change files of the workspace. What is not known to leave them alone may: a check that
// is wrongly called out of date is run again, one that is wrongly trusted is not.
func mayChange(c *syntax.CallExpr) bool {
	words := literals(c)
	at := skipWrapper(words)
	if at >= len(words) {
		return false // env, or timeout without a command
	}
	words = words[at:]
	program := base(words[0])
	if isCheck(words) {
		return slices.ContainsFunc(words[1:], mends) || program == "ruff" && slices.Contains(words, "format")
	}
	switch program {
	case "git", "go":
		return len(words) < 2 || !quietSubcommands[program][words[1]] || slices.ContainsFunc(words[2:], elsewhere)
	case "sed":
		return !(len(words) >= 3 && words[1] == "-n" && showsLines.MatchString(words[2]))
	case "rg":
		return slices.ContainsFunc(words[1:], func(w string) bool {
			return w == "" || strings.HasPrefix(w, "--pre") || strings.HasPrefix(w, "--hostname-bin")
		})
	case "sort":
		return slices.ContainsFunc(words[1:], func(w string) bool {
			return w == "" || strings.HasPrefix(w, "--o") || strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.Contains(w, "o")
		})
	case "find":
		return slices.ContainsFunc(words[1:], func(w string) bool {
			return strings.HasPrefix(w, "-exec") || strings.HasPrefix(w, "-ok") || strings.HasPrefix(w, "-f") && w != "-follow" && w != "-fstype" || w == "-delete"
		})
	}
	return !readers[program]
}

// elsewhere tells whether an option of git or go makes a reader write or run something.
func elsewhere(word string) bool {
	for _, p := range []string{"--output", "-O", "--open-files-in-pager", "--ext-diff", "-mod", "-modfile", "-toolexec"} {
		if strings.HasPrefix(word, p) {
			return true
		}
	}
	return false
}

// mends tells whether an option makes a linter change what it looks at.
func mends(word string) bool {
	return word == "--fix" || strings.HasPrefix(word, "--fix=") || word == "--write" || word == "-w" || word == "--update" || word == "-update" || word == "-u"
}

var showsLines = regexp.MustCompile(`^[0-9$]+(,[0-9$]+)?p$`)

// quietSubcommands leave the files of the work tree as they are.
var quietSubcommands = map[string]map[string]bool{
	"git": set("status", "diff", "log", "show", "add", "commit", "rev-parse", "ls-files", "blame", "grep", "describe", "shortlog", "cat-file", "merge-base", "rev-list"),
	"go":  set("list", "version", "doc", "env"),
}

// readers are programs that change no file of the workspace, whatever their options.
var readers = set("ls", "cat", "head", "tail", "grep", "egrep", "fgrep", "wc", "pwd", "cd", "pushd", "popd", "echo", "printf", "true", "false", ":", "test",
	"[", "diff", "cmp", "stat", "file", "du", "df", "which", "type", "date", "sleep", "id", "whoami", "uname", "ps", "cut", "tr", "nl", "basename", "dirname",
	"realpath", "readlink", "md5sum", "sha1sum", "sha256sum", "jq", "exit", "set", "unset", "hostname", "printenv", "column", "seq", "kill", "wait", "jobs", "comm", "paste", "fold", "od", "hexdump", "strings")
