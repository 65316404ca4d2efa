package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"reasonix/internal/evidence"
	"reasonix/internal/tool"
)

const (
	todoDescription = `Keep the plan of a task with several steps: send the whole list each time. One item at most is in_progress.
Level 1 items are sub-steps of the level 0 item above them: they complete in order, and that item stays pending until they are done.
Sign items off with complete_step where it is offered: one that is ticked off here counts as done without evidence.`

	todoSchema = `{"type":"object","additionalProperties":false,"required":["todos"],"properties":{` +
		`"todos":{"type":"array","maxItems":100,"items":{"type":"object","additionalProperties":false,"required":["content","status"],"properties":{` +
		`"content":{"type":"string","minLength":1,"maxLength":500},` +
		`"status":{"type":"string","enum":["pending","in_progress","completed"]},` +
		`"level":{"type":"integer","enum":[0,1],"description":"0 when absent."}}}}}}`
)

func init() { tool.Register(newTodoWrite) }

func newTodoWrite(env tool.Env) tool.Tool {
	if env.Note == nil {
		return nil
	}
	return todoWrite{card: card{"todo_write", todoDescription, todoSchema, true}, note: env.Note}
}

type todoWrite struct {
	card
	note func(string, json.RawMessage)
}

// Serial keeps two lists of one message in their order: the last one counts.
func (todoWrite) Serial() bool { return true }

func (t todoWrite) Execute(_ context.Context, raw json.RawMessage) (string, error) {
	list, err := decode[evidence.TodoList](raw)
	if err != nil {
		return "", err
	}
	if err := evidence.CheckTodos(list.Todos); err != nil {
		return "", fmt.Errorf("%w: %w", evidence.ErrTodos, err)
	}
	data, err := json.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("keep the todo list: %w", err)
	}
	t.note(evidence.NoteTodos, data)
	return todoResult(list.Todos), nil
}

func todoResult(todos []evidence.Todo) string {
	if len(todos) == 0 {
		return "the todo list is empty"
	}
	open := evidence.Open(todos)
	s := fmt.Sprintf("%d of %d done", len(todos)-len(open), len(todos))
	for _, o := range open {
		if o.Status == evidence.InProgress {
			return s + "; in progress: " + strings.TrimSpace(o.Content)
		}
	}
	return s
}
