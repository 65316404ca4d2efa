// Package evidence is what a run can show for its claims: the todo list it kept, and the facts that the host saw.
package evidence

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// NoteTodos is the kind of the note that holds the whole list, as {"todos": [...]}.
const NoteTodos = "todos"

// Limits of a todo list.
const (
	MaxTodos    = 100
	MaxTodoText = 500 // bytes of one item
)

// Status is how far an item is.
type Status string

// The statuses.
const (
	Pending    Status = "pending"
	InProgress Status = "in_progress"
	Completed  Status = "completed"
)

// Todo is one item. Level 0 is a phase or a plain item, level 1 a sub-step of the phase above it.
type Todo struct {
	Content string `json:"content"`
	Status  Status `json:"status"`
	Level   int    `json:"level,omitempty"`
}

// TodoList is the data of a NoteTodos.
type TodoList struct {
	Todos []Todo `json:"todos"`
}

// ParseTodos reads the data of a NoteTodos.
func ParseTodos(data json.RawMessage) ([]Todo, error) {
	var l TodoList
	if err := json.Unmarshal(data, &l); err != nil {
		return nil, fmt.Errorf("read todos: %w", err)
	}
	return l.Todos, nil
}

// CheckTodos applies the serial contract (Spec, section 5): one item at most is in progress; a sub-step has a phase above it; the
// sub-steps of a phase complete in order; while one of them is open the phase stays pending.
func CheckTodos(todos []Todo) error {
	if len(todos) > MaxTodos {
		return fmt.Errorf("%d items are more than %d: merge small ones", len(todos), MaxTodos)
	}
	active := 0
	for i, t := range todos {
		if err := checkItem(i, t); err != nil {
			return err
		}
		if t.Status != InProgress {
			continue
		}
		if active++; active > 1 {
			return fmt.Errorf("%s: another item is in_progress already; only one may be", item(i, t))
		}
	}
	return checkPhases(todos)
}

func checkItem(i int, t Todo) error {
	if strings.TrimSpace(t.Content) == "" {
		return fmt.Errorf("item %d: content is empty", i+1)
	}
	if len(t.Content) > MaxTodoText {
		return fmt.Errorf("item %d: content is longer than %d bytes", i+1, MaxTodoText)
	}
	switch t.Status {
	case Pending, InProgress, Completed:
	default:
		return fmt.Errorf("%s: status %q is not one of pending, in_progress, completed", item(i, t), t.Status)
	}
	if t.Level != 0 && t.Level != 1 {
		return fmt.Errorf("%s: level %d is not 0 or 1", item(i, t), t.Level)
	}
	return nil
}

func checkPhases(todos []Todo) error {
	for i := 0; i < len(todos); {
		if todos[i].Level == 1 {
			return fmt.Errorf("%s: a level 1 sub-step needs a level 0 phase above it", item(i, todos[i]))
		}
		end := i + 1
		for end < len(todos) && todos[end].Level == 1 {
			end++
		}
		if err := checkPhase(todos, i, end); err != nil {
			return err
		}
		i = end
	}
	return nil
}

// checkPhase looks at the phase at i with its sub-steps up to end.
func checkPhase(todos []Todo, i, end int) error {
	open := ""
	for j := i + 1; j < end; j++ {
		if open != "" && todos[j].Status != Pending {
			return fmt.Errorf("%s: sub-steps go in order, and %s before it is not completed", item(j, todos[j]), open)
		}
		if open == "" && todos[j].Status != Completed {
			open = item(j, todos[j])
		}
	}
	if open != "" && todos[i].Status != Pending {
		return fmt.Errorf("%s: a phase stays pending until its sub-steps are completed, and %s is not", item(i, todos[i]), open)
	}
	return nil
}

func item(i int, t Todo) string {
	text := []rune(t.Content)
	if len(text) > 40 {
		text = append(text[:39], '…')
	}
	return fmt.Sprintf("item %d (%s)", i+1, string(text))
}

// Open returns the items that are not completed.
func Open(todos []Todo) []Todo {
	var out []Todo
	for _, t := range todos {
		if t.Status != Completed {
			out = append(out, t)
		}
	}
	return out
}

// ErrTodos wraps every refusal of a list, for the model.
var ErrTodos = errors.New("todo list refused, nothing was changed")
