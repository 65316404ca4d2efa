package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"reasonix/internal/tool"
)

const (
	bashDescription = `Run one bash line in the workspace, sandboxed. Each call is a new shell: cd and variables do not last.
The output holds stdout and stderr together; a long one keeps head and tail. Prefer the file and search tools where they fit.
run_in_background is for servers and long work: the call returns an id at once.`

	bashSchema = `{"type":"object","additionalProperties":false,"required":["command"],"properties":{` +
		`"command":{"type":"string","minLength":1},` +
		`"timeout":{"type":"integer","minimum":1,"maximum":3600,"description":"Seconds; the host's limit when absent."},` +
		`"run_in_background":{"type":"boolean"},` +
		`"additional_write_dirs":{"type":"array","maxItems":5,"uniqueItems":true,"items":{"type":"string","minLength":1},` +
		`"description":"Absolute folders outside the workspace that the line must write; a person is asked."},` +
		`"justification":{"type":"string","maxLength":1000,"description":"Why, for that person."}}}`

	timedOutCode = 124 // as timeout(1) says it
)

func init() { tool.Register(newBash) }

func newBash(env tool.Env) tool.Tool {
	if env.Shell == nil {
		return nil
	}
	description := bashDescription
	if s, ok := env.Shell.(interface{ Language() string }); ok && s.Language() != "bash" {
		description = strings.Replace(description, "one bash line", "one "+s.Language()+" line", 1)
	}
	return &bash{card: card{name: "bash", description: description, schema: bashSchema}, env: env, started: env.Shells.Started}
}

type bash struct {
	card
	env     tool.Env
	started int // background commands of this run so far; calls of bash never overlap
}

// Execute implements tool.Tool.
func (t *bash) Execute(ctx context.Context, raw json.RawMessage) (string, error) {
	a, err := decode[struct {
		Command    string   `json:"command"`
		Timeout    int      `json:"timeout"`
		Background bool     `json:"run_in_background"`
		Dirs       []string `json:"additional_write_dirs"`
		Why        string   `json:"justification"`
	}](raw)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(a.Command) == "" {
		return "", errors.New("command is empty")
	}
	if len(a.Dirs) > 0 && strings.TrimSpace(a.Why) == "" {
		return "", errors.New("justification is missing: say why the line must write outside the workspace")
	}
	for _, d := range a.Dirs {
		if !filepath.IsAbs(d) || filepath.Clean(d) != d {
			return "", fmt.Errorf("additional_write_dirs: %s is not an absolute, clean path", d)
		}
	}
	c := tool.Command{Line: a.Command, Timeout: time.Duration(a.Timeout) * time.Second, Output: t.env.Output, Writes: tool.Writes(ctx)}
	if a.Background {
		return t.start(ctx, c)
	}
	r, err := t.env.Shell.Run(ctx, c)
	if r.TimedOut && r.ExitCode == 0 {
		r.ExitCode = timedOutCode
	}
	tool.ReportFrom(ctx).ExitCode = r.ExitCode
	if err != nil {
		return tool.Bound(r.Output, tool.MaxContent), err
	}
	return bashResult(r), nil
}

// bashResult puts how the line ended behind what it printed, and always within the limit.
func bashResult(r tool.Result) string {
	var end string
	switch {
	case r.TimedOut:
		end = fmt.Sprintf("[stopped after %s: the time limit was reached; exit code %d]", r.Duration.Round(time.Second), r.ExitCode)
	case r.ExitCode != 0:
		end = fmt.Sprintf("[exit code %d]", r.ExitCode)
	case strings.TrimSpace(r.Output) == "":
		return "(no output, exit code 0)"
	default:
		end = "[exit code 0]"
	}
	if r.Omitted > 0 {
		end = fmt.Sprintf("[%d bytes of output were dropped from the middle]\n%s", r.Omitted, end)
	}
	out := tool.Bound(r.Output, tool.MaxContent-len(end)-2)
	if out != "" && !strings.HasSuffix(out, "\n") {
		out += "\n"
	}
	return out + end
}
