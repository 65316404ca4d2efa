package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"reasonix/internal/tool"
)

const (
	outputDescription = `Read what a background command wrote since the last look, and whether it still runs.`
	outputSchema      = `{"type":"object","additionalProperties":false,"required":["id"],"properties":{"id":{"type":"string","minLength":1}}}`

	killDescription = `End a background command with everything it started.`
	killSchema      = outputSchema

	waitDescription = `Wait until one of the background commands ends, or the time is over. Better than looking again and again.`
	waitSchema      = `{"type":"object","additionalProperties":false,"properties":{` +
		`"ids":{"type":"array","items":{"type":"string"},"description":"Which; all that run when absent."},` +
		`"timeout":{"type":"integer","minimum":1,"maximum":300,"description":"Seconds; 60 when absent."}}}`
)

func init() {
	tool.Register(func(env tool.Env) tool.Tool {
		return newShellTool(env, "bash_output", outputDescription, outputSchema, look)
	})
	tool.Register(func(env tool.Env) tool.Tool {
		return newShellTool(env, "kill_shell", killDescription, killSchema, kill)
	})
	tool.Register(func(env tool.Env) tool.Tool { return newShellTool(env, "wait", waitDescription, waitSchema, await) })
}

// start starts the line in the background and says under which id.
func (t *bash) start(ctx context.Context, c tool.Command) (string, error) {
	if t.env.Background == nil {
		return "", errors.New("nothing can run in the background here; run the line without run_in_background")
	}
	id := fmt.Sprintf("shell_%d", t.started+1)
	c.Output = nil
	if err := t.env.Background.Start(id, c); err != nil {
		return "", err
	}
	t.started++
	tool.ReportFrom(ctx).Open = true
	noteShell(t.env, tool.ShellNote{ID: id, Command: c.Line})
	return fmt.Sprintf("started %s in the background. Read it with bash_output, wait for it with wait, end it with kill_shell. It is ended when the task waits for a person and when the task ends.", id), nil
}

func noteShell(env tool.Env, n tool.ShellNote) {
	if env.Note == nil {
		return
	}
	if data, err := json.Marshal(n); err == nil {
		env.Note(tool.NoteShell, data)
	}
}

// shellTool is one of the tools about background commands. They count as read-only: what they end belongs to this run alone and
// would end with it, and they may be repeated.
type shellTool struct {
	card
	env tool.Env
	do  func(ctx context.Context, env tool.Env, raw json.RawMessage) (string, error)
}

func newShellTool(env tool.Env, name, description, schema string, do func(context.Context, tool.Env, json.RawMessage) (string, error)) tool.Tool {
	if env.Background == nil {
		return nil
	}
	return shellTool{card: card{name: name, description: description, schema: schema, readOnly: true}, env: env, do: do}
}

// Serial: they follow each other in call order.
func (shellTool) Serial() bool { return true }

// Execute implements tool.Tool.
func (t shellTool) Execute(ctx context.Context, raw json.RawMessage) (string, error) {
	return t.do(ctx, t.env, raw)
}

type shellArgs struct {
	ID string `json:"id"`
}

func look(ctx context.Context, env tool.Env, raw json.RawMessage) (string, error) {
	a, err := decode[shellArgs](raw)
	if err != nil {
		return "", err
	}
	g, err := env.Background.Look(a.ID, tool.MaxContent-2048)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if g.Omitted > 0 {
		fmt.Fprintf(&b, "[%d bytes were dropped because nobody looked in time]\n", g.Omitted)
	}
	b.WriteString(g.Output)
	if g.Output != "" && !strings.HasSuffix(g.Output, "\n") {
		b.WriteString("\n")
	}
	if g.Output == "" {
		b.WriteString("(nothing new)\n")
	}
	if g.More {
		b.WriteString("[there is more to read now]\n")
		fmt.Fprintf(&b, "[%s]", state(ctx, env, g, false))
		return b.String(), nil
	}
	fmt.Fprintf(&b, "[%s]", state(ctx, env, g, true))
	return b.String(), nil
}

// state words how a command stands. learn: the model is told of its end, so it is noted as a host fact.
func state(ctx context.Context, env tool.Env, g tool.Glimpse, learn bool) string {
	age := g.Age.Round(time.Second)
	if g.Running {
		tool.ReportFrom(ctx).Live = true
		return fmt.Sprintf("%s runs since %s", g.ID, age)
	}
	if learn {
		report := tool.ReportFrom(ctx)
		report.Command, report.ExitCode = g.Line, g.ExitCode
		noteShell(env, tool.ShellNote{ID: g.ID, Ended: true})
	}
	switch {
	case g.Failure != "":
		return fmt.Sprintf("%s could not be run: %s", g.ID, g.Failure)
	case g.TimedOut:
		return fmt.Sprintf("%s was stopped after %s: its time limit was reached; exit code %d", g.ID, age, timedOutCode)
	}
	return fmt.Sprintf("%s ended after %s with exit code %d", g.ID, age, g.ExitCode)
}

func kill(ctx context.Context, env tool.Env, raw json.RawMessage) (string, error) {
	a, err := decode[shellArgs](raw)
	if err != nil {
		return "", err
	}
	g, err := env.Background.Kill(a.ID)
	if err != nil {
		return "", err
	}
	text := state(ctx, env, g, true)
	if report := tool.ReportFrom(ctx); report.ExitCode == killed { // ended on purpose is no failure
		report.ExitCode, report.Command = 0, ""
	}
	return text, nil
}

const killed = 137

func await(ctx context.Context, env tool.Env, raw json.RawMessage) (string, error) {
	a, err := decode[struct {
		IDs     []string `json:"ids"`
		Timeout int      `json:"timeout"`
	}](raw)
	if err != nil {
		return "", err
	}
	if a.Timeout == 0 {
		a.Timeout = 60
	}
	list, err := env.Background.Wait(ctx, a.IDs, time.Duration(a.Timeout)*time.Second)
	if err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "nothing runs in the background", nil
	}
	lines, ended := make([]string, len(list)), 0
	for i, g := range list {
		lines[i] = state(ctx, env, g, true)
		if !g.Running {
			ended++
		}
	}
	if ended == 0 {
		lines = append(lines, fmt.Sprintf("none ended within %d seconds", a.Timeout))
	} else {
		lines = append(lines, "read what they wrote with bash_output")
	}
	return strings.Join(lines, "\n"), nil
}
