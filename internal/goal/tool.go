package goal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"reasonix/internal/tool"
)

// ToolName is what the model calls to report; NoteReport is the kind of the note that holds the report.
const (
	ToolName   = "update_goal"
	NoteReport = "goal_report"
)

// maxText bounds each text of a report, in bytes.
const maxText = 8 << 10

const toolDescription = `Report where the goal stands, once, at the end of your work on it.
status "continue": more remains; next_action says the next concrete step.
status "complete": the request, output format, constraints and checks are met; summary says what was done and names what is unverified.
status "blocked": only a person can help; reason says exactly what is needed. Do not use it for ordinary uncertainty.`

const toolSchema = `{"type":"object","additionalProperties":false,"required":["status"],"properties":{` +
	`"status":{"type":"string","enum":["continue","complete","blocked"],"description":"Where the goal stands."},` +
	`"summary":{"type":"string","description":"What was done, and what is unverified."},` +
	`"next_action":{"type":"string","description":"With continue: the next concrete step."},` +
	`"reason":{"type":"string","description":"With blocked: what only a person can provide."}}}`

// New builds update_goal for one run; nil when env cannot take the report. It is offered in Goal mode only.
func New(env tool.Env) tool.Tool { return newTool(env, "") }

// NewBound binds every report to the goal with that id, so that a late report of a replaced goal changes nothing.
func NewBound(env tool.Env, goalID string) tool.Tool { return newTool(env, goalID) }

func newTool(env tool.Env, goalID string) tool.Tool {
	if env.Note == nil {
		return nil
	}
	return reporter{env.Note, goalID}
}

type reporter struct {
	note   func(string, json.RawMessage)
	goalID string
}

func (reporter) Name() string            { return ToolName }
func (reporter) Description() string     { return toolDescription }
func (reporter) Schema() json.RawMessage { return json.RawMessage(toolSchema) }
func (reporter) ReadOnly() bool          { return true } // no effect outside the transcript
func (reporter) Serial() bool            { return true } // the last report of a message wins

func (r reporter) Execute(_ context.Context, args json.RawMessage) (string, error) {
	var rep Report
	if err := json.Unmarshal(args, &rep); err != nil {
		return "", fmt.Errorf("read the report: %w", err)
	}
	if err := rep.check(); err != nil {
		return "", err
	}
	rep.GoalID = r.goalID // whatever the model wrote
	data, err := json.Marshal(rep)
	if err != nil {
		return "", fmt.Errorf("keep the report: %w", err)
	}
	r.note(NoteReport, data)
	return "reported: " + string(rep.Disposition), nil
}

// check refuses a report that a person could not act on.
func (r Report) check() error {
	for _, s := range []string{r.Summary, r.Next, r.Reason} {
		if len(s) > maxText {
			return fmt.Errorf("a text of the report is longer than %d bytes", maxText)
		}
	}
	switch r.Disposition {
	case Continue, Complete:
		return nil
	case Blocked:
		if strings.TrimSpace(r.Reason) == "" {
			return errors.New("status blocked needs a reason: what can only a person provide?")
		}
		return nil
	}
	return fmt.Errorf("status %q is not one of continue, complete, blocked", r.Disposition)
}
