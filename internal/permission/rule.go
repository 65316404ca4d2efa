package permission

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"mvdan.cc/sh/v3/syntax"
)

// Rule is one line of policy: Tool, Tool(specifier) or Bash=<literal>, with the place it was written.
type Rule struct {
	Text   string
	Source string // file:line, or a name such as "session"

	tool string // Bash, Edit, Read, a tool id, or mcp__server…
	form form
	spec string   // as the form needs it
	toks []string // prefix and exact: words
}

type form int

const (
	formAny     form = iota
	formLiteral      // the identical complete line
	formPrefix       // leading words
	formExact        // all words
	formGlob         // * matches anything
	formPath         // doublestar
)

// The families.
const (
	familyBash = "Bash"
	familyEdit = "Edit"
	familyRead = "Read"
)

var editTools = set("write_file edit_file multi_edit notebook_edit move_file delete_range delete_symbol")
var readTools = set("read_file ls glob grep")

// builtinTools are the ids that a rule may name besides families, MCP names and Config.Tools.
var builtinTools = set(`bash write_file edit_file multi_edit notebook_edit move_file delete_range delete_symbol read_file ls glob grep
	todo_write ask update_goal exit_plan_mode complete_step remember forget memory history task read_only_task fleet parallel_tasks
	run_skill read_only_skill use_capability web_fetch web_search bash_output kill_shell wait list_tasks task_output`)

// ParseRule reads a rule. The error says why it could never match anything.
func ParseRule(text, source string) (Rule, error) {
	r := Rule{Text: text, Source: source}
	if strings.TrimSpace(text) == "" {
		return r, errors.New("empty rule")
	}
	if tool, line, ok := strings.Cut(text, "="); ok && !strings.Contains(tool, "(") && isBash(strings.TrimSpace(tool)) {
		if strings.TrimSpace(line) == "" {
			return r, errors.New("empty literal")
		}
		r.tool, r.form, r.spec = familyBash, formLiteral, line
		return r, nil
	}
	text = strings.TrimSpace(text)
	tool, spec, has, err := splitRule(text)
	if err != nil {
		return r, err
	}
	if r.tool, err = ruleTool(tool); err != nil {
		return r, err
	}
	if !has || spec == "*" || spec == "**" || spec == ":*" {
		return r, nil
	}
	switch {
	case r.tool == familyBash:
		return r, r.bashSpec(spec)
	case r.pathTool():
		return r, r.pathSpec(spec)
	}
	r.form, r.spec = formGlob, spec
	return r, nil
}

func splitRule(text string) (tool, spec string, has bool, err error) {
	open := strings.IndexByte(text, '(')
	if open < 0 {
		if strings.ContainsRune(text, ')') {
			return "", "", false, errors.New("unbalanced brackets")
		}
		return text, "", false, nil
	}
	if !strings.HasSuffix(text, ")") {
		return "", "", false, errors.New("unbalanced brackets: the rule must end with )")
	}
	tool, spec = strings.TrimSpace(text[:open]), text[open+1:len(text)-1]
	if tool == "" {
		return "", "", false, errors.New("no tool name before the bracket")
	}
	if strings.TrimSpace(spec) == "" {
		return "", "", false, errors.New("empty specifier")
	}
	return tool, spec, true, nil
}

func isBash(tool string) bool { return tool == familyBash || tool == "bash" }

// ruleTool canonicalises the tool of a rule; legacy lower-case ids stand for their family where there is one of that name.
func ruleTool(tool string) (string, error) {
	switch tool {
	case familyBash, "bash":
		return familyBash, nil
	case familyEdit, "edit":
		return familyEdit, nil
	case familyRead, "read":
		return familyRead, nil
	}
	if rest, ok := strings.CutPrefix(tool, "mcp__"); ok {
		server, name, two := strings.Cut(rest, "__")
		if server == "" || two && name == "" {
			return "", fmt.Errorf("incomplete MCP name %q: write mcp__server or mcp__server__tool", tool)
		}
		return tool, nil
	}
	for _, r := range tool {
		if !(r == '_' || r == '-' || r == '.' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			return "", fmt.Errorf("no tool name in %q: write Bash(%s:*) for a command", tool, tool)
		}
	}
	return tool, nil
}

// pathTool tells that the specifier is a path.
func (r *Rule) pathTool() bool {
	return r.tool == familyEdit || r.tool == familyRead || editTools[r.tool] || readTools[r.tool]
}

func (r *Rule) pathSpec(spec string) error {
	spec = strings.TrimSpace(spec)
	if strings.HasSuffix(spec, "/") && spec != "/" {
		spec += "**"
	}
	if !doublestar.ValidatePattern(spec) {
		return fmt.Errorf("not a valid path pattern: %q", spec)
	}
	r.form, r.spec = formPath, spec
	return nil
}

// bashSpec reads x:*, the legacy x *, x* and x.
func (r *Rule) bashSpec(spec string) error {
	spec = strings.TrimSpace(spec)
	prefix, isPrefix := strings.CutSuffix(spec, ":*")
	if !isPrefix {
		prefix, isPrefix = strings.CutSuffix(spec, " *")
	}
	switch {
	case isPrefix && strings.TrimSpace(prefix) == "":
		return nil // every command
	case isPrefix && strings.Contains(prefix, "*"):
		r.form, r.spec = formGlob, strings.TrimSpace(prefix)+" *"
	case isPrefix:
		r.form, r.spec = formPrefix, strings.TrimSpace(prefix)
	case strings.Contains(spec, "*"):
		r.form, r.spec = formGlob, spec
	default:
		r.form, r.spec = formExact, spec
	}
	if r.form == formGlob {
		return nil
	}
	toks, plain := specWords(r.spec)
	if r.form == formPrefix && !plain {
		return fmt.Errorf("a prefix cannot hold operators or expansions: %q; write Bash=<the whole line>", r.spec)
	}
	if plain {
		r.toks = toks
	}
	return nil
}

// specWords splits a specifier into words as the shell would; plain is false when it is no single plain command.
func specWords(spec string) (toks []string, plain bool) {
	if precheck(spec) != "" {
		return strings.Fields(spec), false
	}
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	file, err := p.Parse(strings.NewReader(spec), "")
	if err != nil || len(file.Stmts) != 1 {
		return strings.Fields(spec), false
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(file.Stmts[0].Redirs) > 0 || file.Stmts[0].Background || file.Stmts[0].Negated {
		return strings.Fields(spec), false
	}
	w := &walker{src: spec, out: Classification{Class: Plain}}
	for _, a := range call.Args {
		x := w.word(a, asArgument)
		if x.dynamic() {
			return strings.Fields(spec), false
		}
		toks = append(toks, x.text)
	}
	return toks, len(toks) > 0
}

// Problem is a rule that can never do what it says.
type Problem struct {
	Rule Rule
	Why  string
}

func (p Problem) String() string {
	if p.Rule.Source == "" {
		return fmt.Sprintf("rule %q: %s", p.Rule.Text, p.Why)
	}
	return fmt.Sprintf("%s: rule %q: %s", p.Rule.Source, p.Rule.Text, p.Why)
}

// ToolMatches tells whether a pattern without a specifier (a family, a tool id, mcp__server, a name with *) is about a tool.
func ToolMatches(pattern, tool string) bool {
	name, err := ruleTool(strings.ReplaceAll(strings.TrimSpace(pattern), "*", "x"))
	if err != nil {
		return false
	}
	if strings.Contains(pattern, "*") {
		return glob(strings.TrimSpace(pattern), tool)
	}
	r := Rule{tool: name}
	return r.names(tool)
}
