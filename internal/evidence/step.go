package evidence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"reasonix/internal/session"
	"reasonix/internal/tool"
)

// StepTool is what the model signs an item of its todo list off with.
const StepTool = "complete_step"

const stepDescription = `Sign off the todo that is in progress; the next one starts. Cite what the host can check in its own records of this task:
verification a command that ran and passed since the last change, diff files you changed, files files you read or changed.
manual is your word alone and leaves the step unverified. A citation that the records do not back keeps the step open, with the reason.`

const stepSchema = `{"type":"object","additionalProperties":false,"required":["step","summary","evidence"],"properties":{` +
	`"step":{"type":"string","minLength":1,"maxLength":500,"description":"Its text in the list."},` +
	`"summary":{"type":"string","minLength":1,"maxLength":2000},` +
	`"evidence":{"type":"array","minItems":1,"maxItems":20,"items":{"type":"object","additionalProperties":false,"required":["kind"],"properties":{` +
	`"kind":{"type":"string","enum":["verification","diff","files","manual"]},` +
	`"command":{"type":"string","minLength":1,"maxLength":2000,"description":"verification: word for word as it ran."},` +
	`"paths":{"type":"array","minItems":1,"maxItems":50,"items":{"type":"string","minLength":1}},` +
	`"note":{"type":"string","minLength":1,"maxLength":1000}}}}}}`

// StepPorts are what complete_step works with.
type StepPorts struct {
	Entries func(ctx context.Context) ([]session.Entry, error) // the transcript so far
	Request string                                             // key of the request: what ran before it is no evidence
	Where   func(path string) string                           // real, absolute path; nil: as written
	Note    func(kind string, data json.RawMessage)
}

// NewStep builds complete_step for one run. The zero StepPorts make a tool that can be described and not called.
func NewStep(p StepPorts) tool.Tool {
	if p.Where == nil {
		p.Where = func(path string) string { return path }
	}
	return step{p}
}

type step struct{ StepPorts }

var _ tool.Execution = step{}

func (step) Name() string            { return StepTool }
func (step) Description() string     { return stepDescription }
func (step) Schema() json.RawMessage { return json.RawMessage(stepSchema) }
func (step) ReadOnly() bool          { return true } // no effect outside the transcript

// Serial: the calls before it in the same message are its evidence, so their results must stand in the transcript.
func (step) Serial() bool { return true }

// OfExecution: it reads only, and yet nothing is signed off before a plan is approved (Spec, section 3.7).
func (step) OfExecution() bool { return true }

// Describe is how the call looks in a feed.
func (step) Describe(raw json.RawMessage) (title, text string) {
	var c Claim
	if json.Unmarshal(raw, &c) != nil {
		return "Sign off a step?", string(raw)
	}
	cited := make([]string, len(c.Evidence))
	for i, it := range c.Evidence {
		cited[i] = string(it.Kind) + " " + it.what()
	}
	return "Sign off a step?", c.Step + ": " + strings.Join(cited, "; ")
}

func (s step) Execute(ctx context.Context, raw json.RawMessage) (string, error) {
	if s.Entries == nil || s.Note == nil {
		return "", errors.New("there is no transcript here to check a claim against")
	}
	var c Claim
	if err := json.Unmarshal(raw, &c); err != nil {
		return "", fmt.Errorf("%w: %w", tool.ErrArguments, err)
	}
	if err := c.check(); err != nil {
		return "", err
	}
	entries, err := s.Entries(ctx)
	if err != nil {
		return "", fmt.Errorf("read the host's records: %w", err)
	}
	facts := Since(entries, s.Request)
	at, err := active(facts.Todos, c.Step)
	if err != nil {
		return "", err
	}
	c.Step = facts.Todos[at].Content
	c = facts.Adjudicate(c, s.Where)
	if err := s.keep(NoteStep, c); err != nil {
		return "", err
	}
	if c.Standing == Lowered {
		return c.report() + "\nThe step stays in progress. Do what is missing and sign it off again; cite nothing that you did not do.", nil
	}
	todos := advance(facts.Todos, at)
	if err := CheckTodos(todos); err != nil { // an older list may have broken the order
		return "", fmt.Errorf("%w: %w", ErrTodos, err)
	}
	if err := s.keep(NoteTodos, TodoList{todos}); err != nil {
		return "", err
	}
	return c.report() + "\n" + progress(todos), nil
}

func (s step) keep(kind string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("keep the sign-off: %w", err)
	}
	s.Note(kind, data)
	return nil
}

// check refuses evidence that lacks what its kind cites.
func (c Claim) check() error {
	if strings.TrimSpace(c.Step) == "" || strings.TrimSpace(c.Summary) == "" {
		return errors.New("step and summary must say something")
	}
	for i, it := range c.Evidence {
		need, have := "command", strings.TrimSpace(it.Command) != ""
		switch it.Kind {
		case Diff, Paths:
			need, have = "paths", len(it.Paths) > 0
		case Manual:
			need, have = "note", strings.TrimSpace(it.Note) != ""
		}
		if !have {
			return fmt.Errorf("evidence %d: kind %s needs %s", i+1, it.Kind, need)
		}
		if it.Kind != Verification && it.Command != "" || it.Kind != Diff && it.Kind != Paths && len(it.Paths) > 0 {
			return fmt.Errorf("evidence %d: kind %s cites %s alone; make another item of the rest", i+1, it.Kind, need)
		}
	}
	return nil
}

// active finds the item in progress, which is the only one that can be signed off.
func active(todos []Todo, text string) (int, error) {
	for i, t := range todos {
		if t.Status != InProgress {
			continue
		}
		if key(t.Content) != key(text) {
			return 0, fmt.Errorf("nothing was signed off: in progress is %q, and only that can be", short(t.Content))
		}
		return i, nil
	}
	return 0, errors.New("nothing was signed off: no todo is in progress; set one in progress with todo_write first")
}

// advance completes the item and starts the next open one: sub-steps before the phase they belong to.
func advance(todos []Todo, at int) []Todo {
	out := append([]Todo(nil), todos...)
	out[at].Status = Completed
	for i, t := range out {
		if t.Status == Completed || t.Level == 0 && i+1 < len(out) && out[i+1].Level == 1 && openBelow(out, i) {
			continue
		}
		out[i].Status = InProgress
		break
	}
	return out
}

func openBelow(todos []Todo, phase int) bool {
	for _, t := range todos[phase+1:] {
		if t.Level == 0 {
			return false
		}
		if t.Status != Completed {
			return true
		}
	}
	return false
}

// report is what the model is told: the standing, and each citation with what the host makes of it.
func (c Claim) report() string {
	var b strings.Builder
	switch c.Standing {
	case Verified:
		b.WriteString("completed, verified: ")
	case Unverified:
		b.WriteString("completed, unverified (people are told so): ")
	default:
		b.WriteString("NOT completed, the claim was lowered: ")
	}
	b.WriteString(short(c.Step))
	for i, it := range c.Evidence {
		word := "backed"
		if !it.Backed {
			word = "not backed"
		}
		fmt.Fprintf(&b, "\n%d. %s %s: %s: %s", i+1, it.Kind, it.what(), word, it.Reason)
		if it.Mend != "" {
			b.WriteString("; " + it.Mend)
		}
	}
	return b.String()
}

func progress(todos []Todo) string {
	open := Open(todos)
	s := fmt.Sprintf("%d of %d done", len(todos)-len(open), len(todos))
	for _, t := range open {
		if t.Status == InProgress {
			return s + "; now in progress: " + short(t.Content)
		}
	}
	return s
}
