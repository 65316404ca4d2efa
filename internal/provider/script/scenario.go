package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Limits of a scenario.
const (
	maxFile  = 1 << 20 // bytes
	maxSteps = 1000
)

// scenario is the written play. Its steps come one after the other; each looks at what really happened before it speaks.
type scenario struct {
	Name  string `toml:"name" json:"name"`
	Steps []step `toml:"step" json:"step"`
}

// step is one turn. When its own patterns do not match, its alternatives are tried in order.
type step struct {
	beat
	Or []beat `toml:"or" json:"or"`
}

// beat is one way in which a step can go.
type beat struct {
	Asked  []string `toml:"asked" json:"asked"`   // patterns that the latest user message must match
	Expect []string `toml:"expect" json:"expect"` // patterns that the results of the last message's calls must match
	Say    string   `toml:"say" json:"say"`
	Calls  []call   `toml:"calls" json:"calls"`
	End    bool     `toml:"end" json:"end"` // the scenario is over behind this beat

	asked, expect []*regexp.Regexp
}

// call is a tool call; ${name} in its strings stands for what a pattern captured.
type call struct {
	Tool string         `toml:"tool" json:"tool"`
	Args map[string]any `toml:"args" json:"args"`
}

// load reads a scenario strictly. Errors begin with the file's name, and the line where one can be told.
func load(path string) (*scenario, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the scenario: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the scenario: %w", err)
	}
	return parse(path, raw)
}

// parse reads TOML, or JSON when the text begins with a brace.
func parse(name string, raw []byte) (*scenario, error) {
	if len(raw) > maxFile {
		return nil, fmt.Errorf("%s: a scenario is larger than %d bytes", name, maxFile)
	}
	var s scenario
	line, err := decode(raw, &s)
	if err == nil {
		line, err = s.check(raw)
	}
	if err != nil && line > 0 {
		return nil, fmt.Errorf("%s:%d: %w", name, line, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &s, nil
}

func decode(raw []byte, s *scenario) (line int, err error) {
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return decodeJSON(raw, s)
	}
	meta, err := toml.Decode(string(raw), s)
	if err != nil {
		var at toml.ParseError
		if errors.As(err, &at) {
			return at.Position.Line, errors.New(at.Message)
		}
		return 0, err
	}
	for _, key := range meta.Undecoded() {
		if !slices.Contains(key, "args") {
			return lineOf(raw, regexp.MustCompile(`^\s*(\[+\s*)?([\w.]*\.)?`+regexp.QuoteMeta(key[len(key)-1])+`\s*[=\]]`), 1), fmt.Errorf("unknown key %q", key.String())
		}
	}
	return 0, nil
}

func decodeJSON(raw []byte, s *scenario) (line int, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(s); err != nil {
		at := dec.InputOffset()
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		if errors.As(err, &syntax) {
			at = syntax.Offset
		} else if errors.As(err, &kind) {
			at = kind.Offset
		}
		return 1 + bytes.Count(raw[:min(int(at), len(raw))], []byte("\n")), err
	}
	if dec.More() {
		return 0, errors.New("something follows the scenario")
	}
	return 0, nil
}

// lineOf is the line of the n-th match, 0 when there is none.
func lineOf(raw []byte, pattern *regexp.Regexp, n int) int {
	for i, l := range strings.Split(string(raw), "\n") {
		if pattern.MatchString(l) {
			if n--; n == 0 {
				return i + 1
			}
		}
	}
	return 0
}

var stepLine = regexp.MustCompile(`^\s*\[\[\s*step\s*\]\]`)

// check compiles the patterns and makes sure that nothing is used before it can be captured.
func (s *scenario) check(raw []byte) (line int, err error) {
	if len(s.Steps) == 0 {
		return 0, errors.New("the scenario has no step")
	}
	if len(s.Steps) > maxSteps {
		return 0, fmt.Errorf("the scenario has more than %d steps", maxSteps)
	}
	known := map[string]bool{}
	for i := range s.Steps {
		st := &s.Steps[i]
		beats := append([]*beat{&st.beat}, pointers(st.Or)...)
		var captured []string
		for k, b := range beats {
			names, err := b.check(known)
			if err != nil {
				where := fmt.Sprintf("step %d", i+1)
				if k > 0 {
					where += fmt.Sprintf(", alternative %d", k)
				}
				return lineOf(raw, stepLine, i+1), fmt.Errorf("%s: %w", where, err)
			}
			captured = append(captured, names...)
		}
		for _, n := range captured {
			known[n] = true
		}
	}
	return 0, nil
}

func pointers(beats []beat) (out []*beat) {
	for i := range beats {
		out = append(out, &beats[i])
	}
	return out
}

func (b *beat) check(known map[string]bool) (captured []string, err error) {
	if b.Say == "" && len(b.Calls) == 0 {
		return nil, errors.New("it neither says nor calls anything")
	}
	if b.asked, err = compile(b.Asked); err != nil {
		return nil, fmt.Errorf("asked: %w", err)
	}
	if b.expect, err = compile(b.Expect); err != nil {
		return nil, fmt.Errorf("expect: %w", err)
	}
	own := map[string]bool{}
	for _, p := range append(slices.Clone(b.asked), b.expect...) {
		for _, name := range p.SubexpNames() {
			if name != "" {
				own[name] = true
				captured = append(captured, name)
			}
		}
	}
	_, err = b.fill(func(name string) (string, bool) { return "", own[name] || known[name] })
	if err != nil {
		return nil, err
	}
	for _, c := range b.Calls {
		if c.Tool == "" {
			return nil, errors.New("a call names no tool")
		}
	}
	return captured, nil
}

func compile(patterns []string) ([]*regexp.Regexp, error) {
	var out []*regexp.Regexp
	for i, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, fmt.Errorf("pattern %d: %w", i+1, err)
		}
		out = append(out, re)
	}
	return out, nil
}
